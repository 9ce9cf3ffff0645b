package core_test

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
	"github.com/seed-6f6f2c11/duly/core/store"
)

// frozenStore is the store of a process that is frozen in the middle of a call: it reads a task of ada much later than it wanted to, keeps no lease meanwhile, and
// goes on as if nothing had been.
type frozenStore struct {
	store.Store

	on   atomic.Bool
	thaw chan struct{}
}

func (f *frozenStore) Get(ctx context.Context, q store.Get) (store.Found, error) {
	found, err := f.Store.Get(context.WithoutCancel(ctx), q)
	if f.on.Load() && q.Agent == "ada" {
		<-f.thaw
	}
	return found, err
}

func (f *frozenStore) Submit(ctx context.Context, tasks []store.Submission) ([]store.Submitted, error) {
	return f.Store.Submit(context.WithoutCancel(ctx), tasks)
}

func (f *frozenStore) Extend(ctx context.Context, leases []store.Extension) ([]store.Extended, error) {
	if f.on.Load() {
		return nil, context.DeadlineExceeded
	}
	return f.Store.Extend(ctx, leases)
}

// A process that was frozen while it looked at a task, for longer than its lease, does not tell that the task is late once it is not any more.
func TestALookThatWasFrozenTellsNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(memstore.Config{Partitions: 1})
		f := &frozenStore{Store: st, thaw: make(chan struct{})}
		w := newWorldOn(t, st, core.Config{})
		var late atomic.Int64
		cold, err := core.New(f, core.Config{OnEvent: func(e core.Event) {
			if e.Type == model.EventLate {
				late.Add(1)
			}
		}})
		require.NoError(t, err)
		var succeeds atomic.Bool
		for _, s := range []*core.Scheduler{w.s, cold} {
			core.Handle(s, "k", func(context.Context, *core.Task[any]) error {
				if succeeds.Load() {
					return nil
				}
				return core.SkipRetry(errors.New("no"))
			})
		}
		task := watchedTask()
		task.OnLate = ""
		w.submit(task)
		time.Sleep(15*time.Minute + time.Second)
		f.on.Store(true)
		var done sync.WaitGroup
		done.Go(func() { _, _ = cold.RunDue(t.Context(), core.Scope{}) })
		time.Sleep(time.Minute)
		end := w.pulls(w.s)
		time.Sleep(5 * time.Minute)
		require.Len(t, w.seen(model.EventLate), 1, "another process has looked")
		succeeds.Store(true)
		time.Sleep(30 * time.Minute)
		require.Len(t, w.seen(model.EventOnTime), 1)
		f.on.Store(false)
		close(f.thaw)
		done.Wait()
		time.Sleep(10 * time.Minute)
		assert.Zero(t, late.Load())
		assert.Len(t, w.seen(model.EventOnTime), 1)
		end()
	})
}
