package core

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// run is one attempt at a claimed task.
type run struct {
	pull    *pull
	claimed *Claimed
	body    body
	info    RunInfo

	order atomic.Pointer[[]byte] // what was said when its task was told to end

	alone bool // nothing else runs in its process, as its last run lost its own

	inherited int // children that had failed, and why the last did
	failure   string

	recorder
}

// prepare decodes a task. If it cannot run at all it is settled here, its slot is given back, and the run is nil.
func (p *pull) prepare(c *Claimed) (*run, *handler) {
	r := &run{pull: p, claimed: c, recorder: recorder{most: p.s.config.MaxResult}}
	p.s.mu.RLock()
	h := p.s.handlers[c.Kind]
	p.s.mu.RUnlock()
	var err, fault error
	if r.body, err = decodeBody(c.Body); err != nil {
		fault = &fatalError{reason: "malformed", err: fmt.Errorf("decode task: %w", err)}
	} else if r.state, err = record.DecodeState(c.State); err != nil {
		fault = &fatalError{reason: "malformed", err: fmt.Errorf("decode state: %w", err)}
	} else if c.Crashes > p.s.config.MaxCrashes {
		fault = &fatalError{reason: "crashed", err: ErrCrashed}
	}
	r.describe()
	p.s.emit(r.event(EventDequeue))
	switch {
	case fault != nil:
		r.conclude(fault, 0, false)
	case p.settledEarly(r):
	case h == nil || p.claiming.Err() != nil:
		p.release(r)
	case r.body.overlap().spawns():
		return r, spawner
	case c.Crashes > 0:
		p.aside(h, r)
		return nil, nil
	default:
		return r, h
	}
	p.s.slots.give(c)
	return nil, nil
}

// settledEarly settles a run that is not to be started at all; false if it is to be started.
func (p *pull) settledEarly(r *run) bool {
	v, early := decideEarly(r.facts())
	if early {
		if r.claimed.Cancelled {
			r.order.Store(&r.claimed.Order)
		}
		p.warn(r, &v)
		r.ended = true
		p.settler.add(r, v.settlement, v)
	}
	return early
}

func (r *run) describe() {
	c, b := r.claimed, &r.body
	r.info = RunInfo{
		Agent: c.Agent, ID: c.ID, Kind: c.Kind, Group: b.Group, Level: c.Level, Attempt: r.state.Attempt + 1,
		Due: c.Due.Time(), Occurrence: nominal(c, &r.state).Time(), Parent: b.Parent, Submitted: c.Submitted.Time(), Claimed: r.pull.s.storeNow().Time(), Fence: c.Fence, TraceID: b.TraceID,
		Traceparent: b.Traceparent, SessionID: b.SessionID, UserID: b.UserID, Labels: b.labels(), Info: b.Info, Tags: b.Tags, Crashes: c.Crashes, Zone: b.zone(), run: &r.recorder,
	}
}

func (r *run) event(t EventType) Event {
	return Event{
		Type: t, Agent: r.info.Agent, ID: r.info.ID, Kind: r.info.Kind, Group: r.info.Group, TraceID: r.info.TraceID,
		Attempt: r.info.Attempt, Fence: r.info.Fence, Due: r.info.Due, Wait: r.info.Claimed.Sub(r.info.Due),
	}
}

// start runs tasks, in one call of their handler, in a goroutine of their own.
func (p *pull) start(h *handler, runs []*run) {
	if runs = p.held(runs); len(runs) == 0 {
		return
	}
	ctx, cancel := context.WithCancelCause(p.running)
	for _, r := range runs {
		p.heart.watch(r, cancel, len(runs) > 1)
	}
	c := &call{pull: p, handler: h, runs: runs, gate: p.s.gate(runs[0].claimed.Kind), begun: p.s.config.Clock.Now()}
	p.calls.Add(1)
	if c.gate == nil {
		p.started(h, runs)
	}
	stop := func() bool { return true }
	if timeout := p.timeout(runs); timeout > 0 && h != spawner { // it is the handler's, and that does not run here
		stop = p.s.config.Clock.AfterFunc(timeout, func() { cancel(ErrTimeout) })
	}
	stopGivingUp := context.AfterFunc(ctx, func() { c.giveUp(ctx) })
	go func() {
		defer cancel(nil)
		defer stop()
		defer stopGivingUp()
		c.make(ctx)
	}()
}

// held are those of some runs whose leases are not over. A process that was stopped for a while must not start what others may
// run by now.
func (p *pull) held(runs []*run) []*run {
	return slices.DeleteFunc(runs, func(r *run) bool {
		if !p.heart.lapsed(r.claimed) {
			return false
		}
		p.s.slots.give(r.claimed)
		r.conclude(ErrLeaseLost, 0, false)
		return true
	})
}

