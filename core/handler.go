package core

// Handlers: how they are registered, and what they get.

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/leases"
	"github.com/seed-6f6f2c11/duly/core/internal/outcome"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Task is what a handler gets: one run of a task, with its payload decoded.
type Task[P any] struct {
	Payload P
	*RunInfo
}

// RunInfo is the part of a [Task] that does not depend on its payload.
type RunInfo struct {
	Agent, ID, Kind, Group string
	Level                  Level
	Attempt                int       // 1 at first, plus 1 for each that has failed: what is not charged, such as Snooze, leaves it
	Due                    time.Time // when this run was due
	Occurrence             time.Time // when this occurrence was first due: the same for all its attempts
	Zone                   string    // the zone of the task's cron expression, UTC if it names none; empty without one
	Parent                 string    // the recurring task that this is one occurrence of, if its overlap policy makes it a task of its own
	Submitted              time.Time
	Claimed                time.Time // when it was claimed, by the store's clock
	// Fence grows with every claim of this task. A handler that writes to a store of its own can hand it on, so that
	// the write of a frozen run that comes back too late is refused there too.
	Fence store.Fence

	TraceID, Traceparent, SessionID string
	UserID                          string
	Info                            json.RawMessage
	Tags                            []string
	Labels                          map[string]string
	Crashes                         int // runs of this occurrence whose process died

	run   *run   // nil if no scheduler of this process made it
	made  *made  // replaces it then; see making
	extra *extra // of a gate and of bindings; nil while there is nothing
}

// Call is which call of the task's handler this is: 1 at first. It grows when the call before has asked to be called again, as [Yield], [Await],
// [Snooze] and [RetryAfter] do, and after a replay; a repeat of a call that failed or crashed has the same.
func (t *RunInfo) Call() int {
	r := t.recorder()
	if r == nil {
		return 1
	}
	return r.state.Calls + 1
}

// Checkpoint decodes into v what this run or an earlier one of this occurrence saved last, with [RunInfo.Save] or [Yield]. It reports whether
// there was a checkpoint.
func (t *RunInfo) Checkpoint(v any) (bool, error) {
	data := t.recorder().checkpoint()
	if len(data) == 0 {
		return false, nil
	}
	if err := json.Unmarshal(data, v); err != nil {
		return true, fmt.Errorf("decode checkpoint: %w", err)
	}
	return true, nil
}

// MaxResult is how large a result or progress may be, in bytes of JSON: see Config.MaxResult.
func (t *RunInfo) MaxResult() int {
	if r := t.recorder(); r != nil {
		return int(r.most)
	}
	return model.DefaultMaxResult
}

// SetResult keeps v, as JSON, as the result of the task. It is stored when the run ends. It fails when v cannot be JSON
// or is larger than Config.MaxResult.
func (t *RunInfo) SetResult(v any) error {
	r := t.recorder()
	return r.record("result", v, func(data []byte) { r.state.Result = data })
}

// SetProgress records v, as JSON, as how far the run has come. It is stored within [ProgressWithin], with everything else that is
// to be stored by then, and when the run ends. It fails as SetResult does.
func (t *RunInfo) SetProgress(v any) error {
	r := t.recorder()
	kept := false
	err := r.record("progress", v, func(data []byte) { r.state.Progress, r.dirty, kept = data, true, true })
	switch {
	case !kept:
	case t.run != nil:
		var h interface{ Progressed() } = &t.run.pull.heartbeat // a linter that follows contexts does not have to follow the heartbeat's from each handler
		h.Progressed()
	case t.made.news != nil:
		t.made.news()
	}
	return err
}

// ProgressWithin is how soon the store knows how far a run has come, if it answers at once: a second.
const ProgressWithin = leases.ProgressWithin

// handler is a registered handler with its payload type erased: it runs tasks of one kind and one agent.
type handler struct {
	kind  string
	batch bool
	// call runs tasks and sets the outcome of each; nil at first. A batch handler gets all tasks of its kind in a tick, any
	// other exactly one.
	call func(ctx context.Context, runs []*run, outcomes []error)
}

// Handle registers the handler of a kind. It panics when the kind has one already, its name is not allowed or fn is nil, as
// that is a mistake in the program. A payload that does not decode into P makes the task dead without running it.
func Handle[P any](s *Scheduler, kind string, fn func(ctx context.Context, t *Task[P]) error) {
	mustHave(kind, fn == nil)
	s.register(handler{kind: kind, call: func(ctx context.Context, runs []*run, outcomes []error) {
		t, err := decodeTask[P](runs[0])
		if err == nil {
			err = fn(ctx, t)
		}
		outcomes[0] = err
	}})
}

