package adaptertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Stores and schedulers that are not whole, for the tests of every adapter.

// Partly is a store of which some partitions do not answer.
// It is what a cluster looks like while one of its masters is away.
type Partly struct {
	core.Store

	mu   sync.Mutex
	away map[int]bool
}

// It has an address in it, so that a test can check that no client ever sees that.
var errAway = &store.Error{Verb: "claim", Err: errors.New("dial tcp 10.1.2.3:6379: connection refused")}

// SetAway makes these partitions, and no others, answer nothing.
func (s *Partly) SetAway(partitions ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = map[int]bool{}
	for _, p := range partitions {
		s.away[p] = true
	}
}

// Claim claims from the others.
// It fails as a whole only if no partition answers, as redisstore does.
func (s *Partly) Claim(ctx context.Context, requests []store.ClaimRequest) ([]store.Claim, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	claims := make([]store.Claim, len(requests))
	failed := 0
	for i := range requests {
		if s.away[requests[i].Partition] {
			claims[i] = store.Claim{Look: store.Look{Partition: requests[i].Partition, Err: errAway}}
			failed++
			continue
		}
		one, err := s.Store.Claim(ctx, requests[i:i+1])
		if err != nil {
			return nil, err
		}
		claims[i] = one[0]
	}
	if failed == len(requests) {
		return nil, errAway
	}
	return claims, nil
}

// Turn is made of Settle and Claim.
func (s *Partly) Turn(ctx context.Context, runs []store.Settlement, requests []store.ClaimRequest) ([]store.Settled, []store.Claim, error) {
	return store.InTurn(ctx, s, runs, requests)
}

// Look looks at the others.
func (s *Partly) Look(ctx context.Context, requests []store.LookRequest) ([]store.Look, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	looks := make([]store.Look, len(requests))
	failed := 0
	for i := range requests {
		if s.away[requests[i].Partition] {
			looks[i] = store.Look{Partition: requests[i].Partition, Err: errAway}
			failed++
			continue
		}
		one, err := s.Store.Look(ctx, requests[i:i+1])
		if err != nil {
			return nil, err
		}
		looks[i] = one[0]
	}
	if failed == len(requests) {
		return nil, errAway
	}
	return looks, nil
}

// AgentOf is an agent of a partition.
// Names are tried in turn until one falls into the partition.
func AgentOf(partition, partitions int) string {
	for i := 0; ; i++ {
		if name := fmt.Sprintf("p%d-%d", partition, i); store.PartitionOf(name, partitions) == partition {
			return name
		}
	}
}

// Stuck is the configuration of a scheduler that claims nothing once a single handler is abandoned, which takes no time.
var Stuck = core.Config{MaxAbandoned: 1, Margin: 2 * time.Millisecond}

// Stick makes a scheduler with the configuration Stuck claim nothing more, by a handler that ignores its cancelled context until
// it is let go, or the test ends.
func Stick(t *testing.T, s *core.Scheduler) (letGo func()) {
	t.Helper()
	hang, returned := make(chan struct{}), make(chan struct{})
	core.Handle(s, "stuck", func(context.Context, *core.Task[any]) error {
		defer close(returned)
		<-hang
		return nil
	})
	_, err := s.Submit(t.Context(), core.NewTask{Agent: "stuck", ID: "1", Kind: "stuck"})
	require.NoError(t, err)
	for d := 50 * time.Millisecond; s.Slots().Abandoned == 0; d *= 2 { // on a busy machine a pull may be over before it has started anything
		require.Less(t, d, 10*time.Second)
		_, err = s.RunDue(t.Context(), core.Scope{Agents: []string{"stuck"}, MaxDuration: d})
		require.NoError(t, err)
	}
	require.Equal(t, 1, s.Slots().Abandoned)
	letGo = sync.OnceFunc(func() { close(hang); <-returned })
	t.Cleanup(letGo)
	return letGo
}
