package core

// The run of a claimed task, from its start to the verdict on it.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/decide"
	"github.com/seed-6f6f2c11/duly/core/internal/late"
	"github.com/seed-6f6f2c11/duly/core/internal/outcome"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// zoneOf is the zone of a task's times that its handler gets.
func zoneOf(of *base.Base, c *Claimed, b *codec.Body) string {
	if b.Zone != ZoneOfAgent {
		return b.CronZone()
	}
	return cmp.Or(of.Profiles.Of(c.Profile, of.Config.Zone).Zoned(codec.CronSpec{Zone: ZoneOfAgent}, of.Config.Zone).Zone, "UTC")
}

// run is one attempt at a claimed task.
type run struct {
	pull    *pull
	claimed *Claimed
	body    codec.Body
	info    RunInfo

	order atomic.Pointer[[]byte] // the message that came with the order to end its task

	verdict decide.Verdict // on how it has ended
	tally   store.RunStat

	call call    // of its handler, unless it shares one
	self [1]*run // it alone, for that

	// Small fields are kept together: a run is as large as a size class of Go's allocator, and a byte more costs 256.
	sharesSlot    bool         // it has no slot: the first of its batch has one for all
	waits         delay        // of its outcome
	settlesInline bool         // its goroutine stores its outcome
	decided       uint32       // when the verdict on it was known: see settler.millis
	left          *inheritance // of children that have failed; nil for none

	recorder
}

// prepare decodes a task. If it cannot run at all it is settled here, its slot is released, and the run is nil.
func (p *pull) prepare(c *Claimed) (*run, *handler) {
	r := &run{pull: p, claimed: c, recorder: recorder{most: int32(p.s.config.MaxResult)}} //nolint:gosec // it is bounded by mostBytes
	h := handlerOf(p, c.Kind)
	var fault error
	// Decoded in place: the body is as large as all the rest of a run.
	if err := r.body.Decode(c.Body); err != nil {
		fault = &outcome.FatalError{Reason: "malformed", Err: fmt.Errorf("decode task: %w", err)}
	} else if err := r.state.Decode(c.State); err != nil {
		fault = &outcome.FatalError{Reason: "malformed", Err: fmt.Errorf("decode state: %w", err)}
		// guard: crashes
	} else if c.Crashes > p.s.config.MaxCrashes && !slices.Contains(check.Everywhere, c.Kind) { // those run no code of users: others have ended their processes
		fault = &outcome.FatalError{Reason: "crashed", Err: ErrCrashed}
	}
	r.describe()
	if len(c.Profile) > 0 {
		p.toReplan.CheckProfile(p.s.base.Profiles.Of(c.Profile, p.s.config.Zone), c.Agent)
	}
	r.emit(model.EventDequeue)
	switch {
	// A fault goes first, as nothing else can be read from such a task. Then tasks that need no handler are
	// settled, so that they do not wait for a process that has one.
	case fault != nil:
		r.conclude(fault, 0, false)
	case r.settledEarly():
	case h == nil || p.claiming.Err() != nil:
		p.release(r)
	case r.body.OverlapPolicy().Spawns():
		return r, spawner
	default:
		return r, h
	}
	p.slots.Give(c)
	return nil, nil
}

// settledEarly settles a run that is not to be started at all; false if it is to be started.
func (r *run) settledEarly() bool {
	d := decide.Decision{Facts: r.facts()}
	early := d.DecideEarly(&r.verdict)
	if early {
		if r.claimed.Cancelled {
			r.order.Store(&r.claimed.Order)
		}
		r.warn()
		r.ended = true
		r.pull.settler.add(r)
	}
	return early
}

// Claimed is the task of the run.
func (r *run) Claimed() *Claimed { return r.claimed }

// Ordered notes the message that came with the order to end its task.
func (r *run) Ordered(order *[]byte) { r.order.Store(order) }

