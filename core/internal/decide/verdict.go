package decide

// The verdict on a run, and the parts of which a decision makes it.

import (
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/outcome"
	"github.com/seed-6f6f2c11/duly/core/internal/plan"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Verdict is the result of a decision: how a run is settled, and how it counts once that is stored.
type Verdict struct {
	Settlement store.Settlement
	Outcome    model.Outcome
	Status     store.Status
	Took       time.Duration
	Err        error // what counts as a failure
	Retried    bool
	Released   bool
	TooLong    bool          // it was paused, as it takes longer than a pull has time for
	Quiet      bool          // it counts nowhere: no handler has run, nor should have
	Warning    warning       // what to log about it
	Because    waits         // why it waits, if that is neither its time nor another attempt
	Why        error         // the error that put it off
	pause      time.Duration // it is not due again before this has passed
	Busy       *store.Hold   // holds the tasks of its limit key, which would meet the same limit
}

// waits is why a task waits: a number, as warnings are.
type waits uint8

// What it waits for.
const (
	waitsDue waits = iota
	waitsGate
	waitsQuiet
	WaitsResting
	waitsCooling
)

func (w waits) Code() model.BecauseCode {
	return [...]model.BecauseCode{"", model.BecauseGate, model.BecauseQuiet, model.BecauseResting, model.BecauseCooling}[w]
}

// warning is what to log about a verdict: a number, as a run exactly fills a size class of Go's allocator.
type warning uint8

// What it says.
const (
	WarnNothing warning = iota
	warnNoCron
	warnTooLong
)

func (w warning) String() string {
	return [...]string{
		"", "the next time of a cron expression cannot be computed; the task is tried again in an hour",
		"a task takes longer than a pull has time for, and is paused",
	}[w]
}

// Release returns a run as it was claimed: nothing is charged, and its place in the queue is kept.
func Release(c *store.Claimed) store.Settlement {
	return store.Settlement{Run: c.Run, Verb: store.VerbRelease, Due: moment.When{At: c.Due}, Kind: c.Kind, BodyLen: len(c.Body)}
}

// succeed completes the task, or its occurrence. interval, if not zero, is the new one of a recurring task.
func (d *Decision) succeed(v *Verdict, interval time.Duration) {
	d.note(v, model.OutcomeSuccess, nil)
	d.heard(v)
	d.passed()
	switch {
	case d.Body.Activity != nil:
		d.State.Failures = 0
		d.rest(v)
	case !d.Body.Recurs():
		d.finish(v, store.VerbComplete, store.StatusCompleted, "")
	case interval > 0 && !d.Body.Manual:
		d.State.Failures = 0
		d.nextOccurrence()
		if d.Body.Cron == "" {
			d.State.Interval = interval
		}
		d.again(v, moment.When{After: interval})
	default:
		// guard: failures-cleared
		d.State.Failures = 0
		d.nextDue(v, d.interval())
	}
}

// fail counts an attempt, and repeats it while there are some left.
func (d *Decision) fail(v *Verdict, err error) {
	v.Err = err
	d.State.ErrorCount++
	d.note(v, model.OutcomeFailed, err)
	// guard: attempt
	d.State.Attempt++
	kind := d.pauses()
	if !IsOf[*outcome.SkipRetryError](err) && d.State.Attempt < d.attempts(kind) {
		v.Retried = true
		// guard: signal-heard
		d.sameOccurrence()
		d.again(v, moment.When{After: d.pauseOf(kind, d.State.Attempt)})
		return
	}
	d.failOccurrence(v, err)
}

// failOccurrence ends an occurrence of which all attempts have failed.
func (d *Decision) failOccurrence(v *Verdict, err error) {
	// guard: signal-ends
	d.heard(v)
	switch {
	case d.Body.Activity != nil:
		d.State.Failures++
		d.coolOrRest(v)
	case !d.Body.Recurs():
		d.finish(v, store.VerbFail, store.StatusFailed, deathReason(err))
	default:
		d.State.Failures++
		// guard: stretch
		d.nextDue(v, schedule.Stretch(d.interval(), d.State.Failures))
		d.pauseIfHopeless(v, 1, err.Error())
	}
}

// deathReason says why a task whose handler failed is dead: no attempt was left, or the handler wanted none.
func deathReason(err error) string {
	if IsOf[*outcome.SkipRetryError](err) {
		return "no_retry"
	}
	return "attempts"
}

// pauseIfHopeless pauses a recurring task whose occurrences keep failing: of those in a row, some have failed just now.
// After it was resumed it gets as many again.
func (d *Decision) pauseIfHopeless(v *Verdict, justNow int, why string) {
	if d.Hopeless(justNow) {
		reason := check.Clip(fmt.Sprintf("%s: %s", plan.FailedInARow(d.State.Failures), why))
		v.Settlement.Hold = model.Order{By: check.ByDuly, Reason: reason}.Encode()
	}
}

// Hopeless reports whether so many occurrences have failed in a row that the task is to be paused.
func (d *Facts) Hopeless(justNow int) bool {
	most := d.Body.PauseAfter
	if most == 0 {
		most = d.Kind.PauseAfter
	}
	// guard: pause-after
	n := d.State.Failures
	return most > 0 && !d.Body.Manual && justNow > 0 && n/most > (n-justNow)/most
}

// attempts that an occurrence of the task has.
func (d *Facts) attempts(kind model.KindConfig) int {
	switch {
	case d.Body.MaxAttempts > 0:
		return d.Body.MaxAttempts
	case d.Body.Activity != nil: // activity brings the next one, regardless of the default for all kinds
		return max(d.OwnAttempts, 1)
	case d.Body.Recurs() && !d.Body.Manual:
		return 1 // the next occurrence is the retry, and its interval stretches
	default:
		return kind.MaxAttempts
	}
}

// putOff repeats the same occurrence later.
func (d *Decision) putOff(v *Verdict, o model.Outcome, wait time.Duration) {
	d.note(v, o, nil)
	d.sameOccurrence()
	d.again(v, moment.When{After: min(max(wait, 0), check.MaxDelay)})
}

// again lets the task wait until it is due, but not before it may start again.
func (d *Decision) again(v *Verdict, due moment.When) {
	v.Status = store.StatusWaiting
	due = d.delayPastQuiet(d.Delay(v, due))
	v.Settlement.Verb, v.Settlement.Due, v.Settlement.State = store.VerbAgain, due, d.State.Encode()
}

// finish ends the task with a record. A dead task keeps its body, so that it can be replayed.
func (d *Decision) finish(v *Verdict, verb store.Verb, status store.Status, reason string) {
	d.heard(v)
	rec := d.record(reason)
	if verb == store.VerbFail {
		rec.Body, rec.Origin = d.Claimed.Body, nil // the body contains the origin
	}
	d.endWith(v, verb, status, &rec)
}

// record is the record of the task if it ends now.
func (d *Decision) record(reason string) record.Finished {
	return record.Finished{
		Kind: d.Claimed.Kind, Level: d.Claimed.Level, Submitted: d.Claimed.Submitted, Due: d.nominal(),
		Reason: reason, Group: d.Group, State: d.State.Encode(), Origin: d.Body.Origin,
	}
}

// endWith ends the task with a record that was made already.
func (d *Decision) endWith(v *Verdict, verb store.Verb, status store.Status, rec *record.Finished) {
	v.Status, rec.Callback = status, d.end(status)
	v.Settlement.Verb, v.Settlement.Record, v.Settlement.Recurs = verb, rec.Encode(), d.Body.Recurs()
}

// note adds the run to the task's history, and to the statistics of its kind.
func (d *Decision) note(v *Verdict, o model.Outcome, err error) {
	v.Outcome = o
	d.crashes(nil)
	d.State.RunCount++
	// guard: success-noted
	if o == model.OutcomeSuccess && d.State.Watched != nil {
		d.State.Watched.Succeeded = d.Now
	}
	d.State.CutOffs = 0 // its time was enough
	if !IsOf[*outcome.HeldError](err) {
		d.State.Idle = 0 // its gate was open
	}
	countRetryAfters(d.State, err)
	run := record.Run{Started: d.Now.Add(-v.Took), Duration: v.Took, Attempt: d.Attempt, Outcome: string(o), Used: codec.UsageRecord(d.Used)}
	if err != nil {
		run.Error = check.Clip(err.Error())
	}
	d.add(run)
	*d.Tally = store.RunStat{Kind: d.Claimed.Kind, Schedule: d.Body.Schedule(), Duration: v.Took, Lag: d.ClaimedAt.Sub(d.Claimed.Due)}
	v.Settlement.Tally = d.Tally
	if o == model.OutcomeFailed {
		d.Tally.Failed = true
		d.Tally.Failure = (&record.Failure{Agent: d.Claimed.Agent, ID: d.Claimed.ID, Error: run.Error}).Encode()
	}
}

// crashes adds the runs that ended without a result since the state was last written.
func (d *Facts) crashes(err error) {
	// guard: crash-recorded
	for range d.Claimed.Crashes {
		run := record.Run{Attempt: d.Attempt, Outcome: string(model.OutcomeCrashed), Error: codec.WhyCrashed}
		if err != nil {
			run.Error = check.Clip(err.Error())
		}
		d.State.RunCount++
		d.State.ErrorCount++
		// guard: crash-is-no-failure
		d.add(run)
	}
}

func (d *Facts) nominal() moment.Millis { return Nominal(d.Claimed, d.State) }

// Nominal is when an occurrence was first due, without its jitter. A run by hand is due when it was asked for: the
// planned occurrence stays planned.
func Nominal(c *store.Claimed, s *codec.State) moment.Millis {
	if s.Nominal != 0 && !ByHand(c, s) {
		return s.Nominal
	}
	return c.Due
}

// ByHand reports whether a run was asked for by hand, before the planned occurrence.
func ByHand(c *store.Claimed, s *codec.State) bool { return s.Nominal != 0 && c.Due < s.Nominal }

// sameOccurrence records which occurrence is due again. One that was asked for by hand leaves the planned one
// in place.
func (d *Facts) sameOccurrence() {
	if !d.byHand() {
		d.State.Nominal = d.nominal()
	}
}

func (d *Facts) byHand() bool { return ByHand(d.Claimed, d.State) }

// interval is the one that NextIn has set, or the task's own.
func (d *Facts) interval() time.Duration {
	if d.State.Interval != 0 {
		return d.State.Interval
	}
	return d.Body.Every
}

// pauseOf is the pause after a failed attempt of a kind, the first being 1.
func (d *Facts) pauseOf(kind model.KindConfig, attempt int) time.Duration {
	return d.Random(kind.LongestPause(attempt))
}
