package core

// What a run has to pass between its claim and its handler: the authorizer, its bindings, which give it values of its agent, user and task, and the gate of its
// kind, which is registered here.

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/outcome"
	"github.com/seed-6f6f2c11/duly/core/internal/plan"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// admission is what the runs of all kinds have to pass.
type admission struct {
	base     *base.Base
	bindings []Binding
}

// needed reports whether the runs of a handler need a check before they start, other than a gate. The handler that turns occurrences into
// tasks of their own runs no user code: those tasks are checked when they run themselves.
func (a *admission) needed(h *handler) bool {
	return (len(a.bindings) > 0 || a.base.Config.Authorizer != nil) && h != spawner
}

// needsAdmission reports whether the runs of a call need a check before they start.
func (c *call) needsAdmission() bool {
	return c.gate != nil || c.pull.s.admission.needed(c.handler) || slices.ContainsFunc(c.runs, func(r *run) bool { return r.state.Await != nil })
}

// admitAll makes every check that is due before each run, and hands the runs that pass to the handler.
func (c *call) admitAll(ctx context.Context) []error {
	outcomes := make([]error, len(c.runs))
	var through []*run
	var at []int
	for i, r := range c.runs {
		if outcomes[i] = c.admit(ctx, r); outcomes[i] == nil {
			outcomes[i] = r.stillHeld()
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
	c.pull.started(c.handler, through)
	// Outcomes are in the order of the runs that passed; at holds their positions in the batch.
	for k, err := range c.pull.s.middleware.wrap(ctx, c.handler, through, make([]error, len(through))) {
		outcomes[at[k]] = err
	}
	return outcomes
}

// admit is the outcome of a run that is kept from its handler; nil for one that is not.
func (c *call) admit(ctx context.Context, r *run) error {
	if by := &c.pull.s.admission; by.needed(c.handler) {
		if err := by.authorize(ctx, &r.info); err != nil {
			return &outcome.HeldError{By: "authorizer", Err: err}
		}
		if err := by.bind(ctx, r); err != nil {
			return &outcome.HeldError{By: "binding", Err: err}
		}
	}
	waited := r.state.Await // read now: the run may be given up, and decided, during the check
	if err := r.hear(ctx, waited); err != nil {
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
func (r *run) stillHeld() error {
	fence, over, _ := r.pull.heartbeat.Lapsed(r.claimed)
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

// authorize asks whether this process may run a task.
func (a *admission) authorize(ctx context.Context, t *RunInfo) error {
	if a.base.Config.Authorizer == nil {
		return nil
	}
	return a.base.Authorize(ctx, Access{Action: model.ActionRun, Agent: t.Agent, User: t.UserID, Kind: t.Kind, ID: t.ID})
}

// Values are the values that bindings give a run, by name. A name has capital letters, digits and underscores, and begins with a letter, as
// names of variables do; a value is text without control characters.
type Values map[string]string

// Binding returns the values of a run, by its agent, user, kind and task: a workspace, a tenant, a key of a provider. It is called
// before each run, and before its gate. An error, or a panic, is a failed attempt, for which no handler is called;
// an error such as Snooze means the same as from a handler. It must not change the run.
type Binding func(ctx context.Context, t *RunInfo) (Values, error)

// Bounds of the values of one run.
const (
	MaxValues    = 64
	MaxValueName = 64      // bytes
	MaxValue     = 4 << 10 // bytes
)

// Bound returns what the bindings gave this run; nil for nothing. It must not be changed.
func (t *RunInfo) Bound() Values {
	if t == nil || t.extra == nil {
		return nil
	}
	return t.extra.bound
}

// boundKey is the key of a run's values in its context.
type boundKey struct{}

// Bound returns what the bindings gave the run that a context is of; nil for nothing. A handler of batches asks each of its tasks, as
// their users may differ: see [RunInfo.Bound].
func Bound(ctx context.Context) Values {
	v, _ := ctx.Value(boundKey{}).(Values)
	return v
}

// CheckValueName refuses a name that values cannot have. A program gets them as variables and a server as headers, where
// another name could pass for something else.
func CheckValueName(name string) error {
	switch {
	case len(name) > MaxValueName:
		return fmt.Errorf("the name %.40q... is %d bytes long: the limit is %d", name, len(name), MaxValueName)
	case name == "" || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" || name[0] < 'A' || name[0] > 'Z':
		return fmt.Errorf("the name %q must have capital letters, digits and underscores only, and begin with a letter", name)
	default:
		return nil
	}
}

// Check refuses values that cannot be handed on. Its error names a value and never shows it, as it may be a secret.
func (v Values) Check() error {
	if len(v) > MaxValues {
		return fmt.Errorf("%d values: the limit is %d", len(v), MaxValues)
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if err := CheckValueName(name); err != nil {
			return err
		}
		if reason := check.TextReason(v[name], MaxValue); reason != "" {
			return fmt.Errorf("the value of %s %s", name, reason)
		}
	}
	return nil
}

// bind asks the bindings for the values of a run. Of a name that several give, the last value counts.
func (a *admission) bind(ctx context.Context, r *run) error {
	if len(a.bindings) == 0 {
		return nil
	}
	var all Values
	info := r.gateInfo()
	for _, binding := range a.bindings {
		got, err := binding(ctx, info)
		if err != nil {
			return err
		}
		if all == nil {
			all = make(Values, len(got))
		}
		maps.Copy(all, got)
	}
	if err := all.Check(); err != nil {
		return err
	}
	r.give(func(x *extra) { x.bound = all })
	return nil
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
