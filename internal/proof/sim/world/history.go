package world

// What a task has been through, as its scheduler decides about it: attempts, failures in a row, intervals.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// history is what is known of the runs of a task, besides what the tracker said last.
// It is what has to be added to the tracker's own words to judge the next run: the invariants that
// need it say what they compare.
type history struct {
	info     core.TaskInfo // as it was read when something was last changed
	begun    bool          // a handler was called since there was a reason for a start
	reason   string        // why another start is right
	interval time.Duration // as NextIn has set it
	grid     moment.Millis // a time on the grid of a task that recurs from its start
	moved    bool          // a client has asked for a run by hand, or its handler for another time
	last     moment.Millis // when the last run was claimed, if the next has to keep a distance from that
	cuts     int           // how often in a row its run was cut off
	idle     int           // how often in a row its gate has turned it away
	hand     bool          // its next run was asked for by hand
	again    bool          // the hand came while a run was under way, whose end does not use it up
	awaits   bool          // its occurrence has waited for a signal
	patience moment.Millis // until when it waited; zero for ever
	then     core.OnTimeout
	order    []byte // what the first cancel of a run under way has said; nil: it was not cancelled
	own      bool   // the run under way has cancelled the task itself, by the definition that it has
	tells    bool   // that run has cancelled the task itself, and its definition has a callback
}

func (h *history) begin() { *h = history{reason: "submitted", info: core.TaskInfo{Attempt: 1}} }

// renew begins again, with another definition.
// What the tracker knows stays, as a replaced task keeps its counts and its runs.
func (h *history) renew() {
	h.reason, h.interval, h.grid, h.moved, h.last, h.cuts, h.awaits, h.idle, h.order = "replaced", 0, 0, false, 0, 0, false, 0, nil
}

// attempts are how many an occurrence of a task has.
// Unless the definition says how many, only a task that neither recurs nor belongs to a recurring one
// is repeated: an occurrence that fails waits for the next one instead.
func (w *World) attempts(t *task) int {
	switch {
	case t.activity != nil:
		return 1
	case t.def.MaxAttempts > 0:
		return t.def.MaxAttempts
	case t.recurs() || t.parent != "":
		return 1
	default:
		return w.plan.Settings.MaxAttempts
	}
}

// recurs reports whether a task has further occurrences. The task of one occurrence has not.
func (t *task) recurs() bool {
	return t.def != nil && t.parent == "" && (t.def.Every != 0 || t.def.Cron != "")
}

// fixed reports whether the occurrences of a task have fixed times.
func (t *task) fixed() bool { return t.recurs() && (t.def.Cron != "" || t.def.From == core.FromStart) }

// spawns reports whether each occurrence of a task is a task of its own.
// Its own runs only book these tasks.
func (t *task) spawns() bool {
	return t.recurs() && (t.def.Overlap == core.OverlapAllow || t.def.Overlap == core.OverlapCancelRunning)
}

// every is the interval of a task that recurs by one.
func (t *task) every() time.Duration {
	if t.history.interval != 0 {
		return t.history.interval
	}
	return t.def.Every
}

// backoff is the longest pause after an attempt, the first being 1.
// The actual pause is drawn below that, so that tasks that failed together do not return together.
func (w *World) backoff(t *task, attempt int) time.Duration {
	first := w.plan.Settings.Backoff
	most := 4 * first
	if t.def != nil && t.def.Backoff > 0 {
		first, most = t.def.Backoff, max(most, t.def.Backoff)
	}
	for range attempt - 1 {
		first = min(2*first, most)
	}
	return first
}
