package dulytest

// The store that fails on demand.

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest/spy"
)

// Store keeps tasks in memory, and can be made to fail. It is safe for concurrent use.
type Store struct {
	store.Store

	tb testing.TB

	mu    sync.Mutex
	fails map[string]error // by verb
}

func newStore(tb testing.TB, clock *Clock) *Store {
	tb.Helper()
	s := &Store{tb: tb, fails: map[string]error{}}
	s.Store = &spy.Store{
		Store: prompt{memstore.New(memstore.Config{Partitions: 1, Clock: clock})}, // as one server has, so that limits can be set
		Before: func(_ context.Context, verb string) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.fails[verb]
		},
	}
	return s
}

// prompt takes the tasks of expired leases back at once, without a notice period, which nothing here needs: the clock is advanced by hand, and
// the store is never away.
type prompt struct{ *memstore.Store }

// Claim leases due tasks; see [store.Queue].
func (p prompt) Claim(ctx context.Context, requests []store.ClaimRequest) ([]store.Claim, error) {
	return p.Store.Claim(ctx, noticeless(requests))
}

// Turn settles and claims; see [store.Queue].
func (p prompt) Turn(ctx context.Context, runs []store.Settlement, requests []store.ClaimRequest) ([]store.Settled, []store.Claim, error) {
	return p.Store.Turn(ctx, runs, noticeless(requests))
}

func noticeless(requests []store.ClaimRequest) []store.ClaimRequest {
	requests = slices.Clone(requests)
	for i := range requests {
		requests[i].Notice = 0
	}
	return requests
}

// Fail makes every call of a verb fail with err from now on, and nothing is stored by it; a nil err lets the verb work again.
// A verb is the name of a method of [store.Store], such as "Submit" or "Claim"; any other fails the test.
//
// An err for which [core.CodeOf] has a code of its own, such as [store.ErrFull], is returned unchanged. Any other comes as the
// Err of a [store.Error], as if the store could not be reached.
//
// The scheduler does not give up when "Settle" fails: it tries to store an outcome until the task's lease is over. A test of
// that belongs in a bubble of testing/synctest, where the wait takes no time.
func (s *Store) Fail(verb string, err error) {
	s.tb.Helper()
	if !slices.Contains(verbs(), verb) {
		s.tb.Fatalf("dulytest: Fail: the store has no verb %q: use one of %s", verb, strings.Join(verbs(), ", "))
		return
	}
	if err != nil && core.CodeOf(err) == core.CodeInternal {
		err = &store.Error{Verb: strings.ToLower(verb), Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fails[verb] = err
}

// verbs are the methods of a store that can fail.
func verbs() []string {
	var names []string
	for m := range reflect.TypeFor[store.Store]().Methods() {
		if m.Type.NumOut() == 2 { // Partitions alone cannot fail
			names = append(names, m.Name)
		}
	}
	return names
}
