package daemon_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// What the rates that people have cost: how often a daemon calls its store, and how late tasks are for it.

// Where a task falls due each millisecond, a daemon claims those of a moment together, stores what has become of them with the next claim,
// never asks what it knows, and starts each at its time.
func TestAStreamOfTasksIsClaimedAtAPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{}, true)
		const tasks = 500
		var latest, ran atomic.Int64
		core.Handle(f.scheduler, "note", func(_ context.Context, task *core.Task[any]) error {
			late := int64(time.Since(task.Due))
			assert.GreaterOrEqual(t, late, int64(0))
			latest.Store(max(latest.Load(), late))
			ran.Add(1)
			return nil
		})
		for i := range tasks {
			f.submit(t, core.NewTask{Agent: fmt.Sprint("a", i), Kind: "note", Delay: time.Second + time.Duration(i)*time.Millisecond})
		}
		f.start(t)
		time.Sleep(time.Second - time.Millisecond)
		looks, claims, settles := f.store.Calls("Look"), f.store.Calls("Claim"), f.store.Calls("Settle")
		time.Sleep(time.Second)
		assert.EqualValues(t, tasks, ran.Load())
		assert.LessOrEqual(t, f.store.Calls("Look")-looks, 3)
		assert.LessOrEqual(t, f.store.Calls("Claim")-claims, tasks/10)
		assert.LessOrEqual(t, f.store.Calls("Settle")-settles, tasks/5)
		assert.GreaterOrEqual(t, f.store.Turns(), (f.store.Calls("Claim")-claims)*2/3, "most claims take along what has ended")
		assert.LessOrEqual(t, time.Duration(latest.Load()), 2*time.Millisecond)
	})
}

// A backlog is no stream: a claim that brings all it asked for is followed at once.
func TestABacklogIsClaimedWithoutAPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{}, true)
		started := f.stamps()
		for i := range 300 {
			f.submit(t, core.NewTask{Agent: fmt.Sprint("a", i%7), Kind: "note"})
		}
		begun := time.Now()
		f.start(t)
		for range 300 {
			assert.LessOrEqual(t, (<-started).Sub(begun), 4*time.Millisecond)
		}
	})
}

// A daemon wakes nobody for what it is going to claim itself, but for what it gives back, or has no slot for.
func TestADaemonWakesNobodyForItsOwnTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{Grace: time.Millisecond}, true)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		woken, err := f.store.memory.Wakeups(ctx)
		require.NoError(t, err)
		heard := func() (n int) {
			synctest.Wait()
			for {
				select {
				case <-woken:
					n++
				default:
					return n
				}
			}
		}
		var slow atomic.Bool
		core.Handle(f.scheduler, "note", func(ctx context.Context, _ *core.Task[any]) error {
			if slow.Load() {
				<-ctx.Done()
			}
			return ctx.Err()
		})
		f.start(t)
		f.submit(t, core.NewTask{Agent: "a", Kind: "note", Every: time.Second, From: core.FromStart})
		assert.Positive(t, heard())
		time.Sleep(time.Minute)
		assert.Zero(t, heard())
		slow.Store(true)
		time.Sleep(1500 * time.Millisecond)
		require.NoError(t, f.daemon.Stop(t.Context()))
		assert.Positive(t, heard(), "another daemon is to run what this one gave back")
	})
}

// An occurrence that cannot become a task of its own, as the store is full, is given back, and comes again at growing pauses: the
// claim that takes its release along must not take it again without end.
func TestWhatIsGivenBackIsNotClaimedWithoutEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{}, true)
		s, err := core.New(f.store, core.Config{Concurrency: 1})
		require.NoError(t, err)
		d, err := daemon.New(s, daemon.Config{Waker: f.store})
		require.NoError(t, err)
		core.Handle(s, "note", func(context.Context, *core.Task[any]) error { return nil })
		for i := range 3 {
			_, err = s.Submit(t.Context(), core.NewTask{
				Agent: fmt.Sprint("a", i), Kind: "note", Every: time.Second, From: core.FromStart, Overlap: core.OverlapAllow,
			})
			require.NoError(t, err)
		}
		before := f.store.Before
		f.store.Before = func(ctx context.Context, verb string) error {
			if verb == "Submit" {
				return store.ErrFull
			}
			return before(ctx, verb)
		}
		require.NoError(t, d.Start())
		time.Sleep(time.Minute)
		require.NoError(t, d.Stop(t.Context()))
		assert.Less(t, f.store.claims(), 500)
	})
}

// Where one half of a turn fails, the other counts: each task runs once, and each outcome is stored.
func TestAHalfOfATurnThatFailsLosesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{}, true)
		const tasks = 300
		var ran, claims, settles atomic.Int64
		f.store.Before = func(_ context.Context, verb string) error {
			if verb == "Claim" && claims.Add(1)%7 == 0 || verb == "Settle" && settles.Add(1)%5 == 0 {
				return errDown
			}
			return nil
		}
		core.Handle(f.scheduler, "note", func(context.Context, *core.Task[any]) error {
			ran.Add(1)
			return nil
		})
		for i := range tasks {
			f.submit(t, core.NewTask{Agent: fmt.Sprint("a", i), Kind: "note", Delay: time.Second + time.Duration(i)*time.Millisecond})
		}
		f.start(t)
		time.Sleep(time.Minute)
		assert.EqualValues(t, tasks, ran.Load())
		assert.Positive(t, f.store.Turns())
		stats, err := f.store.Stats(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, tasks, stats.Completed)
		assert.Zero(t, stats.Recovered)
	})
}

// At rest a task that falls due costs a claim and a settlement, at once, and no look.
func TestARecurringTaskCostsAClaimAndASettlement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{}, true)
		var ran atomic.Int64
		core.Handle(f.scheduler, "note", func(_ context.Context, task *core.Task[any]) error {
			assert.Less(t, time.Since(task.Due), 50*time.Microsecond)
			ran.Add(1)
			return nil
		})
		f.start(t)
		for i := range 10 {
			f.submit(t, core.NewTask{Agent: fmt.Sprint("a", i), Kind: "note", Every: time.Second})
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(time.Minute + 50*time.Millisecond) // between two runs: at the moment of one it would be chance what has been counted
		looks, claims, settles, before := f.store.Calls("Look"), f.store.Calls("Claim"), f.store.Calls("Settle"), ran.Load()
		time.Sleep(time.Minute)
		runs := ran.Load() - before
		require.EqualValues(t, 600, runs)
		assert.LessOrEqual(t, f.store.Calls("Claim")-claims, 600)
		assert.LessOrEqual(t, f.store.Calls("Settle")-settles, 600)
		// What others have left unsaid is still looked for, each second.
		assert.LessOrEqual(t, f.store.Calls("Look")-looks, 60+1)
		assert.GreaterOrEqual(t, f.store.Calls("Look")-looks, 30)
	})
}
