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

// A daemon whose slots are full of work that takes minutes, with more behind it, asks for urgent tasks when some may be due and not all the time: a store
// that costs by the command costs no more than when it is idle. Urgent tasks do not wait for that, at any time and of any process.
func TestAFullDaemonAsksForUrgentTasksWhenSomeMayBeDue(t *testing.T) {
	t.Parallel()
	for _, partitions := range []int{1, 8} {
		t.Run(fmt.Sprint(partitions), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { fullDaemon(t, partitions) })
		})
	}
}

func fullDaemon(t *testing.T, partitions int) {
	t.Helper()
	var mu sync.Mutex
	var asked int
	var lates []time.Duration
	mem := memstore.New(memstore.Config{Partitions: partitions})
	st := &storetest.Spy{Store: mem}
	st.After = func(_ context.Context, _ string, answer any) error {
		mu.Lock()
		defer mu.Unlock()
		claims, _ := answer.([]store.Claim)
		for i := range claims {
			if claims[i].UrgentNext != 0 {
				asked++
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
		mu.Lock()
		defer mu.Unlock()
		lates = append(lates, task.Claimed.Sub(task.Due))
		return nil
	})
	tasks := make([]core.NewTask, 100)
	for i := range tasks {
		tasks[i] = core.NewTask{Agent: fmt.Sprint("busy", i), Kind: "slow", ID: "1"}
	}
	_, err = s.Submit(t.Context(), tasks...)
	require.NoError(t, err)
	d, err := daemon.New(s, daemon.Config{Waker: mem, Grace: time.Second})
	require.NoError(t, err)
	require.NoError(t, d.Start())
	time.Sleep(10 * time.Second)
	mu.Lock()
	asked = 0
	mu.Unlock()
	time.Sleep(time.Minute)
	mu.Lock()
	assert.LessOrEqual(t, asked, 62*partitions, "once a second, where nothing falls due")
	assert.GreaterOrEqual(t, asked, 55*partitions, "a wake-up that is lost costs a second")
	mu.Unlock()

	other, err := core.New(mem, core.Config{Name: "another process"})
	require.NoError(t, err)
	for i := range 20 {
		_, err = other.Submit(t.Context(), core.NewTask{Agent: fmt.Sprint("idle", i), Kind: "reminder", ID: "1", Level: core.LevelHigh, Delay: time.Duration(i%3) * 333 * time.Millisecond},
			core.NewTask{Agent: fmt.Sprint("busy", i), Kind: "reminder", ID: "2", Level: core.LevelHigh})
		require.NoError(t, err)
		time.Sleep(777 * time.Millisecond)
	}
	require.NoError(t, d.Stop(t.Context()))
	require.Len(t, lates, 40)
	for _, late := range lates {
		assert.LessOrEqual(t, late, 100*time.Millisecond)
	}
}
