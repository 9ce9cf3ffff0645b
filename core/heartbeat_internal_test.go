package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// A heartbeat whose answer is lost does not keep its pull for longer than a part of a lease, also where all leases that it was about are
// lost or given back: the pull waits for it when everything else has ended.
func TestABeatForNothingIsShort(t *testing.T) {
	t.Parallel()
	s, err := New(memstore.New(memstore.Config{}), Config{Default: KindConfig{Lease: 9 * time.Second}})
	require.NoError(t, err)
	one, other := claimKey{fence: 1}, claimKey{fence: 2}
	h := heartbeat{pull: &pull{s: s}, claims: map[claimKey]*heldClaim{one: {lease: 3 * time.Second}}}
	assert.Equal(t, time.Second, h.patience([]claimKey{one}))
	assert.Equal(t, base.LongestLook, h.patience([]claimKey{other}), "it has ended")
	assert.Equal(t, time.Second, h.patience([]claimKey{one, other}))
}

// The notice of a lease is a part of it, and long enough for a heartbeat that is tried again.
func TestNotices(t *testing.T) {
	t.Parallel()
	for lease, notice := range map[time.Duration]time.Duration{
		100 * time.Millisecond: 50 * time.Millisecond, time.Second: 500 * time.Millisecond, 2 * time.Second: time.Second,
		30 * time.Second: 5 * time.Second, 12 * time.Second: 2 * time.Second, time.Hour: 5 * time.Second,
	} {
		assert.Equal(t, notice, noticeOf(lease), lease)
		assert.Equal(t, lease, stored(lease)+noticeOf(lease))
	}
}

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
