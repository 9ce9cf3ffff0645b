package core

// The verdict on a run, and the parts that a decision makes one of.

import (
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
	quiet      bool          // it counts nowhere: nothing of the user's has run, nor should have
	warning    warning       // what the log is to say of it
	because    waits         // why it waits, if that is neither its time nor another attempt
	why        error         // what put it off
	pause      time.Duration // it is not due again sooner than this from now
	busy       *store.Hold   // holds the tasks of its limit key, which would meet the same limit
}

// waits is why a task waits: a number, as warnings are.
type waits uint8

const (
	waitsDue waits = iota
	waitsGate
	waitsQuiet
	waitsResting
	waitsCooling
)

func (w waits) code() BecauseCode {
	return [...]BecauseCode{"", BecauseGate, BecauseQuiet, BecauseResting, BecauseCooling}[w]
}

// warning is what the log is to say of a verdict: a number, as a run is as large as a size of Go's allocator.
type warning uint8

const (
	warnNothing warning = iota
	warnNoCron
	warnTooLong
)

func (w warning) String() string {
	return [...]string{
		"", "the next time of a cron expression cannot be computed; the task is tried again in an hour",
		"a task takes longer than a pull has time for, and is paused",
	}[w]
}

// release gives a run back as it was claimed: nothing is charged, and its place in the queue is kept.
func release(c *Claimed) store.Settlement {
	return store.Settlement{Run: c.Run, Verb: store.VerbRelease, Due: store.When{At: c.Due}, Kind: c.Kind, BodyLen: len(c.Body)}
}

// succeed completes the task, or its occurrence. interval, if not zero, is the new one of a recurring task.
func (d *decision) succeed(v *verdict, interval time.Duration) {
	d.note(v, OutcomeSuccess, nil)
	d.heard(v)
	d.passed()
	switch {
	case d.body.Activity != nil:
		d.state.Failures = 0
		d.rest(v)
	case !d.body.recurs():
		d.finish(v, store.VerbComplete, StatusCompleted, "")
	case interval > 0 && !d.body.Manual:
		d.state.Failures = 0
		d.nextOccurrence()
		if d.body.Cron == "" {
			d.state.Interval = interval
		}
		d.again(v, store.When{After: interval})
	default:
		d.state.Failures = 0
		d.nextDue(v, d.interval())
	}
}

// fail counts an attempt, and repeats it while there are some left.
func (d *decision) fail(v *verdict, err error) {
	v.err = err
	d.state.ErrorCount++
	d.note(v, OutcomeFailed, err)
	d.state.Attempt++
	kind := d.pauses()
	if !isOf[*skipRetryError](err) && d.state.Attempt < d.attempts(kind) {
		v.retried = true
		d.sameOccurrence()
		d.again(v, store.When{After: d.pauseOf(kind, d.state.Attempt)})
		return
	}
	d.failOccurrence(v, err)
}

// failOccurrence ends an occurrence of which all attempts have failed.
func (d *decision) failOccurrence(v *verdict, err error) {
	d.heard(v)
	switch {
	case d.body.Activity != nil:
		d.state.Failures++
		d.coolOrRest(v)
	case !d.body.recurs():
		d.finish(v, store.VerbFail, StatusFailed, deathReason(err))
	default:
		d.state.Failures++
		d.nextDue(v, schedule.Stretch(d.interval(), d.state.Failures))
		d.pauseIfHopeless(v, 1, err.Error())
	}
}

// deathReason says why a task is dead whose handler failed: there was no attempt left, or it wanted none.
func deathReason(err error) string {
	if isOf[*skipRetryError](err) {
		return "no_retry"
	}
	return "attempts"
}

// pauseIfHopeless pauses a recurring task whose occurrences keep failing: of those in a row, some have failed just now.
// After it was resumed it gets as many again.
func (d *decision) pauseIfHopeless(v *verdict, justNow int, why string) {
	if d.hopeless(justNow) {
		reason := clip(fmt.Sprintf("%s: %s", failedInARow(d.state.Failures), why))
		v.settlement.Hold = Order{By: byDuly, Reason: reason}.encode()
	}
}

// hopeless reports whether so many occurrences have failed in a row that the task is to be paused.
func (d *decision) hopeless(justNow int) bool {
	most := d.body.PauseAfter
	if most == 0 {
		most = d.kind.PauseAfter
	}
	n := d.state.Failures
	return most > 0 && !d.body.Manual && justNow > 0 && n/most > (n-justNow)/most
}

// attempts that an occurrence of the task has.
func (d *decision) attempts(kind KindConfig) int {
	switch {
	case d.body.MaxAttempts > 0:
		return d.body.MaxAttempts
	case d.body.Activity != nil: // activity brings the next one, whatever other kinds have by default
		return max(d.ownAttempts, 1)
	case d.body.recurs() && !d.body.Manual:
		return 1 // the next occurrence is the retry, and its interval stretches
	default:
		return kind.MaxAttempts
	}
}

