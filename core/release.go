package core

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// A run whose process ends it before its handler has is given back: its task is due as it was, and nothing is charged. That
// it happened is in the task's history, so that work that is given back again and again is seen.

// mostCutOffs is how often in a row a run may be cut off though it had nearly all the time of its pull. It is not tried
// for ever, at a whole invocation each time.
const mostCutOffs = 3

// giveBack settles a run that was ended by the end of its pull. If it was started, that is recorded.
func (r *run) giveBack(v *verdict, ran bool) {
	v.released = true
	v.settlement = release(r.claimed)
	if !ran || r.body.overlap().spawns() {
		return
	}
	if r.alone { // the crash that was counted in advance did not come
		v.settlement.Crashes = r.claimed.Crashes
	}
	p := r.pull
	begun := p.s.config.Clock.Now().Add(-v.took)
	ended := record.Run{Started: p.s.storeNow().Add(-v.took), Duration: v.took, Attempt: r.info.Attempt, Outcome: string(OutcomeReleased), Error: "its process stopped"}
	if p.spent.Load() {
		ended.Error = fmt.Sprintf("the time of its pull was up: %s of %s were left for it",
			p.end.Sub(begun).Round(time.Millisecond), p.end.Sub(p.begun).Round(time.Millisecond))
		if p.fresh(begun) {
			r.state.CutOffs++
		}
	}
	r.add(ended)
	if r.state.CutOffs >= mostCutOffs {
		r.tooLong(v)
		return
	}
	v.settlement.State = r.state.Encode()
}

// tooLong pauses a task that no pull of this host has time for.
func (r *run) tooLong(v *verdict) {
	p := r.pull
	r.state.CutOffs = 0 // once it is resumed it has as many tries again
	v.tooLong, v.status = true, StatusWaiting
	v.settlement = store.Settlement{
		Run: r.claimed.Run, Group: r.body.Group, Kind: r.claimed.Kind, Verb: store.VerbAgain, Due: store.When{At: r.claimed.Due}, State: r.state.Encode(),
		Hold: Hold{By: byDuly, Reason: fmt.Sprintf("too_long: it was cut off %d times in a row after nearly all of %s: give its kind a shorter timeout, "+
			"let its handler yield, or run it where there is more time; then resume it", mostCutOffs, p.end.Sub(p.begun).Round(time.Second))}.encode(),
	}
	p.s.config.Logger.WarnContext(p.ctx, "a task takes longer than a pull has time for, and is paused",
		slog.String("agent", r.info.Agent), slog.String("task", r.info.ID), slog.String("kind", r.info.Kind))
}

// add adds a run of this process to the task's history.
func (r *run) add(run record.Run) {
	if run.Process == "" {
		run.Process = r.pull.s.config.Name
	}
	r.state.Add(run)
}
