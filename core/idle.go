package core

// Idle tasks: how long a gate that said no is left alone, and when it is asked next.

import (
	"cmp"
	"math"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// IdleBackoff says how much less often tasks of a kind are asked about whose gate says that there is nothing to do: each
// such answer in a row multiplies the time until the next by Factor, up to Max or the task's own interval, whichever is
// longer. The first run that the gate lets through puts it back to the task's own interval.
//
// Tasks with an interval always back off. If either field is set, so do the others: a task with a cron expression leaves out
// whole occurrences until the time is reached, counted from the shortest distance of its next ones; an activity task, which
// otherwise waits for activity, is asked about again, first after its quiet time or delay times Factor, until nothing has
// happened for a week. Activity puts it back to its own time.
type IdleBackoff struct {
	Factor float64       // between 1, for no back-off, and 100; DefaultIdleFactor if zero
	Max    time.Duration // DefaultMaxIdle if zero
}

// Defaults of IdleBackoff.
const (
	DefaultIdleFactor = 2
	DefaultMaxIdle    = 5 * time.Minute
	mostIdleFactor    = 100
)

// set reports whether somebody has said how to back off.
func (b IdleBackoff) set() bool { return b != IdleBackoff{} }

// or is the back-off with another's fields in place of those that are zero.
func (b IdleBackoff) or(o IdleBackoff) IdleBackoff {
	return IdleBackoff{Factor: cmp.Or(b.Factor, o.Factor), Max: cmp.Or(b.Max, o.Max)}
}

// validate refuses what makes no sense. The field is one of IdleBackoff.
func (b IdleBackoff) validate() *ConfigError {
	switch {
	case b.Factor != 0 && !(b.Factor >= 1 && b.Factor <= mostIdleFactor): // so that NaN is refused too
		return misconfigured("Factor", b.Factor, "must be between 1 and %d, not %v", mostIdleFactor, b.Factor)
	case b.Max < 0 || b.Max > maxDelay:
		return misconfigured("Max", b.Max, "must be between 0 and %s, not %s", maxDelay, b.Max)
	default:
		return nil
	}
}

// distance is how long after the last question the next one comes: base after none in a row that was answered with no.
func (b IdleBackoff) distance(base time.Duration, idle int) time.Duration {
	b = b.or(IdleBackoff{Factor: DefaultIdleFactor, Max: DefaultMaxIdle})
	most := max(base, b.Max)
	// In floating point there is no overflow: what is too long is infinite, and longer than the most.
	stretched := float64(base) * math.Pow(b.Factor, float64(idle))
	if stretched < float64(most) {
		return time.Duration(stretched)
	}
	return most
}

// passed keeps the tag of the gate that has let through a run which has succeeded.
func (d *decision) passed() {
	if d.answer != nil {
		d.state.GateTag = d.answer.Tag
	}
}

// turnedAway counts a run that its gate has not let through. Of an activity task only those count since the last activity.
func (d *decision) turnedAway() {
	if d.answer != nil && d.answer.Tag != "" {
		d.state.GateTag = d.answer.Tag
	}
	if d.body.Activity != nil && !d.askedAgain() {
		d.state.Idle = 0
	}
	d.state.Idle++
}

// askedAgain reports whether nothing has happened for an activity task since its gate last said no: any activity gives it
// another due time than was planned.
func (d *decision) askedAgain() bool { return d.state.Nominal != 0 && d.claimed.Due == d.state.Nominal }

// askLater settles a task whose gate has said no.
func (d *decision) askLater(v *verdict) {
	backoff := d.kind.IdleBackoff
	switch {
	case d.body.Activity != nil && backoff.set():
		d.restAndAsk(v, backoff.distance(max(d.body.Activity.Delay, d.kind.Backoff, time.Millisecond), d.state.Idle))
	case d.body.Activity != nil:
		d.rest(v)
	case d.body.Cron != "" && backoff.set():
		d.leaveOut(v, backoff)
	case d.body.Cron != "":
		d.nextDue(v, d.interval())
	case !d.body.recurs(): // there is no next occurrence: this one is asked for again
		d.sameOccurrence()
		d.again(v, store.When{After: backoff.distance(d.kind.Backoff, d.state.Idle)})
	default:
		d.nextDue(v, backoff.distance(max(d.interval(), d.kind.Backoff), d.state.Idle))
	}
}

// leaveOut books the first time of a cron expression that is far enough from the one that its gate has just turned away. The
// occurrences before it are left out, as they are by an interval that failures have stretched.
func (d *decision) leaveOut(v *verdict, backoff IdleBackoff) {
	nominal := d.nominal()
	next := d.after(nominal, 0)
	following := d.after(next, 0)
	if next == 0 || following == 0 {
		d.nextDue(v, d.interval())
		return
	}
	// The shorter of two distances: the way from the last time of a day to the first of the next one is no interval.
	wait := backoff.distance(min(next.Sub(nominal), following.Sub(next)), d.state.Idle)
	ask := d.after(max(nominal.Add(wait)-1, d.now), 0)
	if ask == 0 || ask <= next { // nothing is left out
		d.nextDue(v, d.interval())
		return
	}
	d.state.CaughtUp = 0
	d.book(v, ask, false)
}

// restAndAsk lets an activity task rest, but only for so long: then its gate is asked again. Activity makes it due before, at its own time,
// as it does with any task that rests.
func (d *decision) restAndAsk(v *verdict, wait time.Duration) {
	asked, retire := d.askedAgain(), d.state.Retire
	d.rest(v)
	if asked && retire != 0 {
		d.state.Retire = retire // it has rested since then
	}
	ask := max(d.now.Add(wait), v.settlement.Floor.At)
	if ask >= d.state.Retire {
		ask = d.state.Retire
	} else {
		d.state.Nominal, v.because = ask, waitsGate
	}
	v.settlement.Due, v.settlement.State = store.When{At: ask}, d.state.Encode()
}
