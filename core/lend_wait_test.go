package core_test

// Workers that wait for runs, and what their process listens to meanwhile.

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/internal/waiting"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// slowEar is a store to which it takes a time to subscribe.
type slowEar struct {
	*memstore.Store

	takes  time.Duration
	mu     sync.Mutex
	asked  int          // how often it was
	over   func() error // nil while it listens
	claims int
}

func (e *slowEar) Wakeups(ctx context.Context) (<-chan store.Wakeup, error) {
	e.mu.Lock()
	e.asked++
	e.over = ctx.Err
	e.mu.Unlock()
	time.Sleep(e.takes)
	return e.Store.Wakeups(ctx)
}

// heard is how often it was listened to, and nil while it is.
func (e *slowEar) heard() (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.asked, e.over()
}

func (e *slowEar) Claim(ctx context.Context, c []store.ClaimRequest) ([]store.Claim, error) {
	e.claims++
	return e.Store.Claim(ctx, c)
}

// listens is a process whose workers wait at a store to which it takes a time to subscribe. It listens no more soon after the test.
func listens(t *testing.T, takes time.Duration) (*slowEar, *core.Scheduler, *core.Lender) {
	t.Helper()
	e := &slowEar{Store: memstore.New(memstore.Config{Partitions: 1}), takes: takes}
	s, err := core.New(e, core.Config{})
	require.NoError(t, err)
	t.Cleanup(func() {
		time.Sleep(waiting.Lingers)
		synctest.Wait()
		_, over := e.heard()
		require.Error(t, over, "it listens for ever")
	})
	return e, s, core.NewLender(s)
}

var patient = core.Loan{Kinds: []string{"k"}, Wait: 20 * time.Second}

// comes submits a task in a while.
func comes(t *testing.T, s *core.Scheduler, id int, in time.Duration) {
	t.Helper()
	time.AfterFunc(in, func() {
		_, err := s.Submit(t.Context(), core.NewTask{Agent: "ada", ID: strconv.Itoa(id), Kind: "k"})
		assert.NoError(t, err)
	})
}

// What comes while a process subscribes is lent as soon as it has.
func TestATaskComesWhileItsWorkerBeginsToListen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, s, l := listens(t, time.Second)
		begun := time.Now()
		comes(t, s, 1, time.Second/2)
		lent, err := l.Lend(t.Context(), patient)
		require.NoError(t, err)
		require.Len(t, lent.Runs, 1)
		assert.Equal(t, time.Second, time.Since(begun))
	})
}

// A process whose worker makes one run after the other subscribes once, and claims once for each that comes beside the one that is in vain.
func TestAWorkerThatReturnsSoonIsListenedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, l := listens(t, 0)
		const tasks = 20
		for i := range tasks {
			comes(t, s, i, time.Second)
			lent, err := l.Lend(t.Context(), patient)
			require.NoError(t, err)
			require.Len(t, lent.Runs, 1)
			_, err = l.Return(t.Context(), core.Returned{Ticket: lent.Runs[0].Ticket, End: func(*raw) error { return nil }})
			require.NoError(t, err)
			time.Sleep(waiting.Lingers / 2)
		}
		assert.LessOrEqual(t, e.claims, 2*tasks+1)
		asked, over := e.heard()
		assert.Equal(t, 1, asked)
		require.NoError(t, over)
	})
}

// A process whose worker waits in vain, and asks again, goes on to listen, and claims no more often than it looks.
func TestAWorkerThatWaitsInVainIsListenedFor(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, _, l := listens(t, 0)
		const times = 10
		for range times {
			lent, err := l.Lend(t.Context(), patient)
			require.NoError(t, err)
			require.Empty(t, lent.Runs)
		}
		assert.LessOrEqual(t, e.claims, times*int(patient.Wait/waiting.LookEvery)+1)
		asked, over := e.heard()
		assert.Equal(t, 1, asked)
		require.NoError(t, over)
	})
}

// A process listens no longer for a worker that gives up, nor once it stops.
func TestAProcessListensForNoOtherWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, s, l := listens(t, 0)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, _ = l.Lend(ctx, patient)
		_, over := e.heard()
		require.Error(t, over, "it was left")
		stopping := make(chan struct{})
		l = core.NewLender(s)
		l.EndWith(stopping)
		comes(t, s, 1, time.Second)
		_, err := l.Lend(t.Context(), patient)
		require.NoError(t, err)
		_, over = e.heard()
		require.NoError(t, over)
		close(stopping)
		synctest.Wait()
		asked, over := e.heard()
		require.Error(t, over, "it has stopped")
		assert.Equal(t, 2, asked)
	})
}
