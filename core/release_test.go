package core_test

// Runs that are given back before they have begun.

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

// givenBack claims a task, has something done to it before it starts, and lets its process end.
func givenBack(w *world, meanwhile func()) {
	ctx, stop := context.WithCancel(w.Context())
	defer stop()
	w.store.alter = func(claims []store.Claim) {
		if len(claims[0].Tasks) > 0 {
			w.store.alter = nil
			meanwhile()
			stop()
		}
	}
	report, err := w.s.RunDue(ctx, core.Scope{})
	require.NoError(w, err)
	assert.Zero(w, report.Ran)
}

// A task that was replaced after its claim, and that its process gives back unstarted, is the new one.
func TestWhatIsGivenBackWasReplaced(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Minute})
		core.Handle(w.s, "other", func(context.Context, *core.Task[note]) error { return nil })
		w.run()
		time.Sleep(time.Minute)
		givenBack(w, func() {
			w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "other", Delay: time.Hour, OnConflict: core.OnConflictReplace})
		})
		info := w.task("a", "1")
		assert.Equal(t, core.StatusWaiting, info.Status)
		assert.Equal(t, "other", info.Kind)
		assert.EqualValues(t, 1, info.RunCount, "its history is kept")
	})
}

// The same of tasks that somebody else has claimed, and that are not even read.
func TestWhatATickGivesBackWasReplaced(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Every: time.Minute})
		w.run()
		time.Sleep(time.Minute)
		claims, err := w.store.Claim(w.Context(), []store.ClaimRequest{{
			Partition: store.PartitionOf("a", w.store.Partitions()), Nonce: "nonce-of-16-byte", Kinds: []string{"k"}, Limit: 1, Lease: time.Minute,
		}})
		require.NoError(w, err)
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Delay: time.Hour, OnConflict: core.OnConflictReplace})
		ctx, stop := context.WithCancel(w.Context())
		stop()
		report, err := w.s.RunTick(ctx, "a", claims[0].Tasks)
		require.NoError(w, err)
		assert.Equal(t, 1, report.Released)
		info := w.task("a", "1")
		assert.Equal(t, core.StatusWaiting, info.Status)
		assert.EqualValues(t, 1, info.RunCount, "its history is kept")
	})
}

// A task that was cancelled after its claim, and that its process gives back unstarted, is cancelled.
func TestWhatIsGivenBackWasCancelled(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Group: "g"})
		givenBack(w, func() {
			_, err := w.s.Cancel(w.Context(), "a", "1", core.Order{By: "ann"})
			require.NoError(w, err)
		})
		info := w.task("a", "1")
		assert.Equal(t, core.StatusCancelled, info.Status)
		assert.Equal(t, "g", info.Group)
	})
}

// A claim that reaches the store late is over for its process when it is answered. The process starts none of it, and does not keep the
// lease from ending while it runs something else.
func TestWhatIsGivenUpIsNotKept(t *testing.T) {
	const lease = time.Second
	virtual(t, core.Config{}, func(w *world) {
		slow := sync.OnceFunc(func() { time.Sleep(lease + time.Millisecond) })
		s, err := core.New(&storetest.Spy{Store: w.store, Before: func(_ context.Context, verb string) error {
			if verb == "Claim" {
				slow()
			}
			return nil
		}}, core.Config{Concurrency: 1, Default: core.KindConfig{Lease: lease}})
		require.NoError(t, err)
		quick := func(context.Context, *core.Task[note]) error { return nil }
		core.Handle(s, "k", quick)
		core.Handle(s, "slow", func(context.Context, *core.Task[note]) error { time.Sleep(time.Minute); return nil })
		core.Handle(w.s, "k", quick)
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Level: core.LevelHigh}, core.NewTask{Agent: "a", ID: "2", Kind: "slow"})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, err := s.RunDue(w.Context(), core.Scope{})
			assert.NoError(w, err)
		}()
		time.Sleep(4 * lease)
		w.run()
		assert.Equal(t, core.StatusCompleted, w.task("a", "1").Status, "here, or there if its handler was faster than the end of its lease")
		<-ended
	})
}

// The place of an agent whose due task was cancelled is not in the way of others, however little a pull may take.
func TestAPlaceThatIsEmptyKeepsNobodyWaiting(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { return nil })
		var agents []string // of one partition
		for i := 0; len(agents) < 4; i++ {
			if agent := strconv.Itoa(i); store.PartitionOf(agent, w.store.Partitions()) == 0 {
				agents = append(agents, agent)
			}
		}
		for _, agent := range agents[:3] { // each has another one later, so that it keeps a place
			w.submit(core.NewTask{Agent: agent, ID: "1", Kind: "k"}, core.NewTask{Agent: agent, ID: "2", Kind: "k", Delay: time.Hour})
			time.Sleep(time.Millisecond)
		}
		w.submit(core.NewTask{Agent: agents[3], ID: "1", Kind: "k"})
		for _, agent := range agents[:3] {
			_, err := w.s.Cancel(w.Context(), agent, "1", core.Order{})
			require.NoError(t, err)
		}
		begun := time.Now()
		report, err := w.s.RunDue(w.Context(), core.Scope{MaxTasks: 1})
		require.NoError(t, err)
		assert.Equal(t, 1, report.Completed)
		assert.Less(t, time.Since(begun), 100*time.Millisecond)
	})
}