// putOff leaves the occurrence as it is, for later.
func (d *decision) putOff(v *verdict, o Outcome, wait time.Duration) {
	d.note(v, o, nil)
	d.sameOccurrence()
	d.again(v, store.When{After: min(max(wait, 0), maxDelay)})
}

// again lets the task wait until it is due, but not before it may start again.
func (d *decision) again(v *verdict, due store.When) {
	v.status = StatusWaiting
	due = d.hush(d.delay(v, due))
	v.settlement.Verb, v.settlement.Due, v.settlement.State = store.VerbAgain, due, d.state.Encode()
}

// finish ends the task with a record. A dead task keeps its body, so that it can be replayed.
func (d *decision) finish(v *verdict, verb store.Verb, status Status, reason string) {
	d.heard(v)
	rec := d.record(reason)
	if verb == store.VerbFail {
		rec.Body, rec.Origin = d.claimed.Body, nil // it has both
	}
	d.endWith(v, verb, status, &rec)
}

// record is what is kept of the task if it ends now.
func (d *decision) record(reason string) record.Finished {
	return record.Finished{
		Kind: d.claimed.Kind, Level: d.claimed.Level, Submitted: d.claimed.Submitted, Due: d.nominal(),
		Reason: reason, Group: d.group, State: d.state.Encode(), Origin: d.body.Origin,
	}
}

// endWith ends the task with a record that was made already.
func (d *decision) endWith(v *verdict, verb store.Verb, status Status, rec *record.Finished) {
	v.status, rec.Callback = status, d.end(status)
	v.settlement.Verb, v.settlement.Record = verb, rec.Encode()
}

// note adds the run to the task's history, and to the statistics of its kind.
func (d *decision) note(v *verdict, o Outcome, err error) {
	v.outcome = o
	d.crashes(nil)
	d.state.RunCount++
	d.state.CutOffs = 0 // its time was enough
	if !isOf[*heldError](err) {
		d.state.Idle = 0 // its gate was open
	}
	countRetryAfters(d.state, err)
	run := record.Run{Started: d.now.Add(-v.took), Duration: v.took, Attempt: d.attempt, Outcome: string(o), Used: d.used.stored()}
	if err != nil {
		run.Error = clip(err.Error())
	}
	d.add(run)
	*d.tally = store.RunStat{Kind: d.claimed.Kind, Schedule: d.body.schedule(), Duration: v.took, Lag: d.claimedAt.Sub(d.claimed.Due)}
	v.settlement.Tally = d.tally
	if o == OutcomeFailed {
		d.tally.Failed = true
		d.tally.Failure = (&record.Failure{Agent: d.claimed.Agent, ID: d.claimed.ID, Error: run.Error}).Encode()
	}
}

// whyCrashed is the error of a run that died with its process.
const whyCrashed = "its process died: its lease ran out, and its task was taken over"

// crashes adds the runs that ended without a result since the state was last written.
func (d *decision) crashes(err error) {
	for range d.claimed.Crashes {
		run := record.Run{Attempt: d.attempt, Outcome: string(OutcomeCrashed), Error: whyCrashed}
		if err != nil {
			run.Error = clip(err.Error())
		}
		d.state.RunCount++
		d.state.ErrorCount++
		d.add(run)
	}
}

func (d *decision) nominal() store.Millis { return nominal(d.claimed, d.state) }

// nominal is when an occurrence was first due, without its jitter. A run that was asked for by hand is due when it was asked for: the
// occurrence that was planned stays planned.
func nominal(c *store.Claimed, s *state) store.Millis {
	if s.Nominal != 0 && !byHand(c, s) {
		return s.Nominal
	}
	return c.Due
}

// byHand reports whether a run was asked for by hand, before the occurrence that is planned.
func byHand(c *store.Claimed, s *state) bool { return s.Nominal != 0 && c.Due < s.Nominal }

// sameOccurrence remembers which occurrence it is that is due again. One that was asked for by hand leaves the one that
// was planned in place.
func (d *decision) sameOccurrence() {
	if !d.byHand() {
		d.state.Nominal = d.nominal()
	}
}

func (d *decision) byHand() bool { return byHand(d.claimed, d.state) }

// interval is that which NextIn has set, or the task's own.
func (d *decision) interval() time.Duration {
	if d.state.Interval != 0 {
		return d.state.Interval
	}
	return d.body.Every
}

// pauseOf is the pause after a failed attempt of a kind, the first being 1.
func (d *decision) pauseOf(kind KindConfig, attempt int) time.Duration {
	return d.random(kind.backoff(attempt))
}
