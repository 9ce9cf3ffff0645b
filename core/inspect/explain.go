package inspect

// Explain: why a task has not run, as reasons in the order in which they matter.

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/outcome"
	"github.com/seed-6f6f2c11/duly/core/internal/plan"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/internal/slots"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Explanation says why a task has not run, or what it is doing.
type Explanation struct {
	Task    model.TaskInfo
	Now     time.Time
	Reasons []model.Because // the most important first; never empty

	said      map[string][]byte        // what processes have reported about themselves, by tag
	processes map[string]model.Process // those of them that live
	before    before                   // tasks of its agent that are served first
	self      string                   // the tag of this process
	uncalled  string                   // says that this process was not called lately; empty if it was, or needs not be
}

// Explain says why a task has not run. It fails with ErrNotFound if there is none.
func (s *View) Explain(ctx context.Context, agent, id string) (Explanation, error) {
	return explain(ctx, s, agent, id, true)
}

// explain is Explain that counts the other tasks of the agent only if that is wanted.
func explain(ctx context.Context, s *View, agent, id string, others bool) (Explanation, error) {
	stored, now, err := s.base.Look(ctx, store.Get{Agent: agent, IDs: []string{id}, Explain: true})
	if err != nil {
		return Explanation{}, err
	}
	t := &stored
	e := Explanation{Task: codec.Inform(t), Now: now.Time()}
	if !t.Status.Finished() {
		e.said = base.Reports(ctx, s.base)
		e.processes = s.base.Decoded(e.said)
		e.self, e.uncalled = s.base.Tag, uncalled(s.base)
	}
	switch {
	case t.Status.Finished():
		text := fmt.Sprintf("it %s at %s%s", howEnded(t.Status), ClockTime(t.Finished.Time()), inBrackets(e.Task.Reason))
		if t.Status == store.StatusFailed && e.Task.LastError != "" {
			text += ": " + e.Task.LastError
		}
		e.Because(model.BecauseFinished, 0, "%s", text)
	case t.Status == store.StatusInProgress:
		e.running(t)
	default:
		if others && e.inQueue(t) {
			if e.before, err = countBefore(ctx, s, t, now); err != nil {
				return Explanation{}, err
			}
		}
		e.waiting(t)
		s.engine.ExplainAlarm(ctx, &e, t)
	}
	return e, nil
}

// Because adds a reason. Reasons are added in the order of importance.
func (e *Explanation) Because(code model.BecauseCode, until moment.Millis, format string, args ...any) {
	e.Reasons = append(e.Reasons, model.Because{Code: code, Text: fmt.Sprintf(format, args...), Until: until.Time()})
}

// running gives the reasons of a task that runs: which process has it, and what will happen at its end.
func (e *Explanation) running(t *store.Stored) {
	if e.Task.Ending {
		e.Because(model.BecauseEnding, t.Lease, "it was %s and ends with its run", codec.CancelReason(codec.Order(t.Order)))
	}
	left := ""
	switch {
	case t.Lease != 0 && t.Lease < e.now():
		e.Because(model.BecauseRunning, 0, "%s", e.overrun(t))
		e.suspect(t)
		e.paused(", from its next run on")
		return
	case t.Lease != 0:
		left = fmt.Sprintf("; its lease (fence %d) ends at %s unless it is extended", t.Fence, ClockTime(t.Lease.Time()))
	}
	e.Because(model.BecauseRunning, t.Lease, "it is running%s%s%s", e.at(t.Holder), e.silence(t.Holder), left)
	e.suspect(t)
	e.paused(", from its next run on")
}

// overrun says of a run whose lease is over which process had it, and whether any process would take it over.
func (e *Explanation) overrun(t *store.Stored) string {
	text := fmt.Sprintf("its run%s has not been heard of since its lease (fence %d) ended at %s", e.at(t.Holder), t.Fence, ClockTime(t.Lease.Time()))
	for tag, p := range e.processes {
		if tag != t.Holder && p.Handles(t.Kind) && e.Now.Sub(p.At) < base.AnnounceFor/2 {
			call := ""
			if tag == e.self && e.uncalled != "" && e.alone(t.Kind) {
				call = ", and " + p.Name + " claims " + e.uncalled
			}
			return text + ": the next claim of its kind takes it over" + call
		}
	}
	return text + fmt.Sprintf(", and no process is known that would take it over: start one that has a handler for the kind %q", t.Kind)
}

