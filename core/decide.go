package core

import (
	"errors"
	"time"

	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// What becomes of a task whose run has ended is decided here, and in the files of each sort of outcome, from facts that are all
// gathered before: a decision asks no store, no clock and no scheduler, so its tables of tests need none.

// facts are all that a decision depends on.
type facts struct {
	now         store.Millis // by the store's clock
	clock       time.Time    // by the process's, which handlers name times by
	claimed     *store.Claimed
	claimedAt   store.Millis
	fence       Fence // that the handler saw: it stays when a lost run is taken back under another one
	attempt     int   // of this occurrence, from 1
	body        *body
	state       *state         // as it was claimed, with what its run has set; the decision goes on from there, and changes it
	tally       *store.RunStat // to be filled with what the run adds to the statistics of its kind
	kind        *KindConfig    // the settings of the task's kind
	ownAttempts int            // that the settings of the kind itself name, without those of other kinds
	process     string         // who ran it
	next        func(spec cronSpec, after store.Millis) (store.Millis, error)
	random      func(most time.Duration) time.Duration // a pause up to that

	// Of the run that has ended:
	ran       bool // its handler was called
	took      time.Duration
	order     *[]byte // what was said when the task was told to end; nil if it was not
	habits    *habits // of its agent; nil if it has no profile
	zone      string  // the default one
	inherited int     // children that had failed, and why the last did
	failure   string
	answer    *GateAnswer // of its gate; nil if it has none, or it has not answered
	used      Usage       // what its handler says that it has used
	budget    budget
}

// budget is the time that the pull of a run had.
type budget struct {
	spent       bool          // it is up
	left, whole time.Duration // for the run, and for the pull
	nearlyAll   bool          // the run had nearly all of it
}

// decision is one in the making. Of what its facts point to it changes the state and the tally alone. It lives as long as it takes:
// the verdict is all that is kept of it.
type decision struct {
	facts

	group string // what the task counts under when it is settled
}

// begin begins a verdict with what every one has: the run, its kind and group, and how long it took.
func (d *decision) begin(v *verdict) {
	d.group = d.body.Group
	*v = verdict{took: d.took, settlement: store.Settlement{Run: d.claimed.Run, Group: d.group, Kind: d.claimed.Kind}}
}

// decide turns how a run has ended into what becomes of its task: err is the handler's, or says why it did not run. It depends on
// the facts alone and changes nothing but the state. With what follows, it is the one place that knows what outcomes mean.
func (d *decision) decide(v *verdict, err error) {
	d.begin(v)
	switch {
	case d.order != nil:
		d.endCancelled(v, err, *d.order)
	case err == nil && d.body.overlap().spawns():
		v.quiet = true
		d.passed()
		d.state.Idle = 0 // its gate was open
		d.nextDue(v, d.interval())
		d.pauseIfHopeless(v, d.inherited, d.failure)
	case err == nil: // nearly all runs: nothing is looked for in an error
		d.succeed(v, 0)
	case errors.Is(err, ErrStopping) && !deliberate(err):
		d.giveBack(v)
	default:
		d.asReturned(v, err)
	}
	d.account(v)
}

// asReturned decides by the error that a handler has returned.
func (d *decision) asReturned(v *verdict, err error) {
	switch {
	case isOf[*skippedError](err):
		skip, _ := errors.AsType[*skippedError](err)
		d.skipOccurrence(v, skip.reason)
		d.pauseIfHopeless(v, d.inherited, d.failure)
	case isOf[*nextInError](err):
		next, _ := errors.AsType[*nextInError](err)
		d.succeed(v, max(next.after, schedule.MinInterval))
	case isOf[*snoozeError](err):
		snooze, _ := errors.AsType[*snoozeError](err)
		d.callAgain()
		d.putOff(v, OutcomeSnoozed, snooze.after)
	case isOf[*yieldError](err):
		yield, _ := errors.AsType[*yieldError](err)
		d.heard(v)
		d.callAgain()
		d.state.Checkpoint = yield.checkpoint
		d.putOff(v, OutcomeYielded, yield.after)
	case isOf[*awaitError](err):
		await, _ := errors.AsType[*awaitError](err)
		d.callAgain()
		d.await(v, await)
	case isOf[*retryAfterError](err):
		later, _ := errors.AsType[*retryAfterError](err)
		d.callAgain()
		d.retryLater(v, later, err)
	case isOf[*cancelError](err):
		d.note(v, OutcomeCancelled, err)
		d.finish(v, store.VerbCancel, StatusCancelled, "handler")
	case isOf[*fatalError](err):
		fatal, _ := errors.AsType[*fatalError](err)
		v.err = err
		if d.ran {
			d.note(v, OutcomeFailed, err)
		} else {
			d.crashes(err)
			v.outcome = fatal.outcome()
		}
		d.finish(v, store.VerbFail, StatusFailed, fatal.reason)
	default:
		d.fail(v, err)
	}
}

// callAgain notes that the handler was called, and wants to be called again: the next call is no repeat of this one.
func (d *decision) callAgain() {
	if d.ran {
		d.state.Calls++
	}
}

// deliberate reports whether a handler chose an outcome of its own, in contrast to an error that it
// met.
func deliberate(err error) bool {
	return err != nil && (isOf[*cancelError](err) || isOf[*snoozeError](err) || isOf[*nextInError](err) || isOf[*yieldError](err) || isOf[*awaitError](err) ||
		isOf[*retryAfterError](err) || isOf[*skipRetryError](err) || isOf[*fatalError](err) || isOf[*skippedError](err))
}

// isOf reports whether an error is of a type, or wraps one that is.
func isOf[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// decideEarly settles what is not to be run at all; false if it is to be run.
func (d *decision) decideEarly(v *verdict) bool {
	d.begin(v)
	switch {
	case d.claimed.Cancelled:
		d.endCancelled(v, nil, d.claimed.Order)
	case d.body.Activity != nil && d.state.Retire != 0 && d.claimed.Due == d.state.Retire:
		v.quiet = true
		d.finish(v, store.VerbComplete, StatusCompleted, "rested")
	case d.hushed(v):
	default:
		if !d.misfired(v) {
			return false
		}
	}
	d.account(v)
	return true
}
