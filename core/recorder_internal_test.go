package core

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core/internal/codec"
)

// What a handler says after it was abandoned is refused.
func TestEndedRunsTakeNothing(t *testing.T) {
	t.Parallel()
	r := &run{recorder: recorder{ended: true, most: 10}}
	r.info.run = r
	assert.NoError(t, r.info.SetResult(1))
	assert.NoError(t, r.info.SetProgress(2))
	assert.Equal(t, codec.State{}, r.state)
	assert.False(t, r.dirty)
}
