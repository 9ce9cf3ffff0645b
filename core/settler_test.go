package core_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// deaf is a store that stores no outcomes of one partition while it is down.
type deaf struct {
	core.Store

	mu   sync.Mutex
	down map[int]bool
}

func (s *deaf) set(down map[int]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

// Turn is made of Settle and Claim.
func (s *deaf) Turn(ctx context.Context, runs []store.Settlement, requests []store.ClaimRequest) ([]store.Settled, []store.Claim, error) {
	return store.InTurn(ctx, s, runs, requests)
}

func (s *deaf) Settle(ctx context.Context, runs []store.Settlement) ([]store.Settled, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]store.Settled, len(runs))
	for i := range runs {
		if s.down[runs[i].Partition] {
			out[i].Err = errShard
			continue
		}
		one, err := s.Store.Settle(ctx, runs[i:i+1])
		if err != nil {
			return nil, err
		}
		out[i] = one[0]
	}
	return out, nil
}

// An outcome that a partition does not take keeps no other waiting, and is stored as soon as the partition is back.
func TestOutcomesOfAPartitionThatIsAway(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		st := &deaf{Store: w.store, down: map[int]bool{2: true}}
		begun := time.Now()
		var mu sync.Mutex
		stored := map[string]time.Duration{}
		s, err := core.New(st, core.Config{OnEvent: func(e core.Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Type == model.EventFinish {
				stored[e.Agent] = time.Since(begun)
			}
		}})
		require.NoError(t, err)
		core.Handle(s, "k", func(_ context.Context, task *core.Task[note]) error {
			if task.Agent == agentOf(1) {
				time.Sleep(time.Second)
			}
			return nil
		})
		w.submit(core.NewTask{Agent: agentOf(2), Kind: "k"}, core.NewTask{Agent: agentOf(1), Kind: "k"})
		time.AfterFunc(10*time.Second, func() { st.set(nil) })
		report, err := s.RunDue(w.Context(), core.Scope{})
		require.NoError(t, err)
		assert.Equal(t, 2, report.Completed)
		assert.Equal(t, time.Second, stored[agentOf(1)])
		assert.InDelta(t, 11*time.Second, stored[agentOf(2)], float64(time.Second))
	})
}
