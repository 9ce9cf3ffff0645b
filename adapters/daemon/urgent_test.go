package daemon_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

// fullDaemon is one whose slots are full of work that takes minutes, with more behind it.
type fullDaemon struct {
	*daemon.Daemon

	store *memstore.Store
	calls *storetest.Spy // its own, not those of others

	mu    sync.Mutex
	asked int             // claims for urgent tasks that found none
	lates []time.Duration // how long after their due times urgent tasks have started
}

func newFullDaemon(t *testing.T, partitions int) *fullDaemon {
	t.Helper()
	f := &fullDaemon{store: memstore.New(memstore.Config{Partitions: partitions})}
	st := &storetest.Spy{Store: f.store}
	f.calls = st
	st.After = func(_ context.Context, _ string, answer any) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		claims, _ := answer.([]store.Claim)
		for i := range claims {
			if claims[i].UrgentNext != 0 {
				f.asked++
			}
		}
		return nil
	}
	s, err := core.New(st, core.Config{Concurrency: 10})
	require.NoError(t, err)
	core.Handle(s, "slow", func(ctx context.Context, _ *core.Task[any]) error {
		select {
		case <-time.After(10 * time.Minute):
		case <-ctx.Done():
		}
		return ctx.Err()
	})
	core.Handle(s, "reminder", func(_ context.Context, task *core.Task[any]) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.lates = append(f.lates, task.Claimed.Sub(task.Due))
		return nil
	})
	tasks := make([]core.NewTask, 100)
	for i := range tasks {
		tasks[i] = core.NewTask{Agent: fmt.Sprint("busy", i), Kind: "slow", ID: "1"}
	}
	_, err = s.Submit(t.Context(), tasks...)
	require.NoError(t, err)
	f.Daemon, err = daemon.New(s, daemon.Config{Waker: f.store, Grace: time.Second})
	require.NoError(t, err)
	require.NoError(t, f.Start())
	time.Sleep(10 * time.Second)
	return f
}

// asks is how often it asks for urgent tasks, a partition, while something is done.
func (f *fullDaemon) asks(do func()) int {
	f.mu.Lock()
	before := f.asked
	f.mu.Unlock()
	do()
	f.mu.Lock()
	defer f.mu.Unlock()
	return (f.asked - before) / f.store.Partitions()
}

// It asks for urgent tasks when some may be due and not all the time: a store that costs by the command costs no more than when it is idle. Urgent
// tasks do not wait for that, at any time and of any process.
func TestAFullDaemonAsksForUrgentTasksWhenSomeMayBeDue(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int{1, 8} {
		t.Run(fmt.Sprint(partitions), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFullDaemon(t, partitions)
				asks := f.asks(func() { time.Sleep(time.Minute) })
				assert.LessOrEqual(t, asks, 62, "once a second, where nothing falls due")
				assert.GreaterOrEqual(t, asks, 55, "a wake-up that is lost costs a second")

				other, err := core.New(f.store, core.Config{Name: "another process"})
				require.NoError(t, err)
				for i := range 20 {
					_, err = other.Submit(t.Context(), core.NewTask{Agent: fmt.Sprint("idle", i), Kind: "reminder", ID: "1", Level: core.LevelHigh, Delay: time.Duration(i%3) * 333 * time.Millisecond},
						core.NewTask{Agent: fmt.Sprint("busy", i), Kind: "reminder", ID: "2", Level: core.LevelHigh})
					require.NoError(t, err)
					time.Sleep(777 * time.Millisecond)
				}
				require.NoError(t, f.Stop(t.Context()))
				require.Len(t, f.lates, 40)
				for _, late := range f.lates {
					assert.LessOrEqual(t, late, 100*time.Millisecond)
				}
			})
		})
	}
}

// However often a caller has an urgent task announced that is not due yet, it asks no more often than it would without wake-ups.
func TestAFullDaemonIsNotDrivenByAFloodOfUrgentTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFullDaemon(t, 1)
		other, err := core.New(f.store, core.Config{Name: "another process"})
		require.NoError(t, err)
		calls := f.calls.Calls()
		asks := f.asks(func() {
			for i := range 1000 {
				_, err := other.Submit(t.Context(), core.NewTask{
					Agent: "far", ID: "1", Kind: "reminder", Level: core.LevelHigh, OnConflict: core.OnConflictReplace,
					Delay: 990*time.Millisecond - time.Duration(i%95)*10*time.Millisecond, // due before it was, each time
				})
				require.NoError(t, err)
				time.Sleep(5 * time.Millisecond)
			}
		})
		assert.LessOrEqual(t, asks, 5*21, "in five seconds, twenty times a second")
		assert.LessOrEqual(t, f.calls.Calls()-calls, 5*45, "a look and a claim each time")
		require.NoError(t, f.Stop(t.Context()))
	})
}
