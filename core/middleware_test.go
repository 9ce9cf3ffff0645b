package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
)

type tenant struct{}

func TestMiddlewareWrapsEveryHandler(t *testing.T) {
	t.Parallel()
	s, err := core.New(memstore.New(memstore.Config{Partitions: 8}), core.Config{})
	require.NoError(t, err)
	var seen []string
	named := func(name string) func(core.Handler) core.Handler {
		return func(next core.Handler) core.Handler {
			return func(ctx context.Context, runs []*core.RunInfo) []error {
				for _, r := range runs {
					seen = append(seen, name+" "+r.ID)
				}
				return next(context.WithValue(ctx, tenant{}, name), runs)
			}
		}
	}
	core.Handle(s, "one", func(ctx context.Context, task *core.Task[any]) error {
		seen = append(seen, fmt.Sprint("handler ", task.ID, " within ", ctx.Value(tenant{})))
		return nil
	})
	s.Use(named("outer"), named("inner"))
	core.HandleBatch(s, "many", func(_ context.Context, tasks []*core.Task[any]) []error {
		seen = append(seen, fmt.Sprint("batch of ", len(tasks)))
		return nil
	})
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "one"})
	require.NoError(t, err)
	_, err = s.RunDueTasks(t.Context(), []string{"a"})
	require.NoError(t, err)
	assert.Equal(t, []string{"outer 1", "inner 1", "handler 1 within inner"}, seen)
	seen = nil
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "2", Kind: "many"}, core.NewTask{Agent: "a", ID: "3", Kind: "many"})
	require.NoError(t, err)
	report, err := s.RunDueTasks(t.Context(), []string{"a"})
	require.NoError(t, err)
	assert.Equal(t, 2, report.Completed)
	assert.Equal(t, []string{"outer 2", "outer 3", "inner 2", "inner 3", "batch of 2"}, seen)
}

// A middleware may end runs itself; one that is wrong about their number fails them, as does one that panics.
func TestMiddlewareDecidesHowRunsEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		middle func(ctx context.Context, runs []*core.RunInfo) []error
		status core.Status
		says   string
	}{
		"cancels":  {func(context.Context, []*core.RunInfo) []error { return []error{core.Cancel(errors.New("not allowed"))} }, core.StatusCancelled, "not allowed"},
		"nil":      {func(context.Context, []*core.RunInfo) []error { return nil }, core.StatusCompleted, ""},
		"too many": {func(context.Context, []*core.RunInfo) []error { return make([]error, 2) }, core.StatusFailed, "2 outcomes for 1 runs"},
		"panics":   {func(context.Context, []*core.RunInfo) []error { panic("boom") }, core.StatusFailed, "panic: boom"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := core.New(memstore.New(memstore.Config{Partitions: 8}), core.Config{Default: core.KindConfig{MaxAttempts: 1}})
			require.NoError(t, err)
			s.Use(func(core.Handler) core.Handler { return c.middle })
			core.Handle(s, "k", func(context.Context, *core.Task[any]) error { return errors.New("the handler is not called") })
			_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "k"})
			require.NoError(t, err)
			_, _ = s.RunDueTasks(t.Context(), []string{"a"})
			info, err := s.Task(t.Context(), "a", "1")
			require.NoError(t, err)
			assert.Equal(t, c.status, info.Status)
			assert.Contains(t, info.LastError, c.says)
		})
	}
}

type rollup struct {
	User string `json:"user"`
}

func (rollup) Kind() string { return "digest" }

func TestAPayloadMayNameItsKind(t *testing.T) {
	t.Parallel()
	s, err := core.New(memstore.New(memstore.Config{Partitions: 8}), core.Config{})
	require.NoError(t, err)
	var got rollup
	core.HandleKind(s, func(_ context.Context, task *core.Task[rollup]) error { got = task.Payload; return nil })
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Payload: rollup{User: "ann"}}, core.NewTask{Agent: "a", ID: "2", Kind: "other", Payload: rollup{}})
	require.NoError(t, err)
	_, err = s.RunDueTasks(t.Context(), []string{"a"})
	require.NoError(t, err)
	assert.Equal(t, rollup{User: "ann"}, got)
	info, err := s.Task(t.Context(), "a", "2")
	require.NoError(t, err)
	assert.Equal(t, "other", info.Kind, "what is said counts")
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "3", Payload: 7})
	assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
}

