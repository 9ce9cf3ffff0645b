// Package decide decides what happens to a task whose run has ended. It is a function of facts that were gathered before: it asks no store, no clock
// and no scheduler.
package decide

import (
	"errors"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/outcome"
	"github.com/seed-6f6f2c11/duly/core/internal/plan"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// What happens to a task whose run has ended is decided here, and in the files of each sort of outcome, from facts that are all
// gathered before: a decision asks no store, no clock and no scheduler, so its table tests need none.

// Facts are all that a decision depends on. Their methods know of no verdict: they read the facts, or note in the state what has happened.
type Facts struct {
	Now         moment.Millis // by the store's clock
	Clock       time.Time     // by the clock of the process, by which handlers name times
	Claimed     *store.Claimed
	ClaimedAt   moment.Millis
	Fence       store.Fence // that the handler saw: it does not change when a lost run is taken back under another one
	Attempt     int         // of this occurrence, from 1
	Body        *codec.Body
	State       *codec.State      // as it was claimed, with what its run has set; the decision starts from it, and changes it
	Tally       *store.RunStat    // to be filled with what the run adds to the statistics of its kind
	Kind        *model.KindConfig // the settings of the task's kind
	OwnAttempts int               // MaxAttempts in the kind's own settings, without defaults for all kinds
	Process     string            // the process that ran it
	Next        func(spec codec.CronSpec, after moment.Millis) (moment.Millis, error)
	Random      func(most time.Duration) time.Duration // a pause up to that

	// Of the run that has ended:
	Ran       bool // its handler was called
	Took      time.Duration
	Order     *[]byte       // the order that cancelled the task; nil if there was none
	Profile   *plan.Profile // of its agent; nil if it has no profile
	Zone      string        // the default one
	Inherited int           // children that had failed, and why the last did
	Failure   string
	Answer    *model.GateAnswer // of its gate; nil if it has none, or it has not answered
	Used      model.Usage       // what its handler reported as used
	Budget    Budget
}

// Budget is the time that the pull of a run had.
type Budget struct {
	Spent       bool          // the time is up
	Left, Whole time.Duration // for the run, and for the pull
	NearlyAll   bool          // the run had nearly all of it
}

// Decision is a decision being made. Of what its facts point to, it changes only the state and the tally. It lives only while it is made:
// only its verdict is kept.
type Decision struct {
	Facts

	Group string // what the task counts under when it is settled
}

// begin begins a verdict with what every one has: the run, its kind and group, and how long it took.
func (d *Decision) begin(v *Verdict) {
	d.Group = d.Body.Group
	*v = Verdict{Took: d.Took, Settlement: store.Settlement{Run: d.Claimed.Run, Group: d.Group, Kind: d.Claimed.Kind}}
}

// Decide turns how a run has ended into what happens to its task: err is the handler's, or says why it did not run. It depends on
// the facts alone and changes nothing but the state. With what it calls, it is the one place that knows what outcomes mean.
func (d *Decision) Decide(v *Verdict, err error) {
	d.begin(v)
	switch {
	case d.Order != nil:
		d.endCancelled(v, err, *d.Order)
	case err == nil && d.Body.OverlapPolicy().Spawns():
		v.Quiet = true
		d.passed()
		d.State.Idle = 0 // its gate was open
		d.nextDue(v, d.interval())
		d.pauseIfHopeless(v, d.Inherited, d.Failure)
	case err == nil: // most runs: there is no error to examine
		d.succeed(v, 0)
	case errors.Is(err, model.ErrStopping) && !Deliberate(err):
		d.giveBack(v)
	default:
		d.asReturned(v, err)
	}
	d.account(v)
}

// asReturned decides by the error that a handler has returned.
func (d *Decision) asReturned(v *Verdict, err error) {
	switch {
	case IsOf[*plan.SkippedError](err):
		skip, _ := errors.AsType[*plan.SkippedError](err)
		d.skipOccurrence(v, skip.Reason)
		d.pauseIfHopeless(v, d.Inherited, d.Failure)
	case IsOf[*outcome.NextInError](err):
		next, _ := errors.AsType[*outcome.NextInError](err)
		d.succeed(v, max(next.After, schedule.MinInterval, leastInterval(d)))
	case IsOf[*outcome.SnoozeError](err):
		snooze, _ := errors.AsType[*outcome.SnoozeError](err)
		d.callAgain()
		d.putOff(v, model.OutcomeSnoozed, snooze.After)
	case IsOf[*outcome.YieldError](err):
		yield, _ := errors.AsType[*outcome.YieldError](err)
		d.heard(v)
		d.callAgain()
		d.State.Checkpoint = yield.Checkpoint
		d.putOff(v, model.OutcomeYielded, yield.After)
	case IsOf[*outcome.AwaitError](err):
		await, _ := errors.AsType[*outcome.AwaitError](err)
		d.callAgain()
		d.await(v, await)
	case IsOf[*outcome.RetryAfterError](err):
		later, _ := errors.AsType[*outcome.RetryAfterError](err)
		d.callAgain()
		d.retryLater(v, later, err)
	case IsOf[*outcome.CancelError](err):
		d.note(v, model.OutcomeCancelled, err)
		d.finish(v, store.VerbCancel, store.StatusCancelled, "handler")
	case IsOf[*outcome.FatalError](err):
		fatal, _ := errors.AsType[*outcome.FatalError](err)
		v.Err = err
		if d.Ran {
			d.note(v, model.OutcomeFailed, err)
		} else {
			d.crashes(err)
			v.Outcome = fatal.Outcome()
		}
		d.finish(v, store.VerbFail, store.StatusFailed, fatal.Reason)
	default:
		d.fail(v, err)
	}
}

// callAgain records that the handler was called, and asks to be called again: the next call does not repeat this one.
func (d *Facts) callAgain() {
	if d.Ran {
		d.State.Calls++
	}
}

// Deliberate reports whether err is an outcome that the handler chose, rather than an error that it
// met.
func Deliberate(err error) bool {
	return err != nil && (IsOf[*outcome.CancelError](err) || IsOf[*outcome.SnoozeError](err) || IsOf[*outcome.NextInError](err) || IsOf[*outcome.YieldError](err) || IsOf[*outcome.AwaitError](err) ||
		IsOf[*outcome.RetryAfterError](err) || IsOf[*outcome.SkipRetryError](err) || IsOf[*outcome.FatalError](err) || IsOf[*plan.SkippedError](err))
}

// IsOf reports whether an error is of a type, or wraps one that is.
func IsOf[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// DecideEarly settles a task that is not to be run at all; false if it is to be run.
func (d *Decision) DecideEarly(v *Verdict) bool {
	d.begin(v)
	switch {
	case d.Claimed.Cancelled:
		d.endCancelled(v, nil, d.Claimed.Order)
	case d.Body.Activity != nil && d.State.Retire != 0 && d.Claimed.Due == d.State.Retire:
		v.Quiet = true
		d.finish(v, store.VerbComplete, store.StatusCompleted, "rested")
	case d.settleInQuiet(v):
	default:
		if !d.misfired(v) {
			return false
		}
	}
	d.account(v)
	return true
}
