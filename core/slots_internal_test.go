package core

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// One who gives up waiting does not take along the news that a place is free.
func TestSlotsWakeTheNext(t *testing.T) {
	t.Parallel()
	for range 100 {
		s := newSlots(1)
		require.Equal(t, 1, s.take(t.Context(), 1))
		s.give(1)
		require.Equal(t, 1, s.grab(1)) // somebody was quicker; the token is still there
		leaving, leave := context.WithCancel(t.Context())
		leave()
		assert.Zero(t, s.take(leaving, 1))
		assert.Len(t, s.freed, 1)
	}
}

func TestSlots(t *testing.T) {
	t.Parallel()
	s := newSlots(5)
	assert.Equal(t, 3, s.take(t.Context(), 3))
	assert.Equal(t, 2, s.take(t.Context(), 3), "as many as are free")
	got := make(chan int)
	go func() { got <- s.take(t.Context(), 9) }()
	s.give(2)
	assert.Equal(t, 2, <-got)
}
