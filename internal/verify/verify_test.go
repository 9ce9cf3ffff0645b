package verify_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/internal/verify"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// inProcess is a subject without a process: nothing can be killed.
type inProcess struct {
	*core.Scheduler

	delivered int
}

func (p *inProcess) Deliver(ctx context.Context, tasks []core.NewTask) error {
	p.delivered += len(tasks)
	_, err := p.Submit(ctx, tasks...)
	return err
}

func (p *inProcess) Tick(ctx context.Context, agent string) error {
	_, err := p.RunDueTasks(ctx, []string{agent})
	return err
}

func (*inProcess) Kill() {}

// tried tries a handler that makes marks.
func tried(t *testing.T, tasks int, handle func(mark func(id string), t *core.Task[string]) error) (verify.Report, *inProcess) {
	t.Helper()
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{Default: core.KindConfig{MaxAttempts: 2, Backoff: -1}})
	require.NoError(t, err)
	p := &inProcess{Scheduler: s}
	var mu sync.Mutex
	marks := map[string]int{}
	core.Handle(s, "k", func(_ context.Context, task *core.Task[string]) error {
		return handle(func(id string) { mu.Lock(); defer mu.Unlock(); marks[id]++ }, task)
	})
	report, err := verify.Run(t.Context(), verify.Config{
		Scheduler: s, Subject: p, Agent: "a", Kind: "k", Payload: []byte(`"x"`), Tasks: tasks, Seed: 1,
		Marks: func(context.Context) (map[string]int, error) {
			mu.Lock()
			defer mu.Unlock()
			return maps.Clone(marks), nil
		},
	})
	require.NoError(t, err)
	return report, p
}

// What a function does more than once, never, or without an end is named; each event comes twice.
func TestFaultsAreNamed(t *testing.T) {
	t.Parallel()
	report, p := tried(t, 14, func(mark func(id string), task *core.Task[string]) error {
		assert.Equal(t, "x", task.Payload)
		switch task.ID {
		case "task-0003": // it is tried again after its effect
			mark(task.ID)
			if task.Attempt == 1 {
				return errors.New("late")
			}
		case "task-0005":
			return nil
		case "task-0007":
			return core.SkipRetry(errors.New("boom"))
		default:
			mark(task.ID)
		}
		return nil
	})
	assert.False(t, report.Passed())
	assert.Equal(t, "ran once: 11 of 14", report.Last())
	assert.Equal(t, []verify.Fault{{ID: "task-0003", Times: 2}}, report.More)
	assert.ElementsMatch(t, []verify.Fault{
		{ID: "task-0005", Why: "it completed, and has made no mark"}, {ID: "task-0007", Why: "it is failed (no_retry): boom"},
	}, report.Never)
	assert.Equal(t, 28, p.delivered)
}

func TestARunWithoutFaultPasses(t *testing.T) {
	t.Parallel()
	report, _ := tried(t, 5, func(mark func(id string), task *core.Task[string]) error { mark(task.ID); return nil })
	assert.True(t, report.Passed())
	_, err := verify.Run(t.Context(), verify.Config{})
	assert.ErrorContains(t, err, "tasks must be between 1 and 1000")
}
