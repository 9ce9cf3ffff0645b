package decide

// Idle tasks: when a gate that said no is asked next.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// passed stores the tag of the gate that let through a run which has succeeded.
func (d *Facts) passed() {
	if d.Answer != nil {
		d.State.GateTag = d.Answer.Tag
	}
}

// turnedAway counts a run that its gate has not let through. For an activity task only those since the last activity count.
func (d *Facts) turnedAway() {
	if d.Answer != nil && d.Answer.Tag != "" {
		d.State.GateTag = d.Answer.Tag
	}
	if d.Body.Activity != nil && !d.askedAgain() {
		d.State.Idle = 0
	}
	// guard: gate-tires
	d.State.Idle++
}

// askedAgain reports whether nothing has happened for an activity task since its gate last said no: any activity gives it
// a due time other than the planned one.
func (d *Facts) askedAgain() bool { return d.State.Nominal != 0 && d.Claimed.Due == d.State.Nominal }

// askLater settles a task whose gate has said no.
func (d *Decision) askLater(v *Verdict) {
	backoff := d.Kind.IdleBackoff
	switch {
	case d.Body.Activity != nil && backoff.Set():
		d.restAndAsk(v, backoff.Distance(max(d.Body.Activity.Delay, d.Kind.Backoff, time.Millisecond), d.State.Idle))
	case d.Body.Activity != nil:
		d.rest(v)
	case d.Body.Cron != "" && backoff.Set():
		d.leaveOut(v, backoff)
	case d.Body.Cron != "":
		d.nextDue(v, d.interval())
	case !d.Body.Recurs(): // there is no next occurrence: the gate is asked again for this one
		d.sameOccurrence()
		d.again(v, moment.When{After: backoff.Distance(d.Kind.Backoff, d.State.Idle)})
	default:
		d.nextDue(v, backoff.Distance(max(d.interval(), d.Kind.Backoff), d.State.Idle))
	}
}

// leaveOut books the first time of a cron expression that is far enough after the one that its gate has just turned away. The
// occurrences before it are left out, as with an interval that failures have stretched.
func (d *Decision) leaveOut(v *Verdict, backoff model.IdleBackoff) {
	nominal := d.nominal()
	next := d.after(nominal, 0)
	following := d.after(next, 0)
	if next == 0 || following == 0 {
		d.nextDue(v, d.interval())
		return
	}
	// The shorter of two distances: that from the last time of a day to the first of the next one is no interval.
	wait := backoff.Distance(min(next.Sub(nominal), following.Sub(next)), d.State.Idle)
	ask := d.after(max(nominal.Add(wait)-1, d.Now), 0)
	if ask == 0 || ask <= next { // nothing is left out
		d.nextDue(v, d.interval())
		return
	}
	d.State.CaughtUp = 0
	d.book(v, ask, false)
}

// restAndAsk lets an activity task rest, but only for so long: then its gate is asked again. Activity makes it due before, at its own time,
// as it does with any task that rests.
func (d *Decision) restAndAsk(v *Verdict, wait time.Duration) {
	asked, retire := d.askedAgain(), d.State.Retire
	d.rest(v)
	if asked && retire != 0 {
		d.State.Retire = retire // it has been resting since then
	}
	ask := max(d.Now.Add(wait), v.Settlement.Floor.At)
	if ask >= d.State.Retire {
		ask = d.State.Retire
	} else {
		d.State.Nominal, v.Because = ask, waitsGate
	}
	v.Settlement.Due, v.Settlement.State = moment.When{At: ask}, d.State.Encode()
}
