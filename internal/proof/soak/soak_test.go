package soak_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/proof"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

func TestMain(m *testing.M) {
	logging.Disable()
	goleak.VerifyTestMain(m)
}

// machine is a Redis, a daemon, and how often its handlers have run.
type machine struct {
	t    *testing.T
	c    *redis.Client
	s    *core.Scheduler
	runs atomic.Int64
}

func start(t *testing.T, config redisstore.Config) *machine {
	t.Helper()
	srv := redistest.Start(t)
	config.URL = srv.URL
	st, err := redisstore.Open(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, st.Close()) })
	m := &machine{t: t, c: srv.Client(t)}
	m.s, err = core.New(st, core.Config{
		Concurrency: 200, Presence: st, Default: core.KindConfig{Backoff: -1, PauseAfter: -1, MaxAttempts: 1},
		Kinds: map[string]core.KindConfig{"seen": {Activity: &core.Activity{Delay: time.Second, MinInterval: time.Second}}},
	})
	require.NoError(t, err)
	core.Handle(m.s, "poll", func(_ context.Context, task *core.Task[any]) error {
		if n := m.runs.Add(1); n%5 == 0 {
			return errors.New("one in five fails")
		}
		return task.SetResult(task.Fence)
	})
	core.Handle(m.s, "seen", func(context.Context, *core.Task[any]) error { m.runs.Add(1); return nil })
	d, err := daemon.New(m.s, daemon.Config{Waker: st})
	require.NoError(t, err)
	require.NoError(t, d.Start())
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
		defer stop()
		assert.NoError(t, d.Stop(ctx))
	})
	return m
}

// size is what there is of everything that might grow.
type size struct {
	keys                         int64
	families                     map[string]int64 // bytes in Redis
	goroutines, descriptors, mib int
}

// family is the name of a key without the agent, the group or the kind that it is of.
var family = regexp.MustCompile(`^[^}]*\}:?([a-z]+)`)

func (m *machine) size() size {
	t := m.t
	s := size{families: map[string]int64{}, goroutines: runtime.NumGoroutine()}
	for keys := m.c.Scan(t.Context(), 0, "*", 1000).Iterator(); keys.Next(t.Context()); {
		s.keys++
		name := keys.Val()
		if m := family.FindStringSubmatch(name); m != nil {
			name = m[1]
		}
		n, err := m.c.MemoryUsage(t.Context(), keys.Val(), 0).Result()
		if !errors.Is(err, redis.Nil) {
			require.NoError(t, err)
		}
		s.families[name] += n
	}
	if open, err := os.ReadDir("/proc/self/fd"); err == nil {
		s.descriptors = len(open)
	}
	runtime.GC()
	var heap runtime.MemStats
	runtime.ReadMemStats(&heap)
	s.mib = int(heap.HeapAlloc >> 20)
	return s
}

// untilRuns waits until handlers have run so often.
func (m *machine) untilRuns(n int64) {
	m.t.Helper()
	require.Eventually(m.t, func() bool { return m.runs.Load() >= n }, 20*time.Minute, 10*time.Millisecond)
}

// settled is the size with the fewest keys of some moments: an agent that waits for a busy machine has queues, which go with its tasks.
func (m *machine) settled() size {
	s := m.size()
	for range 6 {
		m.untilRuns(m.runs.Load() + 25)
		s.keys = min(s.keys, m.size().keys)
	}
	return s
}