// describe fills in what the handler and the events get to know about the run.
func (r *run) describe() {
	c, b := r.claimed, &r.body
	r.info = RunInfo{
		Agent: c.Agent, ID: c.ID, Kind: c.Kind, Group: b.Group, Level: c.Level, Attempt: r.state.Attempt + 1,
		Due: c.Due.Time(), Occurrence: decide.Nominal(c, &r.state).Time(), Parent: b.Parent, Submitted: c.Submitted.Time(), Claimed: max(r.pull.s.base.StoreNow(), c.Due).Time(), Fence: c.Fence, TraceID: b.TraceID,
		// guard: tags
		Traceparent: b.Traceparent, SessionID: b.SessionID, UserID: b.UserID, Labels: b.AllLabels(), Info: b.Info, Tags: b.Tags, Crashes: c.Crashes, Zone: zoneOf(r.pull.s.base, c, b), run: r,
	}
	if b.Origin != nil {
		r.info.extra = &extra{origin: codec.InformOrigin(b.Origin)}
	}
}

// event is an event about the run, of a type.
func (r *run) event(t model.EventType) Event {
	from, to := StatusInProgress, StatusInProgress
	if t == model.EventDequeue {
		from = StatusWaiting
	}
	return Event{
		Type: t, From: from, Status: to, Agent: r.info.Agent, ID: r.info.ID, Kind: r.info.Kind, Group: r.info.Group, TraceID: r.info.TraceID,
		SessionID: r.info.SessionID, Labels: r.body.AllLabels(),
		Attempt: r.info.Attempt, Fence: r.info.Fence, Due: r.info.Due, Wait: r.info.Claimed.Sub(r.info.Due),
	}
}

// emit reports an event about the run, of a type. It is not even made without listeners.
func (r *run) emit(t model.EventType) {
	if s := r.pull.s; s.base.HasListeners() {
		s.base.Emit(r.event(t))
	}
}

// start runs tasks, in one call of their handler, concurrently with all others.
func (p *pull) start(h *handler, runs []*run) {
	if runs = p.held(runs); len(runs) == 0 {
		return
	}
	if !handles(p, h) { // it was taken out since they were claimed
		for _, r := range runs {
			if !r.sharesSlot {
				p.slots.Give(r.claimed)
			}
			p.release(r)
		}
		return
	}
	c := &runs[0].call
	c.pull, c.handler, c.runs, c.gate, c.begun = p, h, runs, p.s.gate(runs[0].claimed.Kind), p.s.config.Clock.Now()
	// One context for the whole batch: a handler that gets several tasks in one call cannot end some of
	// them.
	c.ctx.Parent = p.running //nolint:fatcontext // it is the run's own, and none is within it
	for _, r := range runs {
		p.heartbeat.Watch(r, c)
	}
	p.calls.Add(1)
	p.s.calls.Add(1)
	// With checks before them, the runs start when they have passed: those that are turned away have never run.
	if !c.needsAdmission() {
		p.started(h, runs)
	}
	if timeout := longestTimeout(p.s.base, runs); timeout > 0 && h != spawner { // it is the handler's, and that does not run here
		// guard: timeout
		c.stop = p.s.config.Clock.AfterFunc(timeout, func() { c.Cancel(ErrTimeout) })
	}
	p.openCalls.add(c)
	p.workers.add(c)
}

// held are the runs whose leases are not over. A process that was stopped for a while must not start tasks that others may
// run by now.
func (p *pull) held(runs []*run) []*run {
	first := runs[0]
	runs = slices.DeleteFunc(runs, func(r *run) bool {
		fence, over, lost := p.heartbeat.Lapsed(r.claimed)
		// guard: frozen
		if !over {
			r.info.Fence = fence
			return false
		}
		if r != first && !r.sharesSlot {
			p.slots.Give(r.claimed)
		}
		if lost {
			r.conclude(ErrLeaseLost, 0, false)
		} else { // it has not begun, so nothing is lost if no other process has taken it
			p.release(r)
		}
		return true
	})
	switch {
	case len(runs) > 0 && runs[0] == first:
	case len(runs) > 0 && runs[0].sharesSlot: // another run has the slot of the batch now
		p.slots.Pass(first.claimed, runs[0].claimed)
		runs[0].sharesSlot = false
	default:
		p.slots.Give(first.claimed)
	}
	return runs
}

// started counts runs that are handed to their handler.
func (p *pull) started(h *handler, runs []*run) {
	if h == spawner {
		return
	}
	for _, r := range runs {
		r.emit(model.EventStart)
	}
	p.tally.add(func(rep *Report) { rep.Ran += len(runs) })
}

