package core

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// verdict is what becomes of a run: how it is settled, and how it counts once that is stored.
type verdict struct {
	settlement store.Settlement
	outcome    Outcome
	status     Status
	took       time.Duration
	err        error // what counts as a failure
	retried    bool
	released   bool
	tooLong    bool          // it was paused, as it takes longer than a pull has time for
	why        error         // what put it off
	pause      time.Duration // it is not due again sooner than this from now
	busy       *store.Hold   // holds the tasks of its snooze key, which would meet the same limit
	because    BecauseCode   // why it waits, if that is neither its time nor another attempt
	quiet      bool          // it counts nowhere: nothing of the user's has run, nor should have
}

func release(c *Claimed) store.Settlement {
	return store.Settlement{Run: c.Run, Verb: store.VerbRelease, Due: store.When{At: c.Due}, Kind: c.Kind, BodyLen: len(c.Body)}
}

// decide turns a handler's outcome into a verdict. It is the one place that knows what outcomes mean.
func (r *run) decide(err error, took time.Duration, ran bool) verdict {
	var (
		cancel *cancelError
		snooze *snoozeError
		yield  *yieldError
		next   *nextInError
		fatal  *fatalError
		skip   *skippedError
		later  *retryAfterError
	)
	v := verdict{took: took, settlement: store.Settlement{Run: r.claimed.Run, Group: r.body.Group, Kind: r.claimed.Kind}}
	switch order, cancelled := r.cancelled(); {
	case cancelled:
		r.endCancelled(&v, err, order, ran)
	case errors.Is(err, ErrStopping) && !deliberate(err):
		r.giveBack(&v, ran)
	case errors.As(err, &skip):
		r.skipOccurrence(&v, skip.reason)
		r.pauseIfHopeless(&v, r.inherited, r.failure)
	case err == nil && r.body.overlap().spawns():
		v.quiet = true
		r.nextDue(&v, r.interval())
		r.pauseIfHopeless(&v, r.inherited, r.failure)
	case err == nil:
		r.succeed(&v, 0)
	case errors.As(err, &next):
		r.succeed(&v, max(next.after, schedule.MinInterval))
	case errors.As(err, &snooze):
		r.putOff(&v, OutcomeSnoozed, snooze.after)
	case errors.As(err, &yield):
		r.state.Checkpoint = yield.checkpoint
		r.putOff(&v, OutcomeYielded, yield.after)
	case errors.As(err, &later):
		r.retryLater(&v, later, err)
	case errors.As(err, &cancel):
		r.note(&v, OutcomeCancelled, err)
		r.end(&v, store.VerbCancel, StatusCancelled, "handler")
	case errors.As(err, &fatal):
		v.err = err
		if ran {
			r.note(&v, OutcomeFailed, err)
		} else {
			r.crashes(err)
			v.outcome = fatal.outcome()
		}
		r.end(&v, store.VerbFail, StatusFailed, fatal.reason)
	default:
		r.fail(&v, err)
	}
	return v
}

// succeed completes the task, or its occurrence. interval, if not zero, is the new one of a recurring task.
func (r *run) succeed(v *verdict, interval time.Duration) {
	r.note(v, OutcomeSuccess, nil)
	switch {
	case r.body.Activity != nil:
		r.state.Failures = 0
		r.rest(v)
	case !r.body.recurs():
		r.end(v, store.VerbComplete, StatusCompleted, "")
	case interval > 0:
		r.state.Failures = 0
		r.nextOccurrence()
		if r.body.Cron == "" {
			r.state.Interval = interval
		}
		r.again(v, store.When{After: interval})
	default:
		r.state.Failures = 0
		r.nextDue(v, r.interval())
	}
}

// fail counts an attempt, and repeats it while there are some left.
func (r *run) fail(v *verdict, err error) {
	v.err = err
	r.state.ErrorCount++
	r.note(v, OutcomeFailed, err)
	r.state.Attempt++
	kind := r.pauses()
	if _, skip := errors.AsType[*skipRetryError](err); !skip && r.state.Attempt < r.attempts(kind) {
		v.retried = true
		r.sameOccurrence()
		r.again(v, store.When{After: kind.backoff(r.state.Attempt)})
		return
	}
	r.failOccurrence(v, err)
}

// failOccurrence ends an occurrence of which all attempts have failed.
func (r *run) failOccurrence(v *verdict, err error) {
	switch {
	case r.body.Activity != nil:
		r.state.Failures++
		r.coolOrRest(v)
	case !r.body.recurs():
		r.end(v, store.VerbFail, StatusFailed, deathReason(err))
	default:
		r.state.Failures++
		r.nextDue(v, schedule.Stretch(r.interval(), r.state.Failures))
		r.pauseIfHopeless(v, 1, err.Error())
	}
}

// deathReason says why a task is dead whose handler failed: there was no attempt left, or it wanted none.
func deathReason(err error) string {
	if _, skip := errors.AsType[*skipRetryError](err); skip {
		return "no_retry"
	}
	return "attempts"
}

