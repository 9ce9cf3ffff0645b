package core

// What a run has to pass between its claim and its handler: the authorizer, its bindings, and the gate of its kind, which is registered here.

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/outcome"
	"github.com/seed-6f6f2c11/duly/core/internal/plan"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// needsAdmission reports whether the runs of a handler need a check before they start, other than a gate. The handler that turns occurrences into
// tasks of their own runs no user code: those tasks are checked when they run themselves.
func (s *Scheduler) needsAdmission(h *handler) bool {
	return (len(s.config.Bindings) > 0 || s.config.Authorizer != nil) && h != spawner
}

// needsAdmission reports whether the runs of a call need a check before they start.
func (c *call) needsAdmission() bool {
	return c.gate != nil || c.pull.s.needsAdmission(c.handler) || slices.ContainsFunc(c.runs, func(r *run) bool { return r.state.Await != nil })
}

// admitAll makes every check that is due before each run, and hands the runs that pass to the handler.
func (p *pull) admitAll(ctx context.Context, c *call) []error {
	outcomes := make([]error, len(c.runs))
	var through []*run
	var at []int
	for i, r := range c.runs {
		if outcomes[i] = p.admit(ctx, c, r); outcomes[i] == nil {
			outcomes[i] = p.stillHeld(r)
		}
		if outcomes[i] == nil {
			through, at = append(through, r), append(at, i)
		}
	}
	if len(through) == 0 {
		return outcomes
	}
	if values := through[0].info.Bound(); values != nil && !c.handler.batch {
		ctx = context.WithValue(ctx, boundKey{}, values)
	}
	p.started(c.handler, through)
	// Outcomes are in the order of the runs that passed; at holds their positions in the batch.
	for k, err := range p.s.wrapped(ctx, c.handler, through, make([]error, len(through))) {
		outcomes[at[k]] = err
	}
	return outcomes
}

// admit is the outcome of a run that is kept from its handler; nil for one that is not.
func (p *pull) admit(ctx context.Context, c *call, r *run) error {
	if p.s.needsAdmission(c.handler) {
		if err := p.s.authorizeRun(ctx, &r.info); err != nil {
			return &outcome.HeldError{By: "authorizer", Err: err}
		}
		if err := p.s.bind(ctx, r); err != nil {
			return &outcome.HeldError{By: "binding", Err: err}
		}
	}
	waited := r.state.Await // read now: the run may be given up, and decided, during the check
	if err := p.hear(ctx, r, waited); err != nil {
		return err
	}
	// The answer that it has waited for is its work.
	if c.gate == nil || waited != nil {
		return nil
	}
	answer, err := c.gate(ctx, r.gateInfo())
	if err == nil {
		err = answer.Check()
	}
	switch {
	// A gate that fails to answer fails the run, which is retried: neither running nor skipping it
	// would be safe.
	case err != nil:
		return &outcome.HeldError{By: "gate", Err: err}
	// guard: gate
	case !answer.Open:
		r.give(func(x *extra) { x.answer = &answer })
		return &plan.SkippedError{Reason: plan.SkipGate}
	default:
		r.give(func(x *extra) { x.answer = &answer })
		return nil
	}
}

// stillHeld postpones a run whose lease expired because the checks before it took too long: another process may have begun it.
func (p *pull) stillHeld(r *run) error {
	fence, over, _ := p.heartbeat.lapsed(r.claimed)
	if over {
		return &outcome.SnoozeError{After: hearAgain}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.info.Fence = fence
	return nil
}

// gateInfo is the run as its bindings and its gate get it.
func (r *run) gateInfo() *RunInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	info := r.info // a copy, as the run may be given up, and read, during the checks
	info.extra = &extra{payload: r.body.Payload, tag: r.state.GateTag, bound: info.Bound(), origin: info.Origin(), heard: info.heard()}
	return &info
}

// give adds to the handler's data of a run, unless it has been given up meanwhile.
func (r *run) give(change func(x *extra)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return
	}
	var x extra
	if r.info.extra != nil {
		x = *r.info.extra
	}
	change(&x)
	r.info.extra = &x
}

// authorizeRun asks whether this process may run a task.
func (s *Scheduler) authorizeRun(ctx context.Context, t *RunInfo) error {
	if s.config.Authorizer == nil {
		return nil
	}
	return s.base.Authorize(ctx, Access{Action: model.ActionRun, Agent: t.Agent, User: t.UserID, Kind: t.Kind, ID: t.ID})
}

// Gate registers the gate of a kind: it is called before each run and returns whether the run has anything to do, as a bool
// or with a [GateAnswer]. If it has nothing to do the occurrence is skipped and recorded, and the gate is called
// less and less often: see [IdleBackoff]. An error, or a panic, is a failed attempt; an error such as Snooze means the same as from a handler. It
// panics as Handle does.
//
// With an overlap policy that makes each occurrence a task of its own, the gate is called before that task is made, and
// before it runs.
func Gate[A bool | GateAnswer](s *Scheduler, kind string, ask func(ctx context.Context, t *RunInfo) (A, error)) {
	if err := check.ValidKind("kind", kind); err != nil {
		panic("duly: Gate: " + err.Error())
	}
	if ask == nil {
		panic(fmt.Sprintf("duly: Gate: the function for the kind %q is nil", kind))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.gates[kind]; taken {
		panic(fmt.Sprintf("duly: Gate: the kind %q already has a gate", kind))
	}
	s.gates[kind] = func(ctx context.Context, t *RunInfo) (GateAnswer, error) {
		said, err := ask(ctx, t)
		if open, plain := any(said).(bool); plain {
			return GateAnswer{Open: open, Tag: t.GateTag()}, err
		}
		answer, _ := any(said).(GateAnswer)
		return answer, err
	}
}

// gate decides whether a run is worth starting.
type gate func(ctx context.Context, t *RunInfo) (GateAnswer, error)

// gate is the gate of a kind; nil if it has none.
func (s *Scheduler) gate(kind string) gate {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.gates[kind]
}

// extra is the input and the answer of a run's gate, and the values of its bindings. Runs of kinds that have neither have none, so that
// they are no larger for it. It is never changed once it is shared: see run.give.
type extra struct {
	payload json.RawMessage
	tag     string
	answer  *GateAnswer // nil without one
	bound   Values
	origin  *Origin // of its task
	heard   *Heard  // what it received after waiting; nil if it has not waited
}

// GateInput returns what the gate of the task's kind handed on for this run, as JSON; nil for nothing. See [GateAnswer].
func (t *RunInfo) GateInput() json.RawMessage {
	if a := t.answer(); a != nil {
		return a.Input
	}
	return nil
}

// GateTag returns the tag that is kept of an earlier answer of the gate; empty for none. It is for gates. See [GateAnswer].
func (t *RunInfo) GateTag() string {
	if t == nil || t.extra == nil {
		return ""
	}
	return t.extra.tag
}

// RawPayload returns the payload of the task as JSON; nil if it has none. It is for gates, whose tasks are not decoded.
func (t *RunInfo) RawPayload() json.RawMessage {
	if t == nil || t.extra == nil {
		return nil
	}
	return t.extra.payload
}

// answer is the answer of the gate; nil without one.
func (t *RunInfo) answer() *GateAnswer {
	if t == nil || t.extra == nil {
		return nil
	}
	return t.extra.answer
}
