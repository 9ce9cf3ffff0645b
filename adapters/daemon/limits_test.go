package daemon_test

// Limits over several daemons on one store, in virtual time: never exceeded, and used while work waits.

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// fleet is several daemons on one store, whose handlers note when they begin and how many run.
type fleet struct {
	*testing.T

	first *core.Scheduler

	mu      sync.Mutex
	running map[string]int // by limit key
	most    map[string]int
	begun   map[string][]time.Time
	ended   chan string
}

// startFleet starts daemons with some limits; each run takes so long.
func startFleet(t *testing.T, n int, takes time.Duration, limits ...core.Limit) *fleet {
	t.Helper()
	f := &fleet{T: t, running: map[string]int{}, most: map[string]int{}, begun: map[string][]time.Time{}, ended: make(chan string, 100_000)}
	st := memstore.New(memstore.Config{Partitions: 1})
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	for i := range n {
		s, err := core.New(st, core.Config{Name: fmt.Sprint("process", i), Concurrency: 20, Limits: limits})
		require.NoError(t, err)
		core.Handle(s, "call", func(ctx context.Context, task *core.Task[any]) error { return f.call(ctx, task.Tags[0], takes) })
		d, err := daemon.New(s, daemon.Config{Waker: st})
		require.NoError(t, err)
		ended.Go(func() { assert.NoError(t, d.Run(ctx)) })
		f.first = s
	}
	t.Cleanup(func() { cancel(); ended.Wait() })
	return f
}

func (f *fleet) call(ctx context.Context, key string, takes time.Duration) error {
	f.mu.Lock()
	f.running[key]++
	f.most[key] = max(f.most[key], f.running[key])
	f.begun[key] = append(f.begun[key], time.Now())
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.running[key]--
		f.mu.Unlock()
		f.ended <- key
	}()
	select {
	case <-time.After(takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// submit submits calls of some agents in turn, with a key.
func (f *fleet) submit(key string, calls, agents int) {
	f.Helper()
	for i := range calls {
		_, err := f.first.Submit(f.Context(), core.NewTask{Agent: fmt.Sprint(key, i%agents), Kind: "call", LimitKey: key, Tags: []string{key}})
		require.NoError(f, err)
	}
}

// wait waits until so many calls have ended, and says how long that took.
func (f *fleet) wait(calls int) time.Duration {
	begun := time.Now()
	for range calls {
		<-f.ended
	}
	return time.Since(begun)
}

// Eight processes never run more than a limit allows, and at least nine tenths of what it does while work waits.
func TestALimitOfRunsOverManyProcesses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const calls, most, takes = 600, 5, 100 * time.Millisecond
		f := startFleet(t, 8, takes, core.Limit{About: core.LimitTarget{Key: "provider"}, Concurrency: most})
		f.submit("provider", calls, 40)
		f.submit("free", calls, 40)
		took := f.wait(2 * calls)
		assert.Equal(t, most, f.most["provider"])
		assert.Greater(t, f.most["free"], 100, "who has no limit is not held back")
		assert.LessOrEqual(t, took, calls/most*takes*10/9)
	})
}

// Nor do more start within any time than a rate allows.
func TestARateOverManyProcesses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rate, burst int
		per         time.Duration
	}{{60, 0, time.Minute}, {5, 3, time.Second}, {500, 0, time.Second}} {
		synctest.Test(t, func(t *testing.T) {
			calls := 3 * c.rate
			f := startFleet(t, 5, 10*time.Millisecond, core.Limit{About: core.LimitTarget{Key: "p*", Each: core.EachKey}, Rate: c.rate, Per: c.per, Burst: c.burst})
			f.submit("p1", calls, 20)
			f.submit("p2", calls, 20)
			took := f.wait(2 * calls)
			burst := c.burst
			if burst == 0 {
				burst = max(1, int(float64(c.rate)*0.1/c.per.Seconds()))
			}
			for key, begun := range f.begun {
				require.Len(t, begun, calls)
				slices.SortFunc(begun, time.Time.Compare)
				for i := c.rate + burst; i < len(begun); i++ {
					require.GreaterOrEqual(t, begun[i].Sub(begun[i-c.rate-burst]), c.per, "%s: the %dth start", key, i)
				}
			}
			assert.LessOrEqual(t, took, 3*c.per*10/9)
		})
	}
}