// suspect says that few tasks whose last run died run at once in one process, which a waiting task may have to wait for.
func (e *Explanation) suspect(t *store.Stored) {
	if t.Crashes == 0 {
		return
	}
	runs, most := "its last run died with its process", "half as many such tasks at once as it has slots"
	switch sort := store.SuspectSort(t.Crashes); sort {
	case 0:
	case 1:
		runs, most = "its last 2 runs died with their processes", fmt.Sprintf("%d such tasks at once", slots.MostOfSecondSort)
	default:
		runs, most = fmt.Sprintf("its last %d runs died with their processes", t.Crashes), "one such task at once"
	}
	e.Because(model.BecauseSuspect, 0, "%s: until a run of it ends, a process runs %s, and those first that have crashed less often", runs, most)
}

// waiting gives the reasons of a task that waits. One that stops it in any case, such as a missing
// handler, hides those after it.
func (e *Explanation) waiting(t *store.Stored) {
	if e.Task.Ending {
		e.Because(model.BecauseEnding, 0, "it was %s while it ran, and its run has died: the next process that claims it ends it", codec.CancelReason(codec.Order(t.Order)))
		return
	}
	e.paused("")
	held := len(e.Reasons) > 0
	if t.Parked && !held {
		e.parked(t)
		return
	}
	task := &e.Task
	switch {
	case task.Manual && task.NextRun.IsZero():
		e.Because(model.BecauseManual, 0, "it runs only when it is told to: duly run %q %q", task.Agent, task.ID)
	case task.GateClosed > 0 && t.Due > e.now() && !task.NextRun.IsZero():
		text := fmt.Sprintf("its gate said %s that there is nothing to do; it is asked next at %s (in %s)", inARow(task.GateClosed), ClockTime(t.Due.Time()), e.wait(t))
		if task.Resting {
			text += ", or earlier if its subject is active"
		}
		e.Because(model.BecauseGate, t.Due, "%s", text)
	case task.Resting && task.NextRun.IsZero():
		e.Because(model.BecauseResting, 0, "its subject has not been active since its last run: it waits for activity")
	case t.Line.Budget != nil && !held:
		e.budget(t)
	case t.Line.Limit.Waiting > 0 && !held:
		e.line(t)
		e.suspect(t)
	case t.Due <= e.now() && !held:
		e.overdue(t)
		e.suspect(t)
	case t.Due <= e.now():
	default:
		e.notDue(t)
	}
}

// notDue says what a task that is not due waits for.
func (e *Explanation) notDue(t *store.Stored) {
	task := &e.Task
	switch {
	case task.CoolingUntil.After(e.Now):
		e.Because(model.BecauseCooling, moment.Of(task.CoolingUntil), "%s, so it cools down until %s: %s",
			plan.FailedInARow(task.ConsecutiveFailures), ClockTime(task.CoolingUntil), task.LastError)
	case task.Awaiting != nil:
		text := fmt.Sprintf("it waits for the signal %q: duly signal %q %q", task.Awaiting.Key, task.Agent, task.Awaiting.Key)
		if task.Awaiting.From == outcome.FromApproval {
			text = fmt.Sprintf("it waits for the approval %q: duly approval %q %q", task.Awaiting.Key, task.Agent, task.ID)
		}
		if asked := task.Awaiting.Question; asked != "" {
			text += fmt.Sprintf("; it asks %q", asked)
		}
		if until := task.Awaiting.Until; !until.IsZero() {
			text += fmt.Sprintf("; it waits until %s (in %s)", ClockTime(until), e.wait(t))
		}
		e.Because(model.BecauseSignal, t.Due, "%s", text)
	case e.quiet(t):
	case task.Attempt > 1:
		e.Because(model.BecauseRetry, t.Due, "attempt %d failed; the next is due at %s (in %s): %s", task.Attempt-1, ClockTime(t.Due.Time()), e.wait(t), task.LastError)
	case task.RetryAfters > 0:
		e.Because(model.BecauseRetry, t.Due, "its handler asked to be called again later, %s, which is not charged; it is due at %s (in %s): %s",
			inARow(task.RetryAfters), ClockTime(t.Due.Time()), e.wait(t), task.LastError)
	case task.ConsecutiveFailures > 0 && task.Schedule != store.ScheduleActivity:
		e.failing(t)
	default:
		e.Because(model.BecauseNotDue, t.Due, "it is not due until %s (in %s)", ClockTime(t.Due.Time()), e.wait(t))
	}
}