// HandleBatch registers a handler that gets all tasks of its kind that were claimed together for one agent, or as many of them as
// KindConfig.Batch says, and those that come while it waits for more. It returns an outcome for each, in order; nil for all of them to succeed.
func HandleBatch[P any](s *Scheduler, kind string, fn func(ctx context.Context, ts []*Task[P]) []error) {
	mustHave(kind, fn == nil)
	s.register(handler{kind: kind, batch: true, call: func(ctx context.Context, runs []*run, outcomes []error) {
		var tasks []*Task[P]
		var at []int
		for i, r := range runs {
			t, err := decodeTask[P](r)
			if err != nil {
				outcomes[i] = err
				continue
			}
			tasks, at = append(tasks, t), append(at, i)
		}
		if len(tasks) == 0 {
			return
		}
		got := fn(ctx, tasks)
		for k, i := range at {
			switch {
			case got == nil:
			case k < len(got):
				outcomes[i] = got[k]
			default:
				outcomes[i] = fmt.Errorf("the handler returned %d outcomes for %d tasks", len(got), len(tasks))
			}
		}
	}})
}

// mustHave panics if a kind is registered without a function, or is duly's own: the mistake shows at start-up and not at the first run.
func mustHave(kind string, missing bool) {
	if missing {
		panic(fmt.Sprintf("duly: Handle: the handler of the kind %q is nil", kind))
	}
	if err := model.NotReserved(kind); err != nil {
		panic("duly: Handle: " + err.Error())
	}
}

// decodeTask is the task that a handler gets. A payload of another form is the submitter's mistake,
// and no retry mends it.
func decodeTask[P any](r *run) (*Task[P], error) {
	t := &Task[P]{RunInfo: &r.info}
	if len(r.body.Payload) == 0 {
		return t, nil
	}
	if raw, ok := any(&t.Payload).(*json.RawMessage); ok {
		*raw = r.body.Payload
		return t, nil
	}
	if err := json.Unmarshal(r.body.Payload, &t.Payload); err != nil {
		return nil, &outcome.FatalError{Reason: "payload", Err: fmt.Errorf("decode payload: %w", err)}
	}
	return t, nil
}

// register adds a handler. It panics on a mistake in the program, such as two handlers for a kind:
// tasks would run by the one registered first.
func (s *Scheduler) register(h handler) {
	if err := check.ValidKind("kind", h.kind); err != nil {
		panic("duly: Handle: " + err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, taken := s.handlers[h.kind]; taken {
		panic(fmt.Sprintf("duly: Handle: the kind %q already has a handler", h.kind))
	}
	s.handlers[h.kind] = &h
	s.slots.Bound(h.kind, s.base.Kind(h.kind).Slots)
	if !slices.Contains(check.Everywhere, h.kind) {
		setHandled(s, append(slices.Clone(s.kinds), h.kind))
	}
}

// setHandled sets which kinds have a handler. Lists that are in use are never changed in place. The mutex is held.
func setHandled(s *Scheduler, kinds []string) {
	s.kinds, s.claims = slices.Sorted(slices.Values(kinds)), nil
	if len(kinds) > 0 {
		s.claims = slices.Sorted(slices.Values(append(slices.Clone(kinds), check.Everywhere...)))
	}
}

// Unhandle takes the handler of a kind out of a running process, which begins no more runs of the kind and claims none: they are left for other
// processes. Runs under way end as any other, but one that is just being started may still begin. Claimed tasks that have not begun, such as a batch
// that waits for more, are released uncharged. Settings, and the gate, stay for another [Handle]. It reports whether the kind had a handler.
func (s *Scheduler) Unhandle(kind string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handlers[kind] == nil || slices.Contains(check.Everywhere, kind) {
		return false
	}
	delete(s.handlers, kind)
	setHandled(s, slices.DeleteFunc(slices.Clone(s.kinds), func(k string) bool { return k == kind }))
	return true
}

// handles reports whether a handler is still that of its kind. The handler that turns occurrences into tasks of their own has no kind.
func handles(p *pull, h *handler) bool {
	return h == spawner || p.scope.loan != nil || handlerOf(p, h.kind) == h
}

// HandleKind registers the handler of the kind that the zero value of a payload names, so that the two cannot be mixed up: [NewTask].Kind may be left
// out with such a payload. It panics as [Handle] does.
func HandleKind[P interface{ Kind() string }](s *Scheduler, fn func(ctx context.Context, t *Task[P]) error) {
	var zero P
	Handle(s, zero.Kind(), fn)
}
