package decide

import (
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// A run that its process ends before its handler returns is released: its task is due as before, and nothing is charged. The
// task's history records it, so that repeated releases are visible.

// mostCutOffs is how often in a row a run may be cut off though it had nearly all the time of its pull: each try costs a
// whole invocation.
const mostCutOffs = 3

// giveBack releases a run that ended with its pull. If it was started, that is recorded.
func (d *Decision) giveBack(v *Verdict) {
	v.Released = true
	v.Settlement = Release(d.Claimed)
	if !d.Ran || d.Body.OverlapPolicy().Spawns() {
		return
	}
	ended := record.Run{Started: d.Now.Add(-v.Took), Duration: v.Took, Attempt: d.Attempt, Outcome: string(model.OutcomeReleased), Error: "its process stopped", Used: codec.UsageRecord(d.Used)}
	if b := d.Budget; b.Spent {
		ended.Error = fmt.Sprintf("the time of its pull was up: %s of %s were left for it", b.Left.Round(time.Millisecond), b.Whole.Round(time.Millisecond))
		if b.NearlyAll {
			d.State.CutOffs++
		}
	}
	d.add(ended)
	if d.State.CutOffs >= mostCutOffs {
		d.tooLong(v)
		return
	}
	// guard: release
	v.Settlement.State = d.State.Encode()
}

// tooLong pauses a task that no pull of this host has time for.
func (d *Decision) tooLong(v *Verdict) {
	d.State.CutOffs = 0 // once it is resumed it has as many tries again
	v.TooLong, v.Status = true, store.StatusWaiting
	v.Settlement = store.Settlement{
		Run: d.Claimed.Run, Group: d.Group, Kind: d.Claimed.Kind, Verb: store.VerbAgain, Due: moment.When{At: d.Claimed.Due}, State: d.State.Encode(),
		Hold: model.Order{By: check.ByDuly, Reason: fmt.Sprintf("too_long: it was cut off %d times in a row after nearly all of %s: give its kind a shorter timeout, "+
			"let its handler yield, or run it where there is more time; then resume it", mostCutOffs, d.Budget.Whole.Round(time.Second))}.Encode(),
	}
	v.Warning = warnTooLong
}

// add adds a run of this process to the task's history.
func (d *Facts) add(run record.Run) {
	if run.Process == "" {
		run.Process = d.Process
	}
	d.State.Runs.Add(run)
}
