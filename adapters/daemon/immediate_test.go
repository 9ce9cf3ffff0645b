package daemon_test

// Urgent tasks beside a queue of others, on real Redis.

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// With ten thousand tasks of others due and all usual slots busy, an urgent task starts within a millisecond of its submit, and 99 in 100
// within five, but for what the machine itself is late.
func TestAnUrgentTaskPassesTenThousand(t *testing.T) {
	t.Parallel()
	const others, urgent = 10_000, 300
	srv := redistest.Start(t)
	config := redisstore.Config{URL: srv.URL}
	st, err := redisstore.Open(t.Context(), config)
	require.NoError(t, err)
	defer func() { _ = st.Close() }()
	s, err := core.New(st, core.Config{Concurrency: 10, Urgent: 2})
	require.NoError(t, err)
	core.Handle(s, "slow", func(ctx context.Context, _ *core.Task[any]) error {
		select {
		case <-time.After(100 * time.Millisecond):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	started := make(chan time.Time, 1)
	core.Handle(s, "ask", func(context.Context, *core.Task[any]) error {
		started <- time.Now()
		return nil
	})
	for from := 0; from < others; from += core.MaxSubmit {
		tasks := make([]core.NewTask, core.MaxSubmit)
		for i := range tasks {
			tasks[i] = core.NewTask{Agent: fmt.Sprint("other", (from+i)%1000), Kind: "slow"}
		}
		_, err := s.Submit(t.Context(), tasks...)
		require.NoError(t, err)
	}
	d, err := daemon.New(s, daemon.Config{Waker: st, Grace: time.Nanosecond})
	require.NoError(t, err)
	require.NoError(t, d.Start())
	require.Eventually(t, func() bool { return s.Slots().Usual == 8 }, 10*time.Second, time.Millisecond)

	ctx, end := context.WithCancel(t.Context())
	late := make(chan lateness, 1)
	client := redis.NewClient(srv.Client(t).Options())
	defer client.Close()
	go func() { late <- measure(ctx, func(ctx context.Context) error { return client.Ping(ctx).Err() }) }()
	var took []time.Duration
	for i := range urgent {
		begun := time.Now()
		_, err := s.Submit(t.Context(), core.NewTask{Agent: fmt.Sprint("user", i), Kind: "ask", Level: core.LevelHigh})
		require.NoError(t, err)
		took = append(took, (<-started).Sub(begun))
	}
	end()
	machine := <-late
	require.NoError(t, d.Stop(t.Context()))
	slices.Sort(took)
	p50, p99 := took[urgent/2], took[urgent*99/100]
	t.Logf("figure: from submit to start beside %d due tasks: p50 %s, p99 %s; the machine is %+v late", others, p50, p99, machine)
	assert.LessOrEqual(t, p50, time.Millisecond+steps*machine.mean)
	assert.LessOrEqual(t, p99, 5*time.Millisecond+steps*machine.most)
	stats, err := s.Stats(t.Context())
	require.NoError(t, err)
	assert.Greater(t, stats.Waiting, int64(others*9/10), "the others have not been run first")
}
