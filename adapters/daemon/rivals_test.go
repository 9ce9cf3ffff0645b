package daemon_test

// Several daemons on one store, in virtual time: one asks for what falls due, and the others come when it does not.

import (
	"context"
	"fmt"
	"slices"
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
)

// rivals are daemons on one store.
type rivals struct {
	*testing.T

	all  []*rival
	done sync.WaitGroup
}

// rival is one of them. It counts its claims.
type rival struct {
	*memstore.Store

	stop      context.CancelFunc
	scheduler *core.Scheduler

	mu      sync.Mutex
	claims  int
	vain    int             // that brought nothing
	late    []time.Duration // how late its runs began
	running int
}

func (r *rival) Claim(ctx context.Context, requests []store.ClaimRequest) ([]store.Claim, error) {
	claims, err := r.Store.Claim(ctx, requests)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claims++
	if err == nil && len(claims[0].Tasks) == 0 {
		r.vain++
	}
	return claims, err
}

func (r *rival) Turn(ctx context.Context, runs []store.Settlement, requests []store.ClaimRequest) ([]store.Settled, []store.Claim, error) {
	return store.InTurn(ctx, r, runs, requests)
}

// forget counts anew.
func (r *rival) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claims, r.vain, r.late = 0, 0, nil
}

func startRivals(t *testing.T, n int, takes time.Duration) *rivals {
	t.Helper()
	f := &rivals{T: t}
	st := memstore.New(memstore.Config{Partitions: 1})
	for i := range n {
		r := &rival{Store: st}
		s, err := core.New(r, core.Config{Name: fmt.Sprint("process", i), Concurrency: 20, Presence: st})
		require.NoError(t, err)
		core.Handle(s, "call", func(ctx context.Context, task *core.Task[any]) error {
			r.mu.Lock()
			r.late = append(r.late, time.Since(task.Due))
			r.running++
			r.mu.Unlock()
			defer func() {
				r.mu.Lock()
				r.running--
				r.mu.Unlock()
			}()
			select {
			case <-time.After(takes):
			case <-ctx.Done():
			}
			return ctx.Err()
		})
		d, err := daemon.New(s, daemon.Config{Waker: st})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		f.done.Go(func() { assert.NoError(t, d.Run(ctx)) })
		r.stop, r.scheduler = cancel, s
		f.all = append(f.all, r)
	}
	t.Cleanup(func() {
		for _, r := range f.all {
			r.stop()
		}
		f.done.Wait()
	})
	return f
}

// sum adds up what the daemons have counted, and says how late the latest run of all began.
func (f *rivals) sum() (claims, vain, runs int, latest time.Duration) {
	for _, r := range f.all {
		r.mu.Lock()
		claims, vain, runs = claims+r.claims, vain+r.vain, runs+len(r.late)
		latest = max(latest, slices.Max(append(r.late, 0)))
		r.mu.Unlock()
	}
	return claims, vain, runs, latest
}

// Of four daemons that all know when something falls due one claims it, on time. When it stops, another one does, a few milliseconds late at most.
func TestOneOfSeveralDaemonsClaims(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := startRivals(t, 4, time.Millisecond)
		for i := range 20 {
			_, err := f.all[0].scheduler.Submit(t.Context(), core.NewTask{
				Agent: fmt.Sprint("a", i), Kind: "call", Every: 4 * time.Second, From: core.FromStart, Delay: time.Second + time.Duration(i)*200*time.Millisecond,
			})
			require.NoError(t, err)
		}
		time.Sleep(30 * time.Second) // all of them know of the others
		for _, r := range f.all {
			r.forget()
		}
		time.Sleep(time.Minute)
		claims, vain, runs, latest := f.sum()
		assert.InDelta(t, 300, runs, 1)
		assert.Less(t, vain, 5, "of %d claims", claims)
		assert.LessOrEqual(t, latest, 2*time.Millisecond)

		busiest := slices.MaxFunc(f.all, func(a, b *rival) int { return len(a.late) - len(b.late) })
		busiest.stop()
		for _, r := range f.all {
			r.forget()
		}
		time.Sleep(20 * time.Second)
		_, _, runs, latest = f.sum()
		assert.InDelta(t, 100, runs, 1)
		assert.LessOrEqual(t, latest, 6*time.Millisecond)
	})
}

// Runs that last are shared out: who has less to do comes first.
func TestSeveralDaemonsShareTheLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := startRivals(t, 4, time.Hour)
		time.Sleep(time.Minute) // each of them has told the others
		for i := range 40 {
			_, err := f.all[0].scheduler.Submit(t.Context(), core.NewTask{Agent: fmt.Sprint("a", i), Kind: "call", Delay: time.Second + time.Duration(i)*3100*time.Millisecond})
			require.NoError(t, err)
		}
		time.Sleep(130 * time.Second)
		for i, r := range f.all {
			r.mu.Lock()
			assert.InDelta(t, 10, r.running, 4, "process %d", i)
			r.mu.Unlock()
		}
	})
}
