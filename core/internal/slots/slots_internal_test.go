package slots

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// slotsOf are slots of which some are kept for urgent tasks, and kind k has two.
func slotsOf(total, urgent int) *Slots {
	s := New(model.SystemClock{}, total, urgent, 3)
	s.Bound("k", 2)
	return s
}

func claimedOf(kind string, level store.Level, n int) []store.Claimed {
	tasks := make([]store.Claimed, n)
	for i := range tasks {
		tasks[i] = store.Claimed{Kind: kind, Level: level}
	}
	return tasks
}

var never = time.Now().Add(24 * time.Hour)

func TestSlotsAreBounded(t *testing.T) {
	t.Parallel()
	s := slotsOf(5, 0)
	g := s.Take(t.Context(), 3, never)
	assert.Equal(t, 3, g.N)
	assert.Equal(t, map[string]int{"k": 2}, g.Room)
	s.Keep(g, append(claimedOf("k", store.LevelLow, 1), claimedOf("other", store.LevelLow, 1)...))
	assert.Equal(t, model.SlotStats{Total: 5, InUse: 2, Usual: 2, MaxAbandoned: 3, Kinds: map[string]model.KindSlots{"k": {Total: 2, InUse: 1}}}, s.Stats())
	g = s.Take(t.Context(), 9, never)
	assert.Equal(t, 3, g.N, "as many as are free")
	assert.Equal(t, map[string]int{"k": 1}, g.Room)
	s.Keep(g, claimedOf("other", store.LevelLow, 3))
	got := make(chan Grant)
	go func() { got <- s.Take(t.Context(), 9, never) }()
	s.Give(&store.Claimed{Kind: "k", Level: store.LevelLow})
	assert.Equal(t, 1, (<-got).N)
}

// Slots are kept for urgent tasks; urgent tasks use the others too.
func TestSlotsForUrgentTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := slotsOf(5, 1)
		g := s.Take(t.Context(), 9, never)
		require.Equal(t, 4, g.N)
		s.Keep(g, append(claimedOf("a", store.LevelHigh, 1), claimedOf("a", store.LevelLow, 3)...))
		g = s.Take(t.Context(), 9, never)
		require.Equal(t, 1, g.N, "one of the four was urgent")
		require.False(t, g.Urgent)
		s.Keep(g, claimedOf("a", store.LevelLow, 1))
		assert.Equal(t, 5, s.Stats().InUse)
		s.Give(&store.Claimed{Kind: "a", Level: store.LevelHigh})
		begun := time.Now()
		g = s.Take(t.Context(), 9, begun.Add(time.Second))
		assert.True(t, g.Urgent)
		assert.Equal(t, 1, g.N)
		assert.Equal(t, time.Second, time.Since(begun))
		s.Keep(g, nil)
		g = s.Take(t.Context(), 9, time.Now())
		assert.True(t, g.Urgent, "at once")
		s.Keep(g, claimedOf("a", store.LevelHigh, 1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.Zero(t, s.Take(ctx, 9, time.Now()).N)
		assert.Equal(t, 5, s.Stats().InUse)
	})
}

// Slots are handed out in the order in which they were asked for, and one who gives up waiting takes nothing along.
func TestSlotsInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := slotsOf(1, 0)
		g := s.Take(t.Context(), 1, never)
		s.Keep(g, claimedOf("a", store.LevelLow, 1))
		order := make(chan int, 3)
		gone, give := context.WithCancel(t.Context())
		for i := range 3 {
			ctx := t.Context()
			if i == 1 {
				ctx = gone
			}
			go func() {
				g := s.Take(ctx, 1, never)
				if g.N > 0 {
					order <- i
					s.Keep(g, nil)
				}
			}()
			synctest.Wait()
		}
		give()
		synctest.Wait()
		s.Give(&store.Claimed{Kind: "a", Level: store.LevelLow})
		synctest.Wait()
		assert.Equal(t, []int{0, 2}, []int{<-order, <-order})
		assert.Zero(t, s.Stats().InUse)
	})
}

// A grant that comes when the one who waited has just given up is not lost.
func TestSlotsOfOneWhoLeft(t *testing.T) {
	t.Parallel()
	s := slotsOf(1, 0)
	w := &waiter{most: 1, got: make(chan Grant, 1)}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.serve()
	s.mu.Unlock()
	require.Zero(t, s.free())
	assert.Zero(t, s.leave(w).N)
	assert.Equal(t, 1, s.free())
}

func TestSlotsOfAbandonedHandlers(t *testing.T) {
	t.Parallel()
	s := slotsOf(5, 0)
	s.Keep(s.Take(t.Context(), 5, never), claimedOf("k", store.LevelLow, 5))
	runs := claimedOf("k", store.LevelLow, 5)
	for i := range 3 {
		assert.Equal(t, i+1, s.Abandon([]*store.Claimed{&runs[i]}))
	}
	assert.Equal(t, 2, s.Stats().InUse, "they hold no slot")
	var abandoned *model.AbandonedError
	require.ErrorAs(t, s.Take(t.Context(), 1, never).Err, &abandoned)
	assert.Equal(t, model.AbandonedError{Handlers: 3, Limit: 3}, *abandoned)
	s.Returned()
	assert.Equal(t, 1, s.Take(t.Context(), 1, never).N)
}

// A task that is submitted takes no slot that a pull waits for: neither one for any task, nor, where that pull is content with it, one
// that is kept for urgent tasks.
func TestSpareSlotsAreThoseThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	s := New(model.SystemClock{}, 2, 1, 1)
	spare := func() (n int, urgent bool) {
		g := s.Spare("k")
		defer s.Keep(g, nil)
		return g.N, g.Urgent
	}
	n, urgent := spare()
	assert.Equal(t, 1, n)
	assert.False(t, urgent, "one for any task is free")
	waits := &waiter{most: 1, got: make(chan Grant, 1)}
	s.waiting = append(s.waiting, waits)
	n, _ = spare()
	assert.Zero(t, n, "it is the other's")
	s.serve()
	require.Len(t, waits.got, 1)
	n, urgent = spare()
	assert.Equal(t, 1, n)
	assert.True(t, urgent)
	s.waiting = append(s.waiting, &waiter{most: 1, urgent: true, got: make(chan Grant, 1)})
	n, _ = spare()
	assert.Zero(t, n)
}

// Runs of tasks that have crashed before are counted apart while they are under way.
func TestRunsOfSuspectsAreCounted(t *testing.T) {
	t.Parallel()
	s := slotsOf(5, 0)
	g := s.Take(t.Context(), 3, never)
	tasks := claimedOf("other", store.LevelLow, 2)
	tasks[0].Crashes = 1
	s.Keep(g, tasks)
	assert.Equal(t, 1, s.Stats().Suspects)
	assert.Equal(t, 2, s.Stats().InUse)
	s.Give(&tasks[0])
	assert.Zero(t, s.Stats().Suspects)
}
