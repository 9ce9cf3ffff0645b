package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
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
