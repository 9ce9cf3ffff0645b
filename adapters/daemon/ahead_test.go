package daemon_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// soon submits two tasks of one partition, of which the first has a daemon claim the second ahead of its time. It returns when the second is due.
func (f *fixture) soon(t *testing.T) time.Time {
	t.Helper()
	f.submit(t, core.NewTask{Agent: "a", Kind: "note", Delay: time.Second}, core.NewTask{Agent: "a", ID: "second", Kind: "note", Delay: time.Second + 80*time.Millisecond})
	return time.Now().Add(time.Second + 80*time.Millisecond)
}

// claimed waits until the first of the tasks has started, and demands that the second is leased by then.
func (f *fixture) claimed(t *testing.T, started <-chan time.Time) {
	t.Helper()
	<-started
	synctest.Wait()
	info, err := f.scheduler.Task(t.Context(), "a", "second")
	require.NoError(t, err)
	require.Equal(t, core.StatusInProgress, info.Status, "it is claimed ahead of its time")
}

// A pause, a cancel and another definition that come between a claim and the time of its task are obeyed as before the claim.
func TestCommandsComeBeforeTheStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do     func(ctx context.Context, s *core.Scheduler) error
		status core.Status
	}{
		"pause of its kind": {func(ctx context.Context, s *core.Scheduler) error {
			return s.Pause(ctx, store.Target{Kind: "note"}, model.Pause{})
		}, core.StatusWaiting},
		"pause of the task": {func(ctx context.Context, s *core.Scheduler) error {
			return s.Pause(ctx, store.Target{Agent: "a", ID: "second"}, model.Pause{})
		}, core.StatusWaiting},
		"cancel": {func(ctx context.Context, s *core.Scheduler) error {
			_, err := s.Cancel(ctx, "a", "second", model.Order{})
			return err
		}, core.StatusCancelled},
		"replaced": {func(ctx context.Context, s *core.Scheduler) error {
			_, err := s.Submit(ctx, core.NewTask{Agent: "a", ID: "second", Kind: "note", Delay: time.Hour, OnConflict: core.OnConflictReplace})
			return err
		}, core.StatusWaiting},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := setup(t, daemon.Config{}, true)
				started := f.stamps()
				f.start(t)
				f.soon(t)
				f.claimed(t, started)
				time.Sleep(30 * time.Millisecond)
				require.NoError(t, c.do(t.Context(), f.scheduler))
				time.Sleep(10 * time.Second)
				assert.Empty(t, started, "it never starts")
				info, err := f.scheduler.Task(t.Context(), "a", "second")
				require.NoError(t, err)
				assert.Equal(t, c.status, info.Status)
				assert.LessOrEqual(t, info.Attempt, 1, "nothing is charged")
			})
		})
	}
}

// When a pause returns nothing starts any more, also in a process that has not heard of it.
func TestAPauseReturnsWhenNothingStartsAnyMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{Waker: deafWaker{}}, true)
		started := f.stamps()
		due := f.soon(t)
		f.start(t)
		f.claimed(t, started)
		begun := time.Now()
		require.NoError(t, f.scheduler.Pause(t.Context(), store.Target{}, model.Pause{}))
		assert.Len(t, started, 1, "it began while the pause did")
		assert.InDelta(t, due.Add(50*time.Millisecond).Sub(begun), time.Since(begun), float64(2*time.Millisecond))
		begun = time.Now()
		require.NoError(t, f.scheduler.Pause(t.Context(), store.Target{Agent: "b"}, model.Pause{Ahead: true}))
		assert.Zero(t, time.Since(begun), "a pause waits for nothing where nothing was claimed ahead")
	})
}

// A daemon that stops gives back what it has claimed ahead, uncharged, and another one starts it at its time.
func TestAStopGivesBackWhatHasNotBegun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{}, true)
		started := f.stamps()
		f.start(t)
		due := f.soon(t)
		f.claimed(t, started)
		begun := time.Now()
		require.NoError(t, f.daemon.Stop(t.Context()))
		assert.Less(t, time.Since(begun), 10*time.Millisecond, "at once")
		info, err := f.scheduler.Task(t.Context(), "a", "second")
		require.NoError(t, err)
		assert.Equal(t, [3]any{core.StatusWaiting, 1, due.UnixMilli()}, [3]any{info.Status, info.Attempt, info.Due.UnixMilli()})
		again, err := daemon.New(f.scheduler, daemon.Config{})
		require.NoError(t, err)
		require.NoError(t, again.Start())
		assert.InDelta(t, 0, (<-started).Sub(due), float64(time.Millisecond))
		require.NoError(t, again.Stop(t.Context()))
	})
}

