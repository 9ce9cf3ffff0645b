package daemon_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// countRuns handles notes, and returns how many an agent has had.
func countRuns(s *core.Scheduler) func(agent string) int {
	var mu sync.Mutex
	ran := map[string]int{}
	core.Handle(s, "note", func(_ context.Context, t *core.Task[any]) error {
		mu.Lock()
		defer mu.Unlock()
		ran[t.Agent]++
		return nil
	})
	return func(agent string) int {
		mu.Lock()
		defer mu.Unlock()
		return ran[agent]
	}
}

// An agent with a task each second hides no other: the daemon looks for all at its own times.
func TestABusyAgentHidesNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{Agents: []string{"b"}}, false)
		ran := countRuns(f.scheduler)
		f.submit(t, core.NewTask{Agent: "b", ID: "poll", Kind: "note", Every: time.Second})
		f.start(t)
		time.Sleep(5*time.Second + 300*time.Millisecond)
		require.NoError(t, f.daemon.RegisterAgent("a"))
		time.Sleep(5 * time.Second)
		f.submit(t, core.NewTask{Agent: "a", ID: "once", Kind: "note"}) // by another process, say
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		assert.Equal(t, 1, ran("a"), "b ran %d times", ran("b"))
	})
}

// An agent whose pull failed is asked for again, whatever the others do.
func TestAFailedPullForgetsNoAgent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{Agents: []string{"b"}}, false)
		ran := countRuns(f.scheduler)
		f.submit(t, core.NewTask{Agent: "a", ID: "once", Kind: "note"}) // due all the time
		f.submit(t, core.NewTask{Agent: "b", ID: "poll", Kind: "note", Every: time.Second})
		f.start(t)
		time.Sleep(10*time.Second + 990*time.Millisecond) // b falls due in 10 ms
		f.store.down.Store(true)
		require.NoError(t, f.daemon.RegisterAgent("a"))
		synctest.Wait() // one claim, for a, has failed
		f.store.down.Store(false)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		assert.Equal(t, 1, ran("a"), "b ran %d times", ran("b"))
	})
}

// A dead process' work starts again, also while another registered agent is busy and somebody else's task is overdue, as with
// two daemons that each have their agents.
func TestTheWorkOfTheDeadIsFoundByABusyDaemon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{Agents: []string{"b"}}, true)
		ran := countRuns(f.scheduler)
		f.submit(t, core.NewTask{Agent: "z", ID: "not ours", Kind: "note"})
		f.submit(t, core.NewTask{Agent: "b", ID: "poll", Kind: "note", Every: time.Second})
		f.submit(t, core.NewTask{Agent: "a", ID: "once", Kind: "note"})
		claims, err := f.store.memory.Claim(t.Context(), []store.ClaimRequest{{ // and that process dies
			Partition: store.PartitionOf("a", f.store.Partitions()), Nonce: "0123456789abcdef"[:store.NonceLen], Agents: []string{"a"}, Kinds: []string{"note"}, Limit: 1, Lease: 20 * time.Second,
		}})
		require.NoError(t, err)
		require.Len(t, claims[0].Tasks, 1)
		require.NotEqual(t, store.PartitionOf("a", f.store.Partitions()), store.PartitionOf("b", f.store.Partitions()))
		f.start(t)
		time.Sleep(5*time.Second + 300*time.Millisecond)
		require.NoError(t, f.daemon.RegisterAgent("a"))
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		assert.Equal(t, 1, ran("a"), "b ran %d times", ran("b"))
	})
}

// One bad id must not end the daemon for all agents.
func TestABadAgentIsRefused(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "a\nb", string(make([]byte, 300)), "\xff"} {
		synctest.Test(t, func(t *testing.T) {
			f := setup(t, daemon.Config{Agents: []string{"a"}}, true)
			ran := 0
			core.Handle(f.scheduler, "note", func(context.Context, *core.Task[any]) error { ran++; return nil })
			f.start(t)
			err := f.daemon.RegisterAgent(bad)
			assert.Error(t, err, "%q", bad)
			time.Sleep(time.Second)
			assert.NoError(t, f.daemon.Ready(), "%q", bad)
			_, err = daemon.New(f.scheduler, daemon.Config{Agents: []string{"a", bad}})
			assert.Error(t, err, "%q", bad)
			f.submit(t, core.NewTask{Agent: "a", ID: "x", Kind: "note"})
			time.Sleep(time.Minute)
			synctest.Wait()
			assert.Equal(t, 1, ran, "%q", bad)
		})
	}
}
