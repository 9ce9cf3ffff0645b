package core_test

// A store that comes back empty: what this process has declared is stored again before anything starts.

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

// emptied is a store that a test replaces by an empty one, as FLUSHALL does.
type emptied struct {
	*core.Scheduler

	store  *storetest.Spy
	mu     sync.Mutex
	events []core.Event
	most   atomic.Int64 // runs at once
	ran    atomic.Int64
}

func newEmptied(t *testing.T, config core.Config) *emptied {
	t.Helper()
	w := &emptied{store: &storetest.Spy{Store: memstore.New(memstore.Config{})}}
	config.OnEvent = func(e core.Event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.events = append(w.events, e)
	}
	var err error
	w.Scheduler, err = core.New(w.store, config)
	require.NoError(t, err)
	var now atomic.Int64
	core.Handle(w.Scheduler, "k", func(context.Context, *core.Task[any]) error {
		w.most.Store(max(w.most.Load(), now.Add(1)))
		time.Sleep(time.Second)
		now.Add(-1)
		w.ran.Add(1)
		return nil
	})
	return w
}

// flush empties the store.
func (w *emptied) flush() { w.store.Store = memstore.New(memstore.Config{}) }

func (w *emptied) submit(t *testing.T, n int) {
	t.Helper()
	for i := range n {
		_, err := w.Submit(t.Context(), core.NewTask{Agent: string(rune('a' + i)), Kind: "k"})
		require.NoError(t, err)
	}
}

func (w *emptied) resets() (out []core.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if e.Type == model.EventReset {
			out = append(out, e)
		}
	}
	return out
}

var oneAtOnce = []core.Limit{{About: core.LimitTarget{Kind: "k"}, Concurrency: 1}}

// Eight tasks under a limit of one run one after the other, also if the store has lost the limit before.
func TestAnEmptyStoreGetsItsLimitsBackFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newEmptied(t, core.Config{Limits: oneAtOnce, Concurrency: 8})
		_, err := w.RunDue(t.Context(), core.Scope{})
		require.NoError(t, err)
		w.flush()
		w.submit(t, 8)
		for w.ran.Load() < 8 {
			_, err = w.RunDue(t.Context(), core.Scope{})
			require.NoError(t, err)
		}
		assert.Equal(t, int64(1), w.most.Load())
		require.Len(t, w.resets(), 1)
		assert.Equal(t, "duly", w.resets()[0].By)
		limits, err := w.Limits(t.Context())
		require.NoError(t, err)
		assert.Len(t, limits, 1)
	})
}

// What the host declares is stored again by a process that has nothing to claim, as all that it would claim is lost.
func TestAnEmptyStoreGetsItsTasksBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newEmptied(t, core.Config{})
		define := core.Definitions{Version: "1", Apply: func(ctx context.Context) error {
			_, err := w.Submit(ctx, core.NewTask{Agent: "a", ID: "of the file", Kind: "k", Every: time.Hour})
			return err
		}}
		require.NoError(t, w.Define(t.Context(), define))
		w.flush()
		time.Sleep(10 * time.Second)
		_, err := w.RunDue(t.Context(), core.Scope{})
		require.NoError(t, err)
		assert.Equal(t, int64(1), w.ran.Load())
		assert.Len(t, w.resets(), 1)
	})
}

// Nothing starts while what was lost cannot be stored again.
func TestNothingStartsWithoutItsGuards(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newEmptied(t, core.Config{Limits: oneAtOnce})
		_, err := w.RunDue(t.Context(), core.Scope{})
		require.NoError(t, err)
		w.flush()
		w.submit(t, 2)
		away := errors.New("no")
		w.store.Before = func(_ context.Context, verb string) error {
			if verb == "Limit" {
				return away
			}
			return nil
		}
		_, err = w.RunDue(t.Context(), core.Scope{})
		require.ErrorIs(t, err, away)
		assert.Zero(t, w.ran.Load())
		require.Len(t, w.resets(), 1)
		assert.Equal(t, "no", w.resets()[0].Error)
		w.store.Before = nil
		for w.ran.Load() < 2 {
			_, err = w.RunDue(t.Context(), core.Scope{})
			require.NoError(t, err)
		}
		assert.Equal(t, int64(1), w.most.Load())
	})
}

