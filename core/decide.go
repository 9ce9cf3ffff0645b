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
	attempt     int // of this occurrence, from 1
	body        *body
	state       state      // as it was claimed, with what its run has set
	kind        KindConfig // the settings of the task's kind
	ownAttempts int        // that the settings of the kind itself name, without those of other kinds
	process     string     // who ran it
	next        func(spec cronSpec, after store.Millis) (store.Millis, error)
	random      func(most time.Duration) time.Duration // a pause up to that

	// Of the run that has ended:
	ran       bool // its handler was called
	took      time.Duration
	alone     bool    // nothing else ran in its process
	order     *[]byte // what was said when the task was told to end; nil if it was not
	inherited int     // children that had failed, and why the last did
	failure   string
	budget    budget
}

// budget is the time that the pull of a run had.
type budget struct {
	spent       bool          // it is up
	left, whole time.Duration // for the run, and for the pull
	nearlyAll   bool          // the run had nearly all of it
}

// decision is one in the making: it may change its copy of the facts, but for what they point to.
type decision struct {
	facts

	group string // what the task counts under when it is settled
}

// newDecision begins a decision with what every verdict has: the run, its kind and group, and how long
// it took.
func newDecision(f facts) (*decision, verdict) {
	d := &decision{facts: f, group: f.body.Group}
	return d, verdict{took: d.took, settlement: store.Settlement{Run: d.claimed.Run, Group: d.group, Kind: d.claimed.Kind}, by: d}
}

// decide turns how a run has ended into what becomes of its task: err is the handler's, or says why it did not run. It depends on
// the facts alone and changes nothing but its own copy of the state. It is the one place that knows what outcomes mean.
func decide(f facts, err error) verdict {
	var (
		cancel *cancelError
		snooze *snoozeError
		yield  *yieldError
		next   *nextInError
		fatal  *fatalError
		skip   *skippedError
		later  *retryAfterError
	)
	d, v := newDecision(f)
	switch {
	case d.order != nil:
		d.endCancelled(&v, err, *d.order)
	case errors.Is(err, ErrStopping) && !deliberate(err):
		d.giveBack(&v)
	case errors.As(err, &skip):
		d.skipOccurrence(&v, skip.reason)
		d.pauseIfHopeless(&v, d.inherited, d.failure)
	case err == nil && d.body.overlap().spawns():
		v.quiet = true
		d.nextDue(&v, d.interval())
		d.pauseIfHopeless(&v, d.inherited, d.failure)
	case err == nil:
		d.succeed(&v, 0)
	case errors.As(err, &next):
		d.succeed(&v, max(next.after, schedule.MinInterval))
	case errors.As(err, &snooze):
		d.putOff(&v, OutcomeSnoozed, snooze.after)
	case errors.As(err, &yield):
		d.state.Checkpoint = yield.checkpoint
		d.putOff(&v, OutcomeYielded, yield.after)
	case errors.As(err, &later):
		d.retryLater(&v, later, err)
	case errors.As(err, &cancel):
		d.note(&v, OutcomeCancelled, err)
		d.end(&v, store.VerbCancel, StatusCancelled, "handler")
	case errors.As(err, &fatal):
		v.err = err
		if d.ran {
			d.note(&v, OutcomeFailed, err)
		} else {
			d.crashes(err)
			v.outcome = fatal.outcome()
		}
		d.end(&v, store.VerbFail, StatusFailed, fatal.reason)
	default:
		d.fail(&v, err)
	}
	return v
}

// decideEarly settles what is not to be run at all; false if it is to be run.
func decideEarly(f facts) (verdict, bool) {
	d, v := newDecision(f)
	switch {
	case d.claimed.Cancelled:
		d.endCancelled(&v, nil, d.claimed.Order)
	case d.body.Activity != nil && d.state.Retire != 0 && d.claimed.Due == d.state.Retire:
		v.quiet = true
		d.end(&v, store.VerbComplete, StatusCompleted, "rested")
	default:
		return v, d.misfired(&v)
	}
	return v, true
}