// Recurring tasks of every sort run for long: nothing grows once their histories are full.
func TestNothingGrows(t *testing.T) {
	t.Parallel()
	m := start(t, redisstore.Config{Retention: time.Minute, Kept: 100})
	tasks := proof.Size(100, 3000)
	var all []core.NewTask
	for i := range tasks {
		task := core.NewTask{Agent: fmt.Sprint("a", i/3), ID: fmt.Sprint("t", i), Kind: "poll", Every: time.Second, Group: "g", Level: core.Level(i%3 + 1)}
		if i%3 == 1 {
			task.Every, task.Cron = 0, "* * * * * *"
		}
		all = append(all, task)
	}
	for part := range slices.Chunk(all, core.MaxSubmit) {
		_, err := m.s.Submit(t.Context(), part...)
		require.NoError(t, err)
	}
	stop := make(chan struct{})
	users := make(chan struct{})
	go func() { // activity, one-offs and pauses beside them
		defer close(users)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			_, err := m.s.Notice(t.Context(), "seen", core.Subject{User: fmt.Sprint("u", i%20)})
			assert.NoError(t, err)
			_, err = m.s.Submit(t.Context(), core.NewTask{Agent: "one-off", Kind: "poll", Group: fmt.Sprint("g", i%10)})
			assert.NoError(t, err)
			target := core.Target{Agent: fmt.Sprint("a", i%10)}
			assert.NoError(t, m.s.Pause(t.Context(), target, core.Pause{}))
			assert.NoError(t, m.s.Resume(t.Context(), target))
		}
	}()
	m.untilRuns(int64(tasks * proof.Size(6, 110)))
	before := m.settled()
	m.untilRuns(int64(proof.Size(12*100, 1_000_000)))
	after := m.settled()
	close(stop)
	<-users

	assert.LessOrEqual(t, after.keys, before.keys+before.keys/int64(proof.Size(4, 50))+20)
	assert.LessOrEqual(t, after.goroutines, before.goroutines+250, "those of runs under way")
	assert.LessOrEqual(t, after.descriptors, before.descriptors+10)
	assert.LessOrEqual(t, after.mib, before.mib+20)
	if proof.Whole() { // the histories are full
		for name, bytes := range after.families {
			assert.LessOrEqual(t, bytes, before.families[name]+before.families[name]/20+64<<10, name)
		}
	}
	proof.Figure(t, "%d runs of %d recurring tasks: keys %d then %d, heap %d then %d MiB, goroutines %d then %d, descriptors %d then %d",
		m.runs.Load(), tasks, before.keys, after.keys, before.mib, after.mib, before.goroutines, after.goroutines, before.descriptors, after.descriptors)
}

// Very many tasks of one agent, one group and one limit key run, and nothing is left of them but their records.
func TestAllInOnePlace(t *testing.T) {
	t.Parallel()
	n := proof.Size(2000, 100_000)
	m := start(t, redisstore.Config{MaxTasks: n, Kept: n, Retention: time.Hour})
	var all []core.NewTask
	for i := range n {
		all = append(all, core.NewTask{Agent: "a", ID: fmt.Sprint(i), Kind: "seen-less", Group: "g", LimitKey: "k"})
	}
	core.Handle(m.s, "seen-less", func(context.Context, *core.Task[any]) error { m.runs.Add(1); return nil })
	begun := time.Now()
	for part := range slices.Chunk(all, core.MaxSubmit) {
		_, err := m.s.Submit(t.Context(), part...)
		require.NoError(t, err)
	}
	require.Eventually(t, func() bool {
		g, err := m.s.Group(t.Context(), "a", "g")
		return err == nil && g.Completed == int64(n)
	}, 5*time.Minute, 20*time.Millisecond)
	took := time.Since(begun)
	assert.EqualValues(t, n, m.runs.Load(), "each has run once")
	report, err := m.s.Audit(t.Context(), inspect.AuditOptions{})
	require.NoError(t, err)
	assert.Empty(t, report.Faults)
	proof.Figure(t, "%d tasks of one agent, one group and one key ran once each in %s", n, took.Round(100*time.Millisecond))
}

// Very many cron tasks fall due in the same minute: each runs once in it.
func TestCronsOfOneMinute(t *testing.T) {
	t.Parallel()
	n := proof.Size(300, 10_000)
	m := start(t, redisstore.Config{})
	at := time.Now().Add(time.Duration(proof.Size(3, 20)) * time.Second)
	cron := fmt.Sprintf("%d %d %d * * *", at.UTC().Second(), at.UTC().Minute(), at.UTC().Hour())
	var all []core.NewTask
	for i := range n {
		all = append(all, core.NewTask{Agent: fmt.Sprint("a", i), ID: "nightly", Kind: "poll", Cron: cron})
	}
	for part := range slices.Chunk(all, core.MaxSubmit) {
		_, err := m.s.Submit(t.Context(), part...)
		require.NoError(t, err)
	}
	require.True(t, time.Now().Before(at), "the machine is too slow for so many")
	m.untilRuns(int64(n))
	took := time.Since(at.Truncate(time.Second))
	stats, err := m.s.Stats(t.Context())
	require.NoError(t, err)
	assert.EqualValues(t, n, stats.Waiting+stats.InProgress, "each waits for tomorrow")
	assert.EqualValues(t, n, m.runs.Load())
	assert.Less(t, took, time.Minute)
	proof.Figure(t, "%d cron tasks of one second ran once each within %s", n, took.Round(100*time.Millisecond))
}