// A store that falls back while a process stores its limits must not have the stamp alone, by which that process and its like would take them for
// stored: the pull fails, and the next one stores them again.
func TestALimitThatIsLostBeforeItsStamp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		perDay := core.Budget{About: core.BudgetTarget{LimitTarget: core.LimitTarget{Kind: "k"}, Unit: bound.UnitRuns, Per: bound.PerDay}, Amount: bound.AmountOf(9)}
		for name, c := range map[string]core.Config{"limit": {Limits: oneAtOnce}, "budget": {Budgets: []core.Budget{perDay}}} {
			w := newEmptied(t, c)
			w.store.Before = func(_ context.Context, verb string) error {
				if verb == "Stamp" {
					w.flush()
					w.store.Before = nil
				}
				return nil
			}
			_, err := w.RunDue(t.Context(), core.Scope{})
			require.ErrorContains(t, err, "were lost or lifted", name)
			w.submit(t, 3)
			for w.ran.Load() < 3 {
				_, err = w.RunDue(t.Context(), core.Scope{})
				require.NoError(t, err)
			}
			limits, err := w.Limits(t.Context())
			require.NoError(t, err)
			budgets, err := w.Budgets(t.Context())
			require.NoError(t, err)
			assert.Equal(t, 1, len(limits)+len(budgets), name)
		}
	})
}

// Processes with the same definitions store them once; one with others does not start before its own are stored.
func TestProcessesRelyOnOneStamp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newEmptied(t, core.Config{Limits: oneAtOnce})
		for range 2 {
			_, err := w.RunDue(t.Context(), core.Scope{})
			require.NoError(t, err)
		}
		assert.Equal(t, 1, w.store.Calls("Limit"), "it is known to be stored")
		other, err := core.New(w.store, core.Config{Limits: oneAtOnce})
		require.NoError(t, err)
		core.Handle(other, "k", func(context.Context, *core.Task[any]) error { return nil })
		_, err = other.RunDue(t.Context(), core.Scope{})
		require.NoError(t, err)
		w.flush()
		w.submit(t, 1)
		_, err = w.RunDue(t.Context(), core.Scope{})
		require.NoError(t, err)
		limits := w.store.Calls("Limit")
		w.submit(t, 1)
		_, err = other.RunDue(t.Context(), core.Scope{})
		require.NoError(t, err)
		assert.Equal(t, limits, w.store.Calls("Limit"), "another process has stored it again")
	})
}

// A store that is slow to answer one call for what is declared keeps no other call waiting, neither one that can do without nor one whose caller has gone.
func TestASlowStampHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newEmptied(t, core.Config{Limits: oneAtOnce})
		slow := make(chan struct{})
		w.store.Before = func(_ context.Context, verb string) error {
			if verb == "Limit" || verb == "Stamped" {
				<-slow
			}
			return nil
		}
		first := make(chan error, 1)
		run := func() {
			_, err := w.RunDue(t.Context(), core.Scope{})
			first <- err
		}
		go run()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := w.RunDue(ctx, core.Scope{})
		require.ErrorIs(t, err, context.DeadlineExceeded, "nothing is stored yet")
		slow <- struct{}{}
		require.NoError(t, <-first)

		w.submit(t, 1)
		time.Sleep(10 * time.Second)
		go run()
		synctest.Wait()
		_, err = w.RunDue(t.Context(), core.Scope{})
		require.NoError(t, err)
		assert.Equal(t, int64(1), w.ran.Load())
		slow <- struct{}{}
		require.NoError(t, <-first)
	})
}