// started counts runs that are handed to their handler.
func (p *pull) started(h *handler, runs []*run) {
	if h == spawner {
		return
	}
	for _, r := range runs {
		p.s.emit(r.event(EventStart))
	}
	p.tally.add(func(rep *Report) { rep.Ran += len(runs) })
}

// gated asks the gate of a kind for each run, and hands those that it lets through to the handler.
func (p *pull) gated(ctx context.Context, gate gate, h *handler, runs []*run) []error {
	outcomes := make([]error, len(runs))
	var through []*run
	var at []int
	for i, r := range runs {
		open, err := gate(ctx, &r.info)
		switch {
		case err != nil:
			outcomes[i] = fmt.Errorf("gate: %w", err)
		case !open:
			outcomes[i] = &skippedError{reason: skipGate}
		default:
			through, at = append(through, r), append(at, i)
		}
	}
	if len(through) == 0 {
		return outcomes
	}
	p.started(h, through)
	for k, err := range p.s.wrapped(ctx, h, through) {
		outcomes[at[k]] = err
	}
	return outcomes
}

func fill(outcomes []error, err error) {
	for i := range outcomes {
		outcomes[i] = err
	}
}

// because joins a handler's plain error with the reason why its context was done. What a handler says on purpose, and
// success, stand as they are.
func because(err, cause error) error {
	if errors.Is(err, ErrLeaseLost) && !errors.Is(cause, ErrLeaseLost) {
		err = errors.New(err.Error()) // some other task's: this one is held, and has failed
	}
	if err == nil || cause == nil || deliberate(err) || errors.Is(err, cause) {
		return err
	}
	return errors.Join(cause, err)
}

func deliberate(err error) bool {
	return errors.As(err, new(*cancelError)) || errors.As(err, new(*snoozeError)) || errors.As(err, new(*nextInError)) ||
		errors.As(err, new(*yieldError)) || errors.As(err, new(*retryAfterError)) || errors.As(err, new(*skipRetryError)) || errors.As(err, new(*fatalError)) ||
		errors.As(err, new(*skippedError))
}

// timeout of runs that share a call: the longest of theirs; zero for none.
func (p *pull) timeout(runs []*run) time.Duration {
	var longest time.Duration
	for _, r := range runs {
		t := r.body.Timeout
		if t == 0 {
			t = p.s.kind(r.claimed.Kind).Timeout
		}
		if t <= 0 { // negative: none, whatever its kind has
			return 0
		}
		longest = max(longest, t)
	}
	return longest
}

// conclude decides what becomes of the run and hands it to be settled. Only the first outcome counts; false for a later
// one.
func (r *run) conclude(err error, took time.Duration, ran bool) bool {
	r.mu.Lock()
	if r.ended {
		r.mu.Unlock()
		return false
	}
	r.ended = true
	r.mu.Unlock()
	p := r.pull
	if errors.Is(err, ErrLeaseLost) {
		p.heart.release(r.claimed) // else its lease would be extended for as long as the pull lasts, and nobody would run it
		p.tally.add(func(rep *Report) { rep.Lost++ })
		e := r.event(EventLost)
		e.Duration = took
		p.s.emit(e)
		p.leave(r.claimed.Agent)
		return true
	}
	f := r.facts()
	f.ran, f.took, f.budget = ran, took, p.budget(took)
	v := decide(f, err)
	p.warn(r, &v)
	p.settler.add(r, v.settlement, v)
	return true
}

// facts are what is known of the run now.
func (r *run) facts() facts {
	s, c := r.pull.s, r.claimed
	return facts{
		now: s.storeNow(), clock: s.config.Clock.Now(), claimed: c, claimedAt: store.MillisOf(r.info.Claimed), attempt: r.info.Attempt,
		body: &r.body, state: r.state, kind: s.kind(c.Kind), ownAttempts: s.config.Kinds[c.Kind].MaxAttempts, process: s.config.Name,
		next: s.crons.next, random: s.config.Random, alone: r.alone, order: r.order.Load(), inherited: r.inherited, failure: r.failure,
	}
}

// budget is the time that a run had which has just ended after so long.
func (p *pull) budget(took time.Duration) budget {
	if p.end.IsZero() {
		return budget{}
	}
	begun := p.s.config.Clock.Now().Add(-took)
	return budget{spent: p.spent.Load(), left: p.end.Sub(begun), whole: p.end.Sub(p.begun), nearlyAll: p.fresh(begun)}
}

// warn logs what a verdict wants people to know.
func (p *pull) warn(r *run, v *verdict) {
	if v.warning != "" {
		p.s.config.Logger.WarnContext(p.ctx, v.warning, //nolint:sloglint // one of a few constants
			slog.String("agent", r.info.Agent), slog.String("task", r.info.ID), slog.String("kind", r.info.Kind))
	}
}
