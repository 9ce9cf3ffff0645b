package core

import (
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// A run whose process ends it before its handler has is released: its task is due as it was, and nothing is charged. That
// it happened is in the task's history, so that work that is released again and again is seen.

// mostCutOffs is how often in a row a run may be cut off though it had nearly all the time of its pull. It is not tried
// for ever, at a whole invocation each time.
const mostCutOffs = 3

// release gives a run back that has not begun.
func (p *pull) release(r *run) {
	r.verdict.settlement, r.verdict.released = release(r.claimed), true
	p.settler.add(r)
}

// giveBack settles a run that was ended by the end of its pull. If it was started, that is recorded.
func (d *decision) giveBack(v *verdict) {
	v.released = true
	v.settlement = release(d.claimed)
	if !d.ran || d.body.overlap().spawns() {
		return
	}
	ended := record.Run{Started: d.now.Add(-v.took), Duration: v.took, Attempt: d.attempt, Outcome: string(OutcomeReleased), Error: "its process stopped", Used: d.used.stored()}
	if b := d.budget; b.spent {
		ended.Error = fmt.Sprintf("the time of its pull was up: %s of %s were left for it", b.left.Round(time.Millisecond), b.whole.Round(time.Millisecond))
		if b.nearlyAll {
			d.state.CutOffs++
		}
	}
	d.add(ended)
	if d.state.CutOffs >= mostCutOffs {
		d.tooLong(v)
		return
	}
	v.settlement.State = d.state.Encode()
}

// tooLong pauses a task that no pull of this host has time for.
func (d *decision) tooLong(v *verdict) {
	d.state.CutOffs = 0 // once it is resumed it has as many tries again
	v.tooLong, v.status = true, StatusWaiting
	v.settlement = store.Settlement{
		Run: d.claimed.Run, Group: d.group, Kind: d.claimed.Kind, Verb: store.VerbAgain, Due: store.When{At: d.claimed.Due}, State: d.state.Encode(),
		Hold: Order{By: byDuly, Reason: fmt.Sprintf("too_long: it was cut off %d times in a row after nearly all of %s: give its kind a shorter timeout, "+
			"let its handler yield, or run it where there is more time; then resume it", mostCutOffs, d.budget.whole.Round(time.Second))}.encode(),
	}
	v.warning = warnTooLong
}

// add adds a run of this process to the task's history.
func (d *decision) add(run record.Run) {
	if run.Process == "" {
		run.Process = d.process
	}
	d.state.Runs.Add(run)
}