// fill gives every run of a batch the same outcome.
func fill(outcomes []error, err error) {
	for i := range outcomes {
		outcomes[i] = err
	}
}

// because joins a handler's plain error with the reason why its context was done. An outcome that the handler chose, and
// success, are left unchanged.
func because(err, cause error) error {
	if errors.Is(err, ErrLeaseLost) && !errors.Is(cause, ErrLeaseLost) {
		err = errors.New(err.Error()) // some other task's: this one is held, and has failed
	}
	// guard: budget-cuts
	if err != nil && errors.Is(cause, ErrBudgetSpent) && !decide.Deliberate(err) {
		return Snooze(spentPause)
	}
	if err == nil || cause == nil || decide.Deliberate(err) || errors.Is(err, cause) {
		return err
	}
	return errors.Join(cause, err)
}

// spentPause is how long a run is put off at least whose budget was used up: its claim then waits for the next period.
const spentPause = time.Second

// longestTimeout is the timeout of runs that share a call: the longest of theirs; zero for none.
func longestTimeout(of *base.Base, runs []*run) time.Duration {
	var longest time.Duration
	for _, r := range runs {
		t := r.body.Timeout
		if t == 0 {
			t = of.Kind(r.claimed.Kind).Timeout
		}
		if t <= 0 { // negative: none, even if its kind has one
			return 0
		}
		longest = max(longest, t)
	}
	return longest
}

// conclude decides the outcome of the run and hands it to be settled. Only the first outcome counts; false for a later
// one.
func (r *run) conclude(err error, took time.Duration, ran bool) bool {
	// Two may come at once: the handler that returns, and the pull that has given it up.
	r.mu.Lock()
	if r.ended {
		r.mu.Unlock()
		return false
	}
	r.ended = true
	r.mu.Unlock()
	p := r.pull
	p.s.printing.End(r, errors.Is(err, ErrLeaseLost))
	// guard: lent-stays
	if errors.Is(err, errLent) { // its lease stays, and is kept until the pull has ended, as others of the loan may still wait for a gate
		p.open.Leave(r.claimed.Agent)
		return true
	}
	if errors.Is(err, ErrLeaseLost) {
		// Nothing is written: the task is another process's by now, or will be, and the fence would
		// refuse it.
		p.heartbeat.Release(r.claimed, false) // otherwise its lease would be extended while the pull lasts, and no process would run it
		p.tally.add(func(rep *Report) { rep.Lost++ })
		e := r.event(model.EventLost)
		e.Duration, e.Status = took, "" // another process may have it by now
		p.s.base.Emit(e)
		p.open.Leave(r.claimed.Agent)
		return true
	}
	watchEnded(r)
	d := decide.Decision{Facts: r.facts()}
	d.Ran, d.Took, d.Budget = ran, took, p.Budget(took)
	d.Decide(&r.verdict, err)
	if p.s.config.Policy != nil {
		r.steer(&d)
	}
	r.warn()
	p.settler.add(r)
	return true
}

// armWithin is how long the end of a run waits at most until its task is watched.
const armWithin = time.Second

// watchEnded makes sure that the task of a run that has ended is watched, if it is to succeed within a time: a process that knew nothing of its kind may have
// stored it, or another store. It costs the first end of a run two calls, and the others nothing.
func watchEnded(r *run) {
	p, c := r.pull, r.claimed
	if !r.body.Recurs() { // it is watched since its submit, and ends with its first success
		return
	}
	if r.state.Watched != nil && r.state.Watched.Armed {
		p.s.base.Watching.Store(true)
		return
	}
	expects := late.Of(p.s.base, c.Agent, c.Kind, &r.body)
	if expects == nil {
		return
	}
	if r.state.Watched == nil { // a success counts in any case
		r.state.Watched = &record.Watched{}
	}
	t := late.Task{Agent: c.Agent, ID: c.ID, Expects: expects, From: p.s.base.StoreNow(), Recurs: r.body.Recurs()}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), armWithin) // a pull that ends settles its runs, too
	defer cancel()
	arm := []late.Task{}
	// guard: watched-late
	arm = append(arm, t)
	if _, err := late.Arm(ctx, p.s.base, arm, false); err != nil {
		p.s.config.Logger.WarnContext(p.ctx, "a task is not watched yet that is to succeed within a time: its next run tries again",
			slog.String("agent", c.Agent), slog.String("task", c.ID), slog.Any("err", err))
		return
	}
	r.state.Watched.Armed = true
}