// quiet reports whether the quiet hours of its agent put off a task, and says until when.
func (e *Explanation) quiet(t *store.Stored) bool {
	s, err := record.DecodeState(t.State)
	if err != nil || s.PutOff == nil || s.PutOff.To != t.Due {
		return false
	}
	e.Because(model.BecauseQuiet, t.Due, "its agent has quiet hours: quiet until %s (in %s); without them it would be due at %s",
		ClockTime(t.Due.Time()), e.wait(t), ClockTime(s.PutOff.From.Time()))
	return true
}

// at names the process of a run, if it is known.
func (e *Explanation) at(tag string) string {
	if p, known := e.processes[tag]; known {
		return " in process " + p.Name
	}
	return ""
}

// silence says how long the process of a run has not reported, if it ought to have: it may have died, which shows only when the lease ends.
func (e *Explanation) silence(tag string) string {
	p, known := e.processes[tag]
	ago := e.Now.Sub(p.At)
	// guard: explain-silence
	if known && ago > base.LiveEvery+base.AnnounceEvery {
		return fmt.Sprintf(", which last reported %s ago", moment.ShortDuration(ago.Round(time.Second)))
	}
	return ""
}

// Since is when the run of the task began, as its process has reported: each names its ten oldest runs. If none has, it is when the task last changed, and exact
// is false: the run began then, or before.
func (e *Explanation) Since() (since time.Time, exact bool) {
	for _, p := range e.processes {
		for _, r := range p.Running {
			if r.Agent == e.Task.Agent && r.ID == e.Task.ID {
				return r.Since, true
			}
		}
	}
	return e.Task.UpdatedAt, false
}

// overdue says why a task that is due has not been claimed, as far as the processes have reported.
func (e *Explanation) overdue(t *store.Stored) {
	since := fmt.Sprintf("it has been due since %s (%s)", ClockTime(t.Due.Time()), e.now().Sub(t.Due).Round(time.Millisecond))
	if t.Fence != 0 {
		e.Because(model.BecauseSerial, t.Lease, "%s, and waits for another run of its agent%s: an agent has one run at a time", since, e.at(t.Holder))
		e.about("agent " + t.Agent)
		return
	}
	var busy []string
	handled := 0
	for _, tag := range slices.Sorted(maps.Keys(e.processes)) {
		p := e.processes[tag]
		if left, is := p.Left[t.Kind]; is && left.At.After(t.Due.Time()) {
			e.Because(model.BecauseNoTime, 0, "%s, and process %s left it at %s for lack of time: runs of the kind %q usually take %s and its pull had %s; "+
				"give pulls more time, or let its handler yield", since, p.Name, ClockTime(left.At), t.Kind, moment.ShortDuration(left.Usual), moment.ShortDuration(left.Had))
			return
		}
		if p.Handles(t.Kind) {
			handled++
			if p.Busy(t.Kind, t.Level) {
				busy = append(busy, inUse(&p, t.Kind))
			}
		}
	}
	switch {
	case handled > 0 && len(busy) == handled:
		e.Because(model.BecauseBusy, 0, "%s, and all slots that it may have are busy: %s; %s%s", since,
			strings.Join(busy[:min(len(busy), mostNamed)], ", "), ahead(t.Ahead), e.before)
	default:
		e.Because(model.BecauseWaiting, 0, "%s, and no process has claimed it yet; %s%s. %s", since, ahead(t.Ahead), e.before, e.runBy(t.Kind))
	}
}

