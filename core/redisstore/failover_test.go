package redisstore_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// promoted is a store whose master can be replaced by another.
type promoted struct{ store.Store }

// A replica is promoted that lacks the last writes and whose clock is behind: a process still gets larger fences than it had.
func TestFencesGrowAcrossAFailover(t *testing.T) {
	t.Parallel()
	open := func(ahead time.Duration) *redisstore.Store {
		clock := storetest.NewClock()
		st := still(t, redisstore.Config{URL: redistest.Start(t).URL}, clock, false, storetest.Options{Partitions: 2})
		clock.Advance(ahead)
		s, err := core.New(st, core.Config{})
		require.NoError(t, err)
		for _, agent := range []string{"a", "b", "c", "d"} { // in both partitions
			_, err = s.Submit(t.Context(), core.NewTask{Agent: agent, ID: "1", Kind: "k"})
			require.NoError(t, err)
		}
		return st
	}
	before, after := open(time.Minute), open(0)
	st := &promoted{before}
	s, err := core.New(st, core.Config{})
	require.NoError(t, err)
	var mu sync.Mutex
	fences := map[int][]store.Fence{}
	core.Handle(s, "k", func(_ context.Context, task *core.Task[any]) error {
		p := store.PartitionOf(task.Agent, 2)
		mu.Lock()
		defer mu.Unlock()
		fences[p] = append(fences[p], task.Fence)
		return nil
	})
	run := func() {
		report, err := s.RunDue(t.Context(), core.Scope{})
		require.NoError(t, err)
		require.Equal(t, 4, report.Completed)
	}
	run()
	st.Store = after
	run()
	require.Len(t, fences, 2)
	for _, seen := range fences {
		require.Len(t, seen, 4)
		assert.Greater(t, min(seen[2], seen[3]), max(seen[0], seen[1]))
	}
}
