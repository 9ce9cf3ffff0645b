package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest"
	"github.com/seed-6f6f2c11/duly/internal/race"
)

// mortal is the way of one process to a store: once the process is dead, nothing of it gets there.
type mortal struct {
	storetest.Spy

	dead atomic.Bool
}

var errDead = &store.Error{Verb: "call", Err: errors.New("the process is dead")}

func newMortal(st core.Store) *mortal {
	m := &mortal{Spy: storetest.Spy{Store: st}}
	m.Before = func(context.Context, string) error {
		if m.dead.Load() {
			return errDead
		}
		return nil
	}
	return m
}

// mortals are processes on one store that come one after the other, as each dies.
type mortals struct {
	t           *testing.T
	store       core.Store
	concurrency int
	lease       time.Duration
	handle      func(ctx context.Context, task *core.Task[any], die func()) error

	mu       sync.Mutex
	suspects [4]int // that run, by how often their processes have died
}

// lives runs what is due until the process dies, or nothing is left. It reports whether it died.
func (m *mortals) lives(killed <-chan struct{}) bool {
	st := newMortal(m.store)
	s, err := core.New(st, core.Config{Concurrency: m.concurrency, Default: core.KindConfig{Lease: m.lease}})
	require.NoError(m.t, err)
	ctx, cancel := context.WithCancel(m.t.Context())
	defer cancel()
	die := func() {
		st.dead.Store(true)
		cancel()
	}
	core.Handle(s, "work", func(ctx context.Context, task *core.Task[any]) error {
		m.enter(task)
		defer m.exit(task)
		return m.handle(ctx, task, die)
	})
	go func() {
		select {
		case <-killed:
			die()
		case <-ctx.Done():
		}
	}()
	for !st.dead.Load() {
		report, _ := s.RunDue(ctx, core.Scope{})
		if report.NextDueAt.IsZero() {
			break
		}
		select {
		case <-time.After(s.Until(report.NextDueAt)):
		case <-ctx.Done():
		}
	}
	died := st.dead.Load()
	cancel()
	return died
}

// enter checks how many suspects of a sort run.
func (m *mortals) enter(task *core.Task[any]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.suspects[task.Crashes]++
	if task.Crashes > 0 {
		most := [4]int{0, max(1, m.concurrency/2), min(2, m.concurrency), 1}[task.Crashes]
		assert.LessOrEqual(m.t, m.suspects[task.Crashes], most, "with %d crashes", task.Crashes)
	}
}

func (m *mortals) exit(task *core.Task[any]) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.suspects[task.Crashes]--
}

func (m *mortals) submit(n int) *core.Scheduler {
	s, err := core.New(m.store, core.Config{})
	require.NoError(m.t, err)
	var tasks []core.NewTask
	for i := range n {
		tasks = append(tasks, core.NewTask{Agent: fmt.Sprint("agent", i%20), ID: fmt.Sprint(i), Kind: "work"})
	}
	for len(tasks) > 0 {
		k := min(len(tasks), 1000)
		_, err = s.Submit(m.t.Context(), tasks[:k]...)
		require.NoError(m.t, err)
		tasks = tasks[k:]
	}
	return s
}

// sleep is the work of an innocent task.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Tasks that end their processes are dead after four crashes each, and take none of those with them that ran beside them.
func TestPoisonousTasksDieAlone(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ concurrency, poisonous, innocent int }{
		{1, 1, 199}, {5, 1, 199}, {20, 1, 199}, {50, 1, 199}, {1, 5, 30}, {5, 5, 30}, {20, 20, 30}, {50, 50, 30}, {10, 50, 30}, {20, 50, 30},
	} {
		t.Run(fmt.Sprintf("%d of %d with %d slots", c.poisonous, c.poisonous+c.innocent, c.concurrency), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { poison(t, c.concurrency, c.poisonous, c.innocent) })
		})
	}
}

// poison runs poisonous tasks among innocent ones, in processes that come one after the other.
func poison(t *testing.T, concurrency, poisonous, innocent int) {
	t.Helper()
	m := &mortals{t: t, store: memstore.New(memstore.Config{Partitions: 8}), concurrency: concurrency, lease: 10 * time.Second}
	tasks := poisonous + innocent
	bad := func(i int) bool { return i*poisonous/tasks != (i+1)*poisonous/tasks } // evenly among the others
	m.handle = func(ctx context.Context, task *core.Task[any], die func()) error {
		_ = sleep(ctx, 100*time.Millisecond)
		if i, _ := strconv.Atoi(task.ID); bad(i) {
			die()
		}
		return ctx.Err()
	}
	s := m.submit(tasks)
	deaths := 0
	for m.lives(nil) {
		m.suspects = [4]int{}
		deaths++
		require.LessOrEqual(t, deaths, 4*poisonous)
	}
	for i := range tasks {
		info, err := s.Task(t.Context(), fmt.Sprint("agent", i%20), fmt.Sprint(i))
		require.NoError(t, err)
		if bad(i) {
			assert.Equal(t, [3]any{core.StatusFailed, "crashed", int64(4)}, [3]any{info.Status, info.Reason, info.RunCount})
		} else {
			assert.Equal(t, core.StatusCompleted, info.Status, "the innocent %d", i)
		}
	}
}

// However often processes are killed at random, no task dies of it.
func TestRandomKillsKillNoTask(t *testing.T) {
	t.Parallel()
	seeds := uint64(20)
	if race.Enabled { // each takes ten times as long
		seeds = 4
	}
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const tasks, kills = 2000, 24
				random := rand.New(rand.NewPCG(seed, 0))
				m := &mortals{t: t, store: memstore.New(memstore.Config{Partitions: 8}), concurrency: 20, lease: time.Second}
				m.handle = func(ctx context.Context, _ *core.Task[any], _ func()) error { return sleep(ctx, 80*time.Millisecond) }
				s := m.submit(tasks)
				for left := kills; ; left-- {
					killed := make(chan struct{})
					if left > 0 {
						time.AfterFunc(time.Duration(random.Int64N(int64(700*time.Millisecond))), func() { close(killed) })
					}
					if !m.lives(killed) && left <= 0 {
						break
					}
				}
				stats, err := s.Stats(t.Context())
				require.NoError(t, err)
				assert.Equal(t, [2]int64{tasks, 0}, [2]int64{stats.Completed, stats.Failed})
			})
		})
	}
}
