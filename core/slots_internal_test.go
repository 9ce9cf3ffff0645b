package core

import (
	"context"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// ending is a context that ends between two looks at it.
type ending struct {
	context.Context //nolint:containedctx // it is one

	looked bool
}

func (e *ending) Err() error {
	if !e.looked {
		e.looked = true
		return nil
	}
	return e.Context.Err()
}

// One who gives up waiting does not take along the news that a place is free, also when both come at once.
func TestSlotsWakeTheNext(t *testing.T) {
	t.Parallel()
	for range 100 {
		s := newSlots(1)
		require.Equal(t, 1, s.take(t.Context(), 1))
		s.give(1)
		require.Equal(t, 1, s.grab(1)) // somebody was quicker; the token is still there
		done, cancel := context.WithCancel(t.Context())
		cancel()
		assert.Zero(t, s.take(&ending{Context: done}, 1))
		require.Len(t, s.freed, 1)
	}
}

// What a handler says after it was given up is refused.
func TestEndedRunsTakeNothing(t *testing.T) {
	t.Parallel()
	r := &run{ended: true}
	r.setResult([]byte("1"))
	r.setProgress([]byte("2"))
	assert.Equal(t, state{}, r.state)
	assert.False(t, r.dirty)
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