// pauseIfHopeless pauses a recurring task whose occurrences keep failing: of those in a row, some have failed just now.
// After it was resumed it gets as many again.
func (r *run) pauseIfHopeless(v *verdict, justNow int, why string) {
	if r.hopeless(justNow) {
		reason := clip(fmt.Sprintf("%s: %s", failedInARow(r.state.Failures), why))
		v.settlement.Hold = Hold{By: byDuly, Reason: reason}.encode()
	}
}

func (r *run) hopeless(justNow int) bool {
	most := r.body.PauseAfter
	if most == 0 {
		most = r.pull.s.kind(r.claimed.Kind).PauseAfter
	}
	n := r.state.Failures
	return most > 0 && justNow > 0 && n/most > (n-justNow)/most
}

// attempts that an occurrence of the task has.
func (r *run) attempts(kind KindConfig) int {
	switch {
	case r.body.MaxAttempts > 0:
		return r.body.MaxAttempts
	case r.body.Activity != nil: // activity brings the next one, whatever other kinds have by default
		return max(r.pull.s.config.Kinds[r.claimed.Kind].MaxAttempts, 1)
	case r.body.recurs():
		return 1 // the next occurrence is the retry, and its interval stretches
	default:
		return kind.MaxAttempts
	}
}

// putOff leaves the occurrence as it is, for later.
func (r *run) putOff(v *verdict, o Outcome, d time.Duration) {
	r.note(v, o, nil)
	r.sameOccurrence()
	r.again(v, store.When{After: min(max(d, 0), maxDelay)})
}

// again lets the task wait until it is due, but not before it may start again.
func (r *run) again(v *verdict, due store.When) {
	v.status = StatusWaiting
	v.settlement.Verb, v.settlement.Due, v.settlement.State = store.VerbAgain, r.delay(v, due), r.state.Encode()
}

func (r *run) end(v *verdict, verb store.Verb, status Status, reason string) {
	rec := r.record(reason)
	if verb == store.VerbFail {
		rec.Body = r.claimed.Body
	}
	r.endWith(v, verb, status, &rec)
}

// record is what is kept of the task if it ends now.
func (r *run) record(reason string) record.Finished {
	return record.Finished{
		Kind: r.claimed.Kind, Level: r.claimed.Level, Submitted: r.claimed.Submitted, Due: r.nominal(),
		Reason: reason, Group: r.body.Group, State: r.state.Encode(),
	}
}

func (*run) endWith(v *verdict, verb store.Verb, status Status, rec *record.Finished) {
	v.status = status
	v.settlement.Verb, v.settlement.Record = verb, rec.Encode()
}

// note adds the run to the task's history, and to the statistics of its kind.
func (r *run) note(v *verdict, o Outcome, err error) {
	v.outcome = o
	r.crashes(nil)
	r.state.RunCount++
	r.state.Idle, r.state.CutOffs = 0, 0 // its gate was open, and its time was enough
	countRetryAfters(&r.state, err)
	run := record.Run{Started: r.pull.s.storeNow().Add(-v.took), Duration: v.took, Attempt: r.info.Attempt, Outcome: string(o)}
	if err != nil {
		run.Error = clip(err.Error())
	}
	r.add(run)
	v.settlement.Tally = &store.RunStat{
		Kind: r.claimed.Kind, Schedule: r.body.schedule(), Duration: v.took, Lag: r.info.Claimed.Sub(r.claimed.Due),
	}
	if o == OutcomeFailed {
		v.settlement.Tally.Failed = true
		v.settlement.Tally.Failure = (&record.Failure{Agent: r.claimed.Agent, ID: r.claimed.ID, Error: run.Error}).Encode()
	}
}

// crashes adds the runs that ended without a result since the state was last written.
func (r *run) crashes(err error) {
	for range r.claimed.Crashes {
		run := record.Run{Attempt: r.info.Attempt, Outcome: string(OutcomeCrashed), Error: "its lease ran out, and its task was taken over"}
		if err != nil {
			run.Error = clip(err.Error())
		}
		r.state.RunCount++
		r.state.ErrorCount++
		r.add(run)
	}
}

// nominal is when this occurrence was first due, without its jitter. A run that was asked for by hand is due when it was
// asked for: the occurrence that was planned stays planned.
func (r *run) nominal() store.Millis {
	if r.state.Nominal != 0 && !r.byHand() {
		return r.state.Nominal
	}
	return r.claimed.Due
}

// sameOccurrence remembers which occurrence it is that is due again. One that was asked for by hand leaves the one that
// was planned in place.
func (r *run) sameOccurrence() {
	if !r.byHand() {
		r.state.Nominal = r.nominal()
	}
}

// byHand reports whether the task was made due before its time.
func (r *run) byHand() bool { return r.state.Nominal != 0 && r.claimed.Due < r.state.Nominal }

func (r *run) interval() time.Duration {
	if r.state.Interval != 0 {
		return r.state.Interval
	}
	return r.body.Every
}