// ahead says how many agents come before that of a task.
func ahead(n int64) string {
	if n == 1 {
		return "1 other is ahead"
	}
	return fmt.Sprintf("%d others are ahead", n)
}

// mostNamed is how many processes an explanation names.
const mostNamed = 5

// now is the time of the store when it was asked.
func (e *Explanation) now() moment.Millis { return moment.Of(e.Now) }

// wait is how long it is until a task is due.
func (e *Explanation) wait(t *store.Stored) time.Duration {
	return t.Due.Sub(e.now()).Round(time.Second)
}

// failing says since when a recurring task has failed, and what that did to its interval.
func (e *Explanation) failing(t *store.Stored) {
	text := "its last occurrence failed, "
	if n := e.Task.ConsecutiveFailures; n > 1 {
		text = fmt.Sprintf("its last %d occurrences failed, ", n)
	}
	if since, all := failingSince(e.Task.Runs, e.Task.ConsecutiveFailures); all {
		text += "it has been failing since " + ClockTime(since)
	} else {
		text += "it was already failing at " + ClockTime(since)
	}
	if from, to := stretched(t); to > from {
		text += fmt.Sprintf(", so its interval is stretched from %s to %s", moment.ShortDuration(from), moment.ShortDuration(to))
	}
	e.Because(model.BecauseFailing, t.Due, "%s; it is due at %s (in %s): %s", text, ClockTime(t.Due.Time()), e.wait(t), e.Task.LastError)
}

// failingSince is when the first of the occurrences that failed in a row ran, or the first of them that is remembered.
func failingSince(runs []model.TaskRun, failures int) (since time.Time, all bool) {
	for _, run := range runs {
		switch run.Outcome {
		case model.OutcomeSuccess:
			since, failures = time.Time{}, 0
		case model.OutcomeFailed:
			if since.IsZero() {
				since = run.Started
			}
			failures--
		default: // it says nothing about its health
		}
	}
	return since, failures <= 0
}

// stretched returns the interval of a task, and the one that its failures in a row stretch it to.
func stretched(t *store.Stored) (from, to time.Duration) {
	b, err := codec.DecodeBody(t.Body)
	s, bad := record.DecodeState(t.State)
	if err != nil || bad != nil || b.Every == 0 || b.OverlapPolicy().Spawns() {
		return 0, 0
	}
	from = cmp.Or(s.Interval, b.Every)
	return from, schedule.Stretch(from, s.Failures)
}

// inARow is a number of times, in words.
func inARow(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times in a row", n)
}

// paused adds the pauses that the task is under.
func (e *Explanation) paused(when string) {
	for _, p := range e.Task.Pauses {
		text := subject(p.Target) + " been paused since " + ClockTime(p.Since)
		if who := p.Who(); who != "" {
			text += " by " + who
		}
		if !p.Until.IsZero() {
			text += " until " + ClockTime(p.Until)
		}
		text += when
		if p.Reason != "" {
			text += ": " + p.Reason
		}
		// guard: explain
		e.Because(model.BecausePaused, moment.Of(p.Until), "%s", text)
		e.about(heldBy(p.Target))
	}
}

// subject names the target of a pause of a task with its verb, as in "its agent has".
func subject(t store.Target) string {
	switch {
	case t.ID != "":
		return "the task has"
	case t.Agent != "":
		return "its agent has"
	case t.Kind != "":
		return "its kind " + t.Kind + " has"
	case t.Key != "":
		return fmt.Sprintf("its limit key %q has", t.Key)
	default:
		return "everything has"
	}
}

// ClockTime is a time as JSON, the log and the command line write it.
func ClockTime(t time.Time) string { return t.Format("2006-01-02T15:04:05.000Z07:00") }

// howEnded is how a task ended, in words.
func howEnded(s store.Status) string {
	if s == store.StatusCancelled {
		return "was cancelled"
	}
	return string(s)
}

// inBrackets is an addition to a sentence; nothing for an empty one.
func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}