// endsWatched reports whether the verdict on a run ends a task that has a watch.
func (r *run) endsWatched() bool {
	return r.verdict.Settlement.Verb.Ends() && (r.body.Expects != nil || r.state.Watched != nil)
}

// disarmEnded ends the watches of tasks whose ends are stored.
func disarmEnded(ctx context.Context, s *Scheduler, batch []*run, results []store.Settled) {
	var ended []late.Task
	for i, r := range batch {
		if r.endsWatched() && results[i].Err == nil {
			ended = append(ended, late.Task{Agent: r.claimed.Agent, ID: r.claimed.ID})
		}
	}
	// guard: watched-ended
	late.Disarm(ctx, s.base, ended)
}

// facts are what is known of the run now.
func (r *run) facts() decide.Facts {
	s, c := r.pull.s, r.claimed
	var from inheritance
	if r.left != nil {
		from = *r.left
	}
	claimed := moment.Of(r.info.Claimed)
	return decide.Facts{
		// The store's clock is known from answers: one that was late says what it showed a while ago.
		// guard: not-before-its-claim
		Now: max(s.base.StoreNow(), claimed), Clock: s.config.Clock.Now(), Claimed: c, ClaimedAt: claimed, Fence: r.info.Fence, Attempt: r.info.Attempt,
		Body: &r.body, State: &r.state, Tally: &r.tally, Kind: s.base.Kind(c.Kind), OwnAttempts: s.config.Kinds[c.Kind].MaxAttempts, Process: runner(r.pull),
		Next: s.cron, Random: s.config.Random, Order: r.order.Load(), Profile: s.base.Profiles.Of(c.Profile, s.config.Zone), Zone: s.config.Zone, Inherited: from.failed, Failure: from.why, Answer: r.info.answer(), Used: r.used,
	}
}

// warn logs the warning of the verdict on a run.
func (r *run) warn() {
	if w := r.verdict.Warning; w != decide.WarnNothing {
		r.pull.s.config.Logger.WarnContext(r.pull.ctx, w.String(), //nolint:sloglint // one of a few constants
			slog.String("agent", r.info.Agent), slog.String("task", r.info.ID), slog.String("kind", r.info.Kind))
	}
}

// OutcomeFields are what a handler has returned, and why its context was done, as workers report it: the members of an outcome in JSON, see
// docs/workers.md. now is the time that retry_after counts from. A run that has to end with its process alone has the member release.
func OutcomeFields(err, cause error, now time.Time) map[string]any {
	err = because(err, cause)
	fields := map[string]any{}
	if err == nil {
		return fields
	}
	if o, is := errors.AsType[*outcome.SnoozeError](err); is {
		return map[string]any{"snooze": o.After.String()}
	}
	if o, is := errors.AsType[*outcome.YieldError](err); is {
		return map[string]any{"yield": o.After.String(), "checkpoint": json.RawMessage(o.Checkpoint)}
	}
	if o, is := errors.AsType[*outcome.NextInError](err); is {
		return map[string]any{"next_in": o.After.String()}
	}
	if o, is := errors.AsType[*outcome.AwaitError](err); is {
		signal := map[string]any{"key": o.Signal.Key, "on_timeout": o.Signal.OnTimeout, "from": o.Signal.From}
		if o.Signal.Timeout > 0 {
			signal["timeout"] = o.Signal.Timeout.String()
		}
		return map[string]any{"await": signal, "checkpoint": json.RawMessage(o.Checkpoint)}
	}
	fields["error"] = err.Error()
	_, cancels := errors.AsType[*outcome.CancelError](err)
	_, fatal := errors.AsType[*outcome.FatalError](err)
	_, skips := errors.AsType[*outcome.SkipRetryError](err)
	later, retries := errors.AsType[*outcome.RetryAfterError](err)
	switch {
	case cancels:
		fields["cancel"] = true
	case retries:
		fields["retry_after"] = max(later.At.Sub(now), 0).String()
	case fatal || skips:
		fields["no_retry"] = true
	case errors.Is(err, ErrStopping):
		return map[string]any{"release": true}
	}
	return fields
}
