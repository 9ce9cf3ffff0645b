package world

// What has to become of a task whose handler has ended, by what the handler said.

import (
	"errors"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

// outcomeAudit is the part of the auditor that looks at what a handler has said.
type outcomeAudit struct{ *auditor }

// outcome is a settlement with what is known about it.
// It has both sides of the settlement: before and after are what the tracker said, s is what the
// scheduler has decided, and run is what the handler has done.
type outcome struct {
	t             *task
	s             *store.Settlement
	run           *run // nil if no handler was called
	lease         lease
	before, after core.TaskInfo
	ending        bool
	due           moment.Millis
}

// decided holds what is promised of how a run's end is decided.
// A settlement that the store has taken is compared here with what its handler said; whether the store
// could take it at all was held before.
func (a outcomeAudit) decided(p *process, o *outcome) {
	a.must(runsAtMost, len(o.after.Runs) <= 20, "%s has %d", o.t.ref, len(o.after.Runs))
	a.must(skipsAreCounted, o.after.SkipCount >= o.before.SkipCount, "%s: %d after %d", o.t.ref, o.after.SkipCount, o.before.SkipCount)
	a.must(dueIsShown, o.t.phase != waiting || o.t.resting() || o.after.NextRun.Equal(o.due.Time()), "%s: %s", o.t.ref, o.after.NextRun)
	if o.run != nil && o.run.over != 0 && !o.run.stuck && o.s.Verb != store.VerbRelease { // these are not decided when their handlers return
		a.must(waitIsNoDelay, o.s.Waited >= 0 && o.s.Waited <= a.w.elapsed()-o.run.over, "%s: %s, and its run has ended %s ago", o.t.ref, o.s.Waited, a.w.elapsed()-o.run.over)
	}
	alone := false
	a.model.each(func(w *watcher) { alone = w.decided != nil && w.decided(o) || alone })
	switch {
	case alone:
	case o.s.Verb == store.VerbRelease:
		a.released(p, o)
		if o.run != nil {
			o.t.history.cuts++
		}
	case o.t.kind == "batch" || o.ending || o.t.spawns():
		if o.s.Hold != nil && o.s.Due.At == o.lease.due {
			o.t.history.last = 0 // it was cut off too often: given back, though it is paused
		}
		return // what others in its call have done, and who has cancelled it, counts more
	case o.run == nil && a.w.restored: // its handler was called after the past that the store has
	case o.run == nil:
		a.unstarted(o)
	case a.w.restored && o.run.cause != nil: // the store has forgotten why the run was to end
	case o.cutOff():
		a.tooLong(o)
	default:
		o.t.history.cuts = 0
		a.countedRun(o)
		a.afterRun(o)
	}
}

// cutOff reports whether a run was ended by the end of its pull, and its handler had nothing else to say.
// A handler that returns something else than an error has made its decision, also when it was cut off.
func (o *outcome) cutOff() bool {
	return o.said() == draw.Fail && errors.Is(o.run.cause, core.ErrStopping)
}

// tooLong checks the outcome of a task whose run was cut off and that is not released.
// A run that was cut off is normally released, which released checks. It is settled in another way
// only if it was the third in a row, and then with a pause, as it will never fit into its pulls.
func (a outcomeAudit) tooLong(o *outcome) {
	o.t.history.last = 0 // it is given back, though it is paused
	b, c := &o.before, &o.after
	a.must(releaseUncharged, b.Attempt == c.Attempt && b.RunCount == c.RunCount && b.ErrorCount == c.ErrorCount, "%s was cut off, and charged", o.t.ref)
	a.must(tooLongPauses, o.s.Hold != nil && o.t.history.cuts >= 2, "%s: %q after it was cut off %d times", o.t.ref, o.s.Verb, o.t.history.cuts)
	o.t.history.cuts = 0
}

// A resting task is live and waits, but for activity: it has no due time worth comparing.
func (t *task) resting() bool { return t.activity != nil && t.activity.first == 0 }

// released holds that a run that is given back costs nothing.
// Without a handler there was nothing to charge. With one, its context must be done or its process
// about to end: a run that goes well is never given back.
func (a outcomeAudit) released(p *process, o *outcome) {
	b, c := &o.before, &o.after
	a.must(releaseUncharged, b.Attempt == c.Attempt && b.RunCount == c.RunCount && b.ErrorCount == c.ErrorCount && b.ConsecutiveFailures == c.ConsecutiveFailures,
		"%s: attempt %d, runs %d, errors %d; before: %d, %d, %d", o.t.ref, c.Attempt, c.RunCount, c.ErrorCount, b.Attempt, b.RunCount, b.ErrorCount)
	stops := o.run == nil || o.run.ctx.Err() != nil || p.stopping
	a.must(releaseHasACause, stops, "%s was given back while its process went on", o.t.ref)
}

// unstarted checks the outcome of a task that no handler was called for.
// The scheduler settles without a call, for instance, when a task has crashed too often or when
// its schedule skips an occurrence.
func (a outcomeAudit) unstarted(o *outcome) {
	switch o.s.Verb {
	case store.VerbFail:
		a.must(crashesAtMost, o.lease.crashes > a.w.plan.Settings.MaxCrashes, "%s is dead after %d crashes", o.t.ref, o.lease.crashes)
	case store.VerbComplete:
		a.must(successCompletes, o.t.activity != nil, "%s was completed, and never run", o.t.ref)
	case store.VerbAgain, store.VerbRest:
		a.must(failureRetries, o.t.recurs() || o.t.activity != nil, "%s is due again, and was not run", o.t.ref)
	default:
	}
}

// said is what a handler has said, with what ended it.
// A panic, a Goexit and an abandoned handler are failures like any other. What an abandoned handler
// returns later has no part in it.
func (o *outcome) said() draw.Outcome {
	switch {
	case o.run.stuck || o.run.outcome == draw.Fail || o.run.outcome == draw.Panic || o.run.outcome == draw.Goexit:
		return draw.Fail
	default:
		return o.run.outcome
	}
}

// failed reports whether the attempt has failed.
// RetryAfter is free until it has been said too often in a row; from then on each counts as a failure.
func (a outcomeAudit) failedAttempt(o *outcome) bool {
	switch o.said() {
	case draw.Fail, draw.SkipRetry:
		return true
	case draw.RetryAfter:
		return o.before.RetryAfters+1 > max(a.w.plan.Settings.MaxRetryAfters, 0)
	default:
		return false
	}
}

// countedRun holds how a run is counted.
// A crash and a skipped occurrence each leave an entry in the history and count there as runs,
// although no handler returned: they are taken off, so that exactly this run remains.
func (a outcomeAudit) countedRun(o *outcome) {
	b, c, crashes := &o.before, &o.after, int64(o.lease.crashes)
	runs := c.RunCount - b.RunCount - (c.SkipCount - b.SkipCount) - crashes
	a.must(runsAreCounted, runs == 1, "%s: %d runs after %d, with %d skipped and %d crashes", o.t.ref, c.RunCount, b.RunCount, c.SkipCount-b.SkipCount, crashes)
	wrong := c.ErrorCount - b.ErrorCount - crashes
	want := int64(0)
	if a.failedAttempt(o) {
		want = 1
	}
	a.must(errorsAreCounted, wrong == want, "%s: %d errors after %d, with %d crashes: %s", o.t.ref, c.ErrorCount, b.ErrorCount, crashes, o.run.outcome)
	if last, ok := lastRun(c); a.must(outcomeIsKept, ok, "%s has no run", o.t.ref) {
		a.must(outcomeIsKept, matches(o.said(), a.failedAttempt(o), last.Outcome), "%s: %s after %s", o.t.ref, last.Outcome, o.run.outcome)
	}
	// A result counts only if the handler returned; a run without one leaves the result of an earlier
	// run.
	if o.run.script.Result && o.run.ended && !o.run.stuck {
		a.must(resultIsKept, string(c.Result) == o.run.result, "%s: %s, not %s", o.t.ref, c.Result, o.run.result)
	} else {
		a.must(resultIsKept, string(c.Result) == string(b.Result), "%s: %s, not %s", o.t.ref, c.Result, b.Result)
	}
}

// matches reports whether an outcome in the history belongs to a run.
// A failed attempt is kept as failed with any outcome of the handler, as RetryAfter may be charged.
func matches(said draw.Outcome, failed bool, kept model.Outcome) bool {
	switch {
	case failed:
		return kept == model.OutcomeFailed
	case said == draw.Succeed || said == draw.NextIn:
		return kept == model.OutcomeSuccess
	case said == draw.Cancel:
		return kept == model.OutcomeCancelled
	case said == draw.Yield:
		return kept == model.OutcomeYielded
	default:
		return kept == model.OutcomeSnoozed
	}
}

// afterRun checks the state of a task after its run.
func (a outcomeAudit) afterRun(o *outcome) {
	t, verb := o.t, o.s.Verb
	switch said := o.said(); {
	case a.failedAttempt(o):
		a.afterFailure(o)
	case said == draw.Cancel:
		a.must(handlerCancels, verb == store.VerbCancel, "%s: %q", t.ref, verb)
	case said == draw.Succeed || said == draw.NextIn:
		a.must(failuresInARow, o.after.ConsecutiveFailures == 0, "%s: %d after a success", t.ref, o.after.ConsecutiveFailures)
		switch {
		case t.activity != nil:
			a.must(successCompletes, verb == store.VerbRest, "%s: %q", t.ref, verb)
		case t.recurs():
			a.must(successCompletes, verb == store.VerbAgain, "%s: %q", t.ref, verb)
			a.nextOccurrence(o, 0)
		default:
			a.must(successCompletes, verb == store.VerbComplete, "%s: %q", t.ref, verb)
		}
	default:
		a.putOff(o, said)
	}
}

// putOff checks the outcome of a task whose handler wants to be called later.
// Snooze and Yield are kept to the millisecond, unless a minimum interval holds the task longer.
// RetryAfter may wait for a backoff as well, and is held from below only.
func (a outcomeAudit) putOff(o *outcome, said draw.Outcome) {
	t := o.t
	inv := snoozeUncharged
	if said == draw.RetryAfter {
		inv = retryAfterWaits
	}
	a.must(inv, o.s.Verb == store.VerbAgain && o.after.Attempt == o.before.Attempt && o.after.ConsecutiveFailures == o.before.ConsecutiveFailures,
		"%s: %q, attempt %d after %d", t.ref, o.s.Verb, o.after.Attempt, o.before.Attempt)
	if t.activity == nil {
		wait := o.s.Due.After
		exact := said != draw.RetryAfter && t.def.MinInterval == 0
		a.must(inv, wait >= o.run.asked && (!exact || wait == o.run.asked), "%s: waits %s, and asked for %s", t.ref, wait, o.run.asked)
	}
	// The handler itself has asked for the next run, so that the minimum interval does not apply to
	// it.
	t.history.last = 0
}

// afterFailure checks the outcome of a task whose attempt has failed.
// With attempts left the same occurrence is repeated. Without, a task ends if it does not recur, and
// goes to its next occurrence if it does.
func (a outcomeAudit) afterFailure(o *outcome) {
	t, verb := o.t, o.s.Verb
	most := a.w.attempts(t)
	again := o.said() != draw.SkipRetry && o.before.Attempt < most
	if again {
		a.must(failureRetries, verb == store.VerbAgain && o.after.Attempt == o.before.Attempt+1, "%s: %q, attempt %d after %d of %d", t.ref, verb, o.after.Attempt, o.before.Attempt, most)
		a.afterBackoff(o)
		return
	}
	inv := failureEnds
	if o.said() == draw.SkipRetry {
		inv = skipRetryEnds
	}
	if !t.recurs() && t.activity == nil {
		a.must(inv, verb == store.VerbFail, "%s: %q after attempt %d of %d", t.ref, verb, o.before.Attempt, most)
		return
	}
	a.must(inv, verb == store.VerbAgain || t.activity != nil && verb == store.VerbRest, "%s: %q", t.ref, verb)
	a.must(failuresInARow, o.after.ConsecutiveFailures == o.before.ConsecutiveFailures+1 && o.after.Attempt == 1, "%s: %d after %d", t.ref, o.after.ConsecutiveFailures, o.before.ConsecutiveFailures)
	if t.recurs() {
		a.pausedIfHopeless(o)
		a.nextOccurrence(o, o.after.ConsecutiveFailures)
	}
}

// afterBackoff holds the pause after a failed attempt.
// The pause is random, so that only its bound can be held. A millisecond is added for what is rounded
// up.
func (a outcomeAudit) afterBackoff(o *outcome) {
	t := o.t
	least := a.leastWait(o)
	if o.said() == draw.RetryAfter {
		a.must(retryAfterWaits, o.s.Due.After >= o.run.asked, "%s: waits %s, and asked for %s", t.ref, o.s.Due.After, o.run.asked)
		return
	}
	if t.def != nil && t.def.Backoff < 0 {
		a.must(backoffNone, o.s.Due.After <= max(least, 0), "%s waits %s", t.ref, o.s.Due.After)
		return
	}
	most := max(a.w.backoff(t, o.before.Attempt)+time.Millisecond, least)
	a.must(backoffBound, o.s.Due.After <= most, "%s waits %s after attempt %d: at most %s", t.ref, o.s.Due.After, o.before.Attempt, most)
}

// leastWait is how long a task has to wait at most because of its minimum interval.
// A backoff that is shorter than that is stretched to it, which no promise forbids.
func (outcomeAudit) leastWait(o *outcome) time.Duration {
	if o.t.def == nil {
		return 0
	}
	return o.t.def.MinInterval
}

// A task is paused again at each multiple of PauseAfter: an operator who resumes it allows it as many
// failures again.
func (a outcomeAudit) pausedIfHopeless(o *outcome) {
	most := o.t.def.PauseAfter
	if most == 0 {
		most = a.w.plan.Settings.PauseAfter
	}
	n := o.after.ConsecutiveFailures
	want := most > 0 && n/most > (n-1)/most
	a.must(hopelessPauses, (o.s.Hold != nil) == want, "%s: %d in a row failed, it allows %d, and it was paused: %v", o.t.ref, n, most, o.s.Hold != nil)
}

// nextOccurrence holds when a recurring task is due next.
// The due time is given as a pause after the settlement, as a recurring task by default counts from
// the end of its run; only fixed times come as times.
func (a outcomeAudit) nextOccurrence(o *outcome, failures int) {
	t := o.t
	h := &t.history
	if o.said() == draw.NextIn {
		asked := max(o.run.asked, schedule.MinInterval)
		a.must(nextInIsKept, o.s.Due.After == asked || t.def.MinInterval > 0 && o.s.Due.After >= asked, "%s: in %s, not %s", t.ref, o.s.Due.After, asked)
		// A cron task returns to its expression after NextIn. An interval stays as the handler has set
		// it.
		if h.moved = true; t.def.Cron == "" {
			h.interval = asked
		}
		return
	}
	if t.fixed() {
		a.nextFixed(o, failures)
		return
	}
	inv := everyFromEnd
	if failures > 0 {
		inv = everyStretches
	}
	interval := schedule.Stretch(t.every(), failures)
	later := o.said() == draw.RetryAfter || o.s.Due.After <= interval+t.def.Jitter || t.def.MinInterval > 0 // or as late as the handler asked for
	// A restored store has forgotten runs whose handlers have set the interval.
	a.must(inv, a.w.restored || o.s.Due.After >= interval && later, "%s: in %s, with an interval of %s", t.ref, o.s.Due.After, interval)
}

// nextFixed checks the next occurrence of a task with fixed times.
// It is off for a run that was moved, which has left its grid, and for a minimum interval,
// which may skip occurrences.
func (a outcomeAudit) nextFixed(o *outcome, failures int) {
	t, nominal := o.t, moment.Of(o.after.Due)
	h := &t.history
	// A run that a restored store has forgotten is what its grid began with.
	if h.moved || t.def.MinInterval > 0 || o.s.Due.At == 0 || a.w.restored {
		return
	}
	ran := moment.Of(o.run.info.Occurrence)
	a.must(notInThePast, nominal > ran, "%s: the next occurrence is %s, and that of %s has run", t.ref, ms(nominal), ms(ran))
	if t.def.Cron != "" {
		a.must(cronOnTime, a.fires(t.def, nominal), "%s: %q does not fire at %s", t.ref, t.def.Cron, nominal.Time())
		return
	}
	// The first occurrence that ran fixes the grid; every later one has to be on it.
	grid := h.grid
	if grid == 0 {
		grid = ran
	}
	step := moment.Millis(t.def.Every.Milliseconds())
	a.must(startGrid, (nominal-grid)%step == 0, "%s: %s is not on the grid of %s from %s", t.ref, ms(nominal), t.def.Every, ms(grid))
	h.grid = grid
	// After failures slots may be left out, as they stretch the interval.
	if failures == 0 {
		a.must(startGrid, nominal <= max(ran, a.now())+step, "%s: %s leaves a slot out after %s", t.ref, ms(nominal), ms(ran))
	}
}

// fires reports whether a cron expression fires at a time.
// The search begins a millisecond earlier, as Next returns only what is later than the time that it is
// given.
func (outcomeAudit) fires(def *draw.Definition, at moment.Millis) bool {
	cron, err := schedule.ParseCron(def.Cron, def.Zone, def.DayMatch, def.Gap)
	if err != nil {
		return false
	}
	next, err := cron.Next(at.Time().Add(-time.Millisecond))
	return (err == nil || errors.Is(err, schedule.ErrNever)) && moment.Of(next) == at
}