// What a process had claimed ahead when it died is late by two seconds at most, not by its lease.
func TestADeathDelaysWhatHadNotBegunByAMoment(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{}, true)
		var dead atomic.Bool
		f.store.Before = func(context.Context, string) error {
			if dead.Load() {
				return errDown
			}
			return nil
		}
		started := f.stamps()
		f.start(t)
		due := f.soon(t)
		f.claimed(t, started)
		dead.Store(true)
		other, err := core.New(f.store.memory, core.Config{})
		require.NoError(t, err)
		var late atomic.Int64
		core.Handle(other, "note", func(context.Context, *core.Task[any]) error {
			late.CompareAndSwap(0, int64(time.Since(due)))
			return nil
		})
		d, err := daemon.New(other, daemon.Config{})
		require.NoError(t, err)
		require.NoError(t, d.Start())
		time.Sleep(10 * time.Second)
		assert.Positive(t, late.Load())
		assert.LessOrEqual(t, time.Duration(late.Load()), 2*time.Second)
		require.NoError(t, d.Stop(t.Context()))
	})
}

// Tasks that wait for their time hold no slot: what falls due meanwhile starts, and what finds none at its time is given back.
func TestWhatIsClaimedAheadHoldsNoSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{}, true)
		var running, most atomic.Int64
		core.Handle(f.scheduler, "note", func(context.Context, *core.Task[any]) error {
			n := running.Add(1)
			most.Store(max(most.Load(), n))
			time.Sleep(time.Second)
			running.Add(-1)
			return nil
		})
		f.start(t)
		var tasks []core.NewTask
		for i := range 30 {
			tasks = append(tasks, core.NewTask{Agent: "a", ID: fmt.Sprint(i), Kind: "note", Delay: time.Second + time.Duration(i)*2*time.Millisecond})
		}
		f.submit(t, tasks...)
		time.Sleep(3900 * time.Millisecond)
		assert.EqualValues(t, 4, most.Load(), "as many as there are slots for")
		stats, err := f.store.Stats(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, [2]int64{8, 0}, [2]int64{stats.Completed, stats.Recovered})
		time.Sleep(time.Minute)
		stats, err = f.store.Stats(t.Context())
		require.NoError(t, err)
		assert.EqualValues(t, len(tasks), stats.Completed)
	})
}

// forgetful is a store whose answers to claims are lost: it asks again by itself, as stores do, and gets the tasks of the first claim.
type forgetful struct{ *faultyStore }

func (s forgetful) Claim(ctx context.Context, requests []store.ClaimRequest) ([]store.Claim, error) {
	if claims, err := s.faultyStore.Claim(ctx, requests); err != nil {
		return claims, err
	}
	return s.faultyStore.Claim(ctx, requests)
}

func (s forgetful) Turn(ctx context.Context, runs []store.Settlement, requests []store.ClaimRequest) ([]store.Settled, []store.Claim, error) {
	return store.InTurn(ctx, s, runs, requests)
}

// A claim whose answer was lost is repeated, and what it has taken ahead starts at its time all the same.
func TestARepeatedClaimStartsNothingEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fixture{store: faulty()}
		var err error
		f.scheduler, err = core.New(forgetful{f.store}, core.Config{})
		require.NoError(t, err)
		f.daemon, err = daemon.New(f.scheduler, daemon.Config{Waker: f.store})
		require.NoError(t, err)
		started := f.stamps()
		f.start(t)
		due := f.soon(t)
		f.claimed(t, started)
		assert.InDelta(t, 0, (<-started).Sub(due), float64(time.Millisecond))
	})
}

// What ends in the moment that one claim has taken together is stored together, once all of it has begun, however long the last of it runs. The
// delay until a task is due again counts from its end all the same.
func TestOutcomesOfAMomentTravelTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := setup(t, daemon.Config{}, true)
		last := make(chan struct{})
		core.Handle(f.scheduler, "note", func(_ context.Context, task *core.Task[any]) error {
			if task.ID == "2" {
				<-last
			}
			return nil
		})
		begun := time.Now()
		var mu sync.Mutex
		var stored []time.Duration
		f.store.Before = func(_ context.Context, verb string) error {
			if verb == "Settle" || verb == "Turn" {
				mu.Lock()
				stored = append(stored, time.Since(begun))
				mu.Unlock()
			}
			return nil
		}
		f.start(t)
		var tasks []core.NewTask
		for i := range 3 {
			tasks = append(tasks, core.NewTask{Agent: "a", ID: fmt.Sprint(i), Kind: "note", Delay: time.Second + time.Duration(i)*40*time.Millisecond, Every: time.Minute})
		}
		f.submit(t, tasks...)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if assert.Len(t, stored, 1, "one call for the two that have ended") {
			assert.InDelta(t, time.Second+80*time.Millisecond, stored[0], float64(5*time.Millisecond), "when the last of them has begun")
		}
		for i := range 2 {
			info, err := f.scheduler.Task(t.Context(), "a", fmt.Sprint(i))
			require.NoError(t, err)
			assert.InDelta(t, tasks[i].Delay+time.Minute, info.Due.Sub(begun), float64(2*time.Millisecond), "task %d", i)
		}
		close(last)
	})
}
