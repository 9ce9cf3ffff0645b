package redisstore_test

// The breaker on a real Redis, with several processes at once.

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/storetest"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// fuse is what the runs of an agent that explodes have come to, over several processes.
type fuse struct {
	mu    sync.Mutex
	left  int // runs that are to come
	calm  int // those of another agent
	codes []core.Code
	stop  context.CancelFunc
}

// bomb submits two tasks each time, until it is refused.
func (f *fuse) bomb(ctx context.Context, s *core.Scheduler) error {
	next := core.NewTask{Agent: "wild", Kind: "bomb", MaxAttempts: 1}
	_, err := s.Submit(ctx, next, next)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left--
	if err == nil {
		f.left += 2
	} else {
		f.codes = append(f.codes, core.CodeOf(err))
	}
	if f.left == 0 && f.calm > 0 {
		f.stop()
	}
	return err
}

// process is one of those that run it.
func (f *fuse) process(t *testing.T, c redisstore.Config, config core.Config) *core.Scheduler {
	t.Helper()
	s, err := core.New(open(t, c), config)
	require.NoError(t, err)
	core.Handle(s, "bomb", func(ctx context.Context, _ *core.Task[struct{}]) error { return f.bomb(ctx, s) })
	core.Handle(s, "quiet", func(context.Context, *core.Task[struct{}]) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.calm++
		return nil
	})
	return s
}

// Three processes run an agent whose handler submits two tasks each time: it stops at the default bounds, to the task.
func TestForkBombsStopOnRedis(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	for name, c := range map[string]struct {
		config core.Config
		tasks  int // besides the root
		code   core.Code
	}{
		"depth":  {core.Config{}, 510, core.CodeSpawnDepth},
		"number": {core.Config{MaxDepth: -1}, model.DefaultMaxSpawned, core.CodeSpawnRate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
			defer stop()
			f := &fuse{left: 1, stop: stop}
			var running sync.WaitGroup
			var first *core.Scheduler
			for range 3 {
				s := f.process(t, redisstore.Config{URL: srv.URL, Prefix: name, Partitions: 1}, c.config)
				first = s
				running.Go(func() {
					for ctx.Err() == nil {
						_, _ = s.RunDue(ctx, core.Scope{})
					}
				})
			}
			_, err := first.Submit(ctx, core.NewTask{Agent: "calm", ID: "1", Kind: "quiet"}, core.NewTask{Agent: "wild", ID: "root", Kind: "bomb", MaxAttempts: 1})
			require.NoError(t, err)
			running.Wait()
			assert.Zero(t, f.left, "it has stopped by itself")
			assert.Equal(t, 1, f.calm)
			assert.NotEmpty(t, f.codes)
			for _, code := range f.codes {
				assert.Equal(t, c.code, code)
			}
			stats, err := first.Stats(t.Context())
			require.NoError(t, err)
			assert.EqualValues(t, c.tasks+2, stats.Submitted)
		})
	}
}

// What is counted for a root is forgotten by itself.
func TestRootsAreForgotten(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st := still(t, redisstore.Config{URL: srv.URL}, storetest.NewClock(), false, storetest.Options{Partitions: 1})
	s, err := core.New(st, core.Config{})
	require.NoError(t, err)
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "root", Kind: "k"})
	require.NoError(t, err)
	ctx, err := s.WithParent(t.Context(), "a/root")
	require.NoError(t, err)
	_, err = s.Submit(ctx, core.NewTask{Agent: "a", ID: "1", Kind: "k"})
	require.NoError(t, err)
	c := srv.Client(t)
	keys := c.Keys(t.Context(), "*spawned*").Val()
	require.Len(t, keys, 1)
	ttl := c.PTTL(t.Context(), keys[0]).Val()
	assert.InDelta(t, (65 * time.Minute).Seconds(), ttl.Seconds(), 60)
}
