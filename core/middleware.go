package core

// Middleware: functions that wrap handlers and submits.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/seed-6f6f2c11/duly/core/internal/decide"
	"github.com/seed-6f6f2c11/duly/core/internal/outcome"
	"github.com/seed-6f6f2c11/duly/core/internal/plan"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Handler is a registered handler as middleware sees it: it runs one task, or, if it was registered with [HandleBatch], all tasks
// of a batch, and returns an outcome for each; nil for all of them to have succeeded.
type Handler func(ctx context.Context, runs []*RunInfo) []error

// middleware is what wraps handlers and submits, the outermost first.
type middleware struct {
	mu       sync.RWMutex
	handlers []func(next Handler) Handler // neither is changed in place
	submits  []func(next Submitter) Submitter
}

// Use wraps all handlers of the scheduler, registered before or afterwards: for tracing, logging or metrics of your
// own, or values in their contexts. Of several the first that was given is the outermost. A middleware that returns outcomes
// without calling next decides how the runs end; one that panics fails them. It is called once for each run, so that what it
// makes in wrapping is short-lived. Before it calls next it may set the Traceparent of its runs: programs and servers
// get that one, and the stored task keeps its own.
func (s *Scheduler) Use(middleware ...func(next Handler) Handler) {
	s.middleware.mu.Lock()
	defer s.middleware.mu.Unlock()
	s.middleware.handlers = append(slices.Clip(s.middleware.handlers), middleware...)
}

// Submitter stores tasks, as [Scheduler.Submit] does.
type Submitter func(ctx context.Context, tasks []NewTask) ([]Submitted, error)

// UseSubmit wraps each [Scheduler.Submit] of tasks: for tracing, or defaults of your own. Of several the first that was given is the
// outermost. A middleware may change the tasks, which are a copy that is its own, and not their number; its changes are checked as
// if the caller had sent them. Tasks that duly stores by itself, such as runs after an activity or deliveries of callbacks, do not pass it.
func (s *Scheduler) UseSubmit(middleware ...func(next Submitter) Submitter) {
	s.middleware.mu.Lock()
	defer s.middleware.mu.Unlock()
	s.middleware.submits = append(slices.Clip(s.middleware.submits), middleware...)
}

// OutcomeOf is the outcome of a run whose handler returns err, for middleware, which gives the context that it was called with.
// Whether a failed attempt is retried is decided later, and in the event of its end.
func OutcomeOf(ctx context.Context, err error) model.Outcome {
	switch err = because(err, context.Cause(ctx)); {
	case err == nil, decide.IsOf[*outcome.NextInError](err):
		return model.OutcomeSuccess
	case decide.IsOf[*plan.SkippedError](err):
		return model.OutcomeSkipped
	case decide.IsOf[*outcome.SnoozeError](err), decide.IsOf[*outcome.RetryAfterError](err):
		return model.OutcomeSnoozed
	case decide.IsOf[*outcome.YieldError](err):
		return model.OutcomeYielded
	case decide.IsOf[*outcome.AwaitError](err):
		return model.OutcomeAwaiting
	case decide.IsOf[*outcome.CancelError](err):
		return model.OutcomeCancelled
	case errors.Is(err, ErrStopping) && !decide.Deliberate(err):
		return model.OutcomeReleased
	default:
		return model.OutcomeFailed
	}
}

// wrap calls a handler for some runs, within the middleware, and returns their outcomes, in the given slice unless a middleware
// makes another.
func (m *middleware) wrap(ctx context.Context, h *handler, runs []*run, outcomes []error) []error {
	m.mu.RLock()
	around := m.handlers
	m.mu.RUnlock()
	if len(around) == 0 || h == spawner || h.kind == "" { // one that lends runs nothing
		h.call(ctx, runs, outcomes)
		return outcomes
	}
	infos := make([]*RunInfo, len(runs))
	for i, r := range runs {
		infos[i] = &r.info
	}
	next := Handler(func(ctx context.Context, _ []*RunInfo) []error {
		outcomes := make([]error, len(runs)) // its own each time, as a middleware may call it twice
		h.call(ctx, runs, outcomes)
		return outcomes
	})
	for _, wrap := range slices.Backward(around) {
		next = wrap(next)
	}
	outcomes = next(ctx, infos)
	switch {
	case outcomes == nil:
		return make([]error, len(runs))
	case len(outcomes) != len(runs):
		err := fmt.Errorf("the middleware returned %d outcomes for %d runs", len(outcomes), len(runs))
		outcomes = make([]error, len(runs))
		fill(outcomes, err)
	}
	return outcomes
}
