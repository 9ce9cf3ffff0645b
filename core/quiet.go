package core

// Quiet hours in decisions: what they do to a due time, and to a task that is claimed within them.

import (
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// hush puts a due time off to the end of the quiet hours that it is in.
func (d *decision) hush(due store.When) store.When {
	d.state.PutOff, d.state.Hand = nil, false
	if d.habits == nil {
		return due
	}
	at := due.At
	if at == 0 {
		at = d.now.Add(due.After)
	}
	until := d.quietUntil(at)
	if until == at {
		return due
	}
	putOff(d.state, d.body, at, until)
	return store.When{At: until}
}

// quietUntil is the end of the quiet time that a time is in for the task.
func (d *decision) quietUntil(at store.Millis) store.Millis {
	return d.habits.until(at, d.claimed.Level, d.body.Urgent)
}

// putOff notes that a task which is due at a time is due later, as its agent has quiet hours then. The occurrence stays the one that it is.
func putOff(s *state, b *body, base, until store.Millis) {
	s.PutOff = &record.PutOff{From: base, To: until}
	if s.Nominal == 0 && b.Activity == nil { // that of an activity task is when its gate is asked
		s.Nominal = base
	}
}

// baseOf is when a task is due, or would be if it were not for quiet hours.
func baseOf(s *state, due store.Millis) store.Millis {
	if s.PutOff != nil && s.PutOff.To == due {
		return s.PutOff.From
	}
	return due
}

// hushed settles a task that was claimed in quiet hours of its agent before it starts: it waited too long to be in time, was made due
// without regard to them, or its profile has just changed. One that an operator has told to run runs.
func (d *decision) hushed(v *verdict) bool {
	if d.habits == nil || d.state.Hand || d.byHand() {
		return false
	}
	until := d.quietUntil(d.claimedAt)
	if until == d.claimedAt {
		return false
	}
	putOff(d.state, d.body, baseOf(d.state, d.claimed.Due), until)
	v.quiet, v.status, v.because = true, StatusWaiting, waitsQuiet
	v.settlement.Verb, v.settlement.Due, v.settlement.State = store.VerbAgain, store.When{At: until}, d.state.Encode()
	v.settlement.Unrun = true
	return true
}

// answered is the time up to which an occurrence answers for others: those that fall due in the quiet hours that it waits for the end of are
// one with it.
func (d *decision) answered(nominal store.Millis) store.Millis {
	if d.habits == nil {
		return nominal
	}
	return d.quietUntil(nominal)
}
