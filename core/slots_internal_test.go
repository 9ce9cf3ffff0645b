package core

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/model"
)

// slotsOf are slots of which some are kept for urgent tasks, and kind k has two.
func slotsOf(total, urgent int) *slots {
	s := newSlots(model.SystemClock{}, total, urgent, 3)
	s.bound("k", 2)
	return s
}

func claimedOf(kind string, level Level, n int) []Claimed {
	tasks := make([]Claimed, n)
	for i := range tasks {
		tasks[i] = Claimed{Kind: kind, Level: level}
	}
	return tasks
}

var never = time.Now().Add(24 * time.Hour)

func TestSlotsAreBounded(t *testing.T) {
	t.Parallel()
	s := slotsOf(5, 0)
	g := s.take(t.Context(), 3, never)
	assert.Equal(t, 3, g.n)
	assert.Equal(t, map[string]int{"k": 2}, g.room)
	s.keep(g, append(claimedOf("k", LevelLow, 1), claimedOf("other", LevelLow, 1)...))
	assert.Equal(t, model.SlotStats{Total: 5, InUse: 2, Usual: 2, MaxAbandoned: 3, Kinds: map[string]model.KindSlots{"k": {Total: 2, InUse: 1}}}, s.stats())
	g = s.take(t.Context(), 9, never)
	assert.Equal(t, 3, g.n, "as many as are free")
	assert.Equal(t, map[string]int{"k": 1}, g.room)
	s.keep(g, claimedOf("other", LevelLow, 3))
	got := make(chan grant)
	go func() { got <- s.take(t.Context(), 9, never) }()
	s.give(&Claimed{Kind: "k", Level: LevelLow})
	assert.Equal(t, 1, (<-got).n)
}

// Slots are kept for urgent tasks; urgent tasks use the others too.
func TestSlotsForUrgentTasks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := slotsOf(5, 1)
		g := s.take(t.Context(), 9, never)
		require.Equal(t, 4, g.n)
		s.keep(g, append(claimedOf("a", LevelHigh, 1), claimedOf("a", LevelLow, 3)...))
		g = s.take(t.Context(), 9, never)
		require.Equal(t, 1, g.n, "one of the four was urgent")
		require.False(t, g.urgent)
		s.keep(g, claimedOf("a", LevelLow, 1))
		assert.Equal(t, 5, s.stats().InUse)
		s.give(&Claimed{Kind: "a", Level: LevelHigh})
		begun := time.Now()
		g = s.take(t.Context(), 9, begun.Add(time.Second))
		assert.True(t, g.urgent)
		assert.Equal(t, 1, g.n)
		assert.Equal(t, time.Second, time.Since(begun))
		s.keep(g, nil)
		g = s.take(t.Context(), 9, time.Now())
		assert.True(t, g.urgent, "at once")
		s.keep(g, claimedOf("a", LevelHigh, 1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		assert.Zero(t, s.take(ctx, 9, time.Now()).n)
		assert.Equal(t, 5, s.stats().InUse)
	})
}

// Slots are handed out in the order in which they were asked for, and one who gives up waiting takes nothing along.
func TestSlotsInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := slotsOf(1, 0)
		g := s.take(t.Context(), 1, never)
		s.keep(g, claimedOf("a", LevelLow, 1))
		order := make(chan int, 3)
		gone, give := context.WithCancel(t.Context())
		for i := range 3 {
			ctx := t.Context()
			if i == 1 {
				ctx = gone
			}
			go func() {
				g := s.take(ctx, 1, never)
				if g.n > 0 {
					order <- i
					s.keep(g, nil)
				}
			}()
			synctest.Wait()
		}
		give()
		synctest.Wait()
		s.give(&Claimed{Kind: "a", Level: LevelLow})
		synctest.Wait()
		assert.Equal(t, []int{0, 2}, []int{<-order, <-order})
		assert.Zero(t, s.stats().InUse)
	})
}

// A grant that comes when the one who waited has just given up is not lost.
func TestSlotsOfOneWhoLeft(t *testing.T) {
	t.Parallel()
	s := slotsOf(1, 0)
	w := &waiter{most: 1, got: make(chan grant, 1)}
	s.mu.Lock()
	s.waiting = append(s.waiting, w)
	s.serve()
	s.mu.Unlock()
	require.Zero(t, s.free())
	assert.Zero(t, s.leave(w).n)
	assert.Equal(t, 1, s.free())
}

func TestSlotsOfAbandonedHandlers(t *testing.T) {
	t.Parallel()
	s := slotsOf(5, 0)
	s.keep(s.take(t.Context(), 5, never), claimedOf("k", LevelLow, 5))
	runs := claimedOf("k", LevelLow, 5)
	for i := range 3 {
		assert.Equal(t, i+1, s.abandon([]*store.Claimed{&runs[i]}))
	}
	assert.Equal(t, 2, s.stats().InUse, "they hold no slot")
	var abandoned *model.AbandonedError
	require.ErrorAs(t, s.take(t.Context(), 1, never).err, &abandoned)
	assert.Equal(t, model.AbandonedError{Handlers: 3, Limit: 3}, *abandoned)
	s.returned()
	assert.Equal(t, 1, s.take(t.Context(), 1, never).n)
}

// A task that is submitted takes no slot that a pull waits for: neither one for any task, nor, where that pull is content with it, one
// that is kept for urgent tasks.
func TestSpareSlotsAreThoseThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	s := newSlots(model.SystemClock{}, 2, 1, 1)
	spare := func() (n int, urgent bool) {
		g := s.spare("k")
		defer s.keep(g, nil)
		return g.n, g.urgent
	}
	n, urgent := spare()
	assert.Equal(t, 1, n)
	assert.False(t, urgent, "one for any task is free")
	waits := &waiter{most: 1, got: make(chan grant, 1)}
	s.waiting = append(s.waiting, waits)
	n, _ = spare()
	assert.Zero(t, n, "it is the other's")
	s.serve()
	require.Len(t, waits.got, 1)
	n, urgent = spare()
	assert.Equal(t, 1, n)
	assert.True(t, urgent)
	s.waiting = append(s.waiting, &waiter{most: 1, urgent: true, got: make(chan grant, 1)})
	n, _ = spare()
	assert.Zero(t, n)
}