// What wraps submits may change the tasks, sees what became of them, and may refuse them; the caller's tasks stay its own.
func TestMiddlewareWrapsSubmits(t *testing.T) {
	t.Parallel()
	s, err := core.New(memstore.New(memstore.Config{Partitions: 8}), core.Config{})
	require.NoError(t, err)
	var seen []string
	named := func(name string) func(core.Submitter) core.Submitter {
		return func(next core.Submitter) core.Submitter {
			return func(ctx context.Context, tasks []core.NewTask) ([]core.Submitted, error) {
				seen = append(seen, name)
				if tasks[0].Kind == "refused" {
					return nil, errors.New("not here")
				}
				tasks[0].Traceparent += name
				out, err := next(ctx, tasks)
				seen = append(seen, fmt.Sprint(name, " ", len(out), " ", err))
				return out, err
			}
		}
	}
	s.UseSubmit(named("outer"), named("inner"))
	mine := []core.NewTask{{Agent: "a", ID: "1", Kind: "k"}}
	_, err = s.Submit(t.Context(), mine...)
	require.NoError(t, err)
	assert.Empty(t, mine[0].Traceparent)
	assert.Equal(t, []string{"outer", "inner", "inner 1 <nil>", "outer 1 <nil>"}, seen)
	info, err := s.Task(t.Context(), "a", "1")
	require.NoError(t, err)
	assert.Equal(t, "outerinner", info.Traceparent)
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "2", Kind: "refused"})
	require.EqualError(t, err, "not here")
	_, err = s.Task(t.Context(), "a", "2")
	require.ErrorIs(t, err, core.ErrNotFound)
	out, err := s.Submit(t.Context())
	require.NoError(t, err)
	assert.Empty(t, out)
}

// A trace is about a submit: the same task in another trace is the same, for those that are kept and those that are replaced.
func TestAnotherTraceIsNoOtherTask(t *testing.T) {
	t.Parallel()
	for _, policy := range []core.Policy{nil, core.NoPolicy{}} {
		var events []model.EventType
		s, err := core.New(memstore.New(memstore.Config{Partitions: 8}), core.Config{Policy: policy, OnEvent: func(e core.Event) { events = append(events, e.Type) }})
		require.NoError(t, err)
		task := core.NewTask{Agent: "a", ID: "1", Kind: "k", Cron: "0 9 * * *", Traceparent: "00-1"}
		for _, conflict := range []model.OnConflict{core.OnConflictKeep, core.OnConflictReplace} {
			task.OnConflict = conflict
			for _, trace := range []string{"00-1", "00-2", ""} {
				task.Traceparent = trace
				out, err := s.Submit(t.Context(), task)
				require.NoError(t, err)
				assert.False(t, out[0].Differs, "%s %q", conflict, trace)
			}
		}
		assert.Equal(t, []model.EventType{model.EventEnqueue}, events)
		info, err := s.Task(t.Context(), "a", "1")
		require.NoError(t, err)
		assert.Equal(t, "00-1", info.Traceparent)
		task.SessionID = "other"
		out, err := s.Submit(t.Context(), task)
		require.NoError(t, err)
		assert.True(t, out[0].Replaced)
		assert.Equal(t, []model.EventType{model.EventEnqueue, model.EventReplace}, events)
	}
}

// The outcome that a middleware names is the one that is stored.
func TestTheOutcomeThatMiddlewareSees(t *testing.T) {
	t.Parallel()
	for want, err := range map[model.Outcome]error{
		model.OutcomeSuccess: nil, model.OutcomeFailed: errors.New("broken"), model.OutcomeCancelled: core.Cancel(nil), model.OutcomeSnoozed: core.Snooze(time.Hour),
		model.OutcomeYielded: core.Yield(1, time.Hour), model.OutcomeAwaiting: core.Await(core.Signal{Key: "s"}, nil),
	} {
		t.Run(string(want), func(t *testing.T) {
			t.Parallel()
			var stored model.Outcome
			s, e := core.New(memstore.New(memstore.Config{Partitions: 8}), core.Config{OnEvent: func(e core.Event) {
				if e.Type == model.EventFinish {
					stored = e.Outcome
				}
			}})
			require.NoError(t, e)
			var seen model.Outcome
			s.Use(func(next core.Handler) core.Handler {
				return func(ctx context.Context, runs []*core.RunInfo) []error {
					out := next(ctx, runs)
					seen = core.OutcomeOf(ctx, out[0])
					return out
				}
			})
			core.Handle(s, "k", func(context.Context, *core.Task[any]) error { return err })
			_, e = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "k"})
			require.NoError(t, e)
			_, _ = s.RunDueTasks(t.Context(), []string{"a"})
			assert.Equal(t, want, stored)
			assert.Equal(t, want, seen)
		})
	}
	stopping, stop := context.WithCancelCause(t.Context())
	stop(core.ErrStopping)
	assert.Equal(t, model.OutcomeReleased, core.OutcomeOf(stopping, stopping.Err()))
	assert.Equal(t, model.OutcomeSnoozed, core.OutcomeOf(stopping, core.Snooze(time.Hour)))
	assert.Equal(t, model.OutcomeSuccess, core.OutcomeOf(stopping, nil))
	assert.Equal(t, model.OutcomeSuccess, core.OutcomeOf(t.Context(), core.NextIn(time.Hour)))
	assert.Equal(t, model.OutcomeSnoozed, core.OutcomeOf(t.Context(), core.RetryAfter(time.Now(), nil)))
}
