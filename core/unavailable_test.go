package core_test

// Partitions that were away, and that somebody else has found to be back.

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// A pull that works on serves a partition again that was away, also if it was another pull of its process that found it to be back.
func TestAPartitionThatAnotherPullFindsBack(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		st := &partly{Store: w.store}
		s, err := core.New(st, core.Config{Concurrency: 4, Urgent: -1})
		require.NoError(t, err)
		core.Handle(s, "k", func(context.Context, *core.Task[any]) error {
			time.Sleep(100 * time.Millisecond)
			return nil
		})
		for range 400 { // ten seconds of work
			w.submit(core.NewTask{Agent: agentOf(0), Kind: "k"})
		}
		st.set(3)
		var first sync.WaitGroup
		defer first.Wait()
		first.Go(func() { _, _ = s.RunDue(w.Context(), core.Scope{MaxDuration: 8 * time.Second}) })
		time.Sleep(50 * time.Millisecond)
		st.set()
		_, err = s.RunDue(w.Context(), core.Scope{Partitions: []int{3}})
		require.NoError(t, err)
		require.NoError(t, s.Ready(), "it is back")
		w.submit(core.NewTask{Agent: agentOf(3), ID: "1", Kind: "k"})
		time.Sleep(3 * time.Second)
		assert.Equal(t, core.StatusCompleted, w.task(agentOf(3), "1").Status)
	})
}
