package decide

// Quiet hours in decisions.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/plan"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// delayPastQuiet puts a due time off to the end of the quiet hours that it is in.
func (d *Facts) delayPastQuiet(due moment.When) moment.When {
	d.State.PutOff, d.State.Hand = nil, false
	if d.Profile == nil {
		return due
	}
	at := due.At
	if at == 0 {
		at = d.Now.Add(due.After)
	}
	until := d.quietUntil(at)
	if until == at {
		return due
	}
	plan.PutOff(d.State, d.Body, at, until)
	return moment.When{At: until}
}

// quietUntil is the end of the quiet time that contains a time, for the task; the time itself if there is none.
func (d *Facts) quietUntil(at moment.Millis) moment.Millis {
	return d.Profile.Until(at, d.Claimed.Level, d.Body.Urgent)
}

// settleInQuiet settles a task that was claimed in quiet hours of its agent before it starts: it waited too long to be in time, was made due
// without regard to them, or its profile has just changed. One that an operator runs by hand starts.
func (d *Decision) settleInQuiet(v *Verdict) bool {
	// guard: quiet-hours
	if d.Profile == nil || d.State.Hand || d.byHand() {
		return false
	}
	until := d.quietUntil(d.ClaimedAt)
	if until == d.ClaimedAt {
		return false
	}
	plan.PutOff(d.State, d.Body, plan.BaseOf(d.State, d.Claimed.Due), until)
	v.Quiet, v.Status, v.Because = true, store.StatusWaiting, waitsQuiet
	// guard: quiet-end
	v.Settlement.Verb, v.Settlement.Due, v.Settlement.State = store.VerbAgain, moment.When{At: until}, d.State.Encode()
	v.Settlement.Unrun = true
	return true
}

// leastInterval is the least that a run may set the interval of its task to.
func leastInterval(d *Decision) time.Duration {
	// guard: quota-next-in
	if q := d.Profile.Bounds(); q != nil {
		return q.Interval
	}
	return 0
}

// answered is the time up to which an occurrence covers others: those that fall due in the quiet hours whose end it waits for become
// one run with it.
func (d *Facts) answered(nominal moment.Millis) moment.Millis {
	if d.Profile == nil {
		return nominal
	}
	// guard: quiet-runs-once
	return d.quietUntil(nominal)
}
