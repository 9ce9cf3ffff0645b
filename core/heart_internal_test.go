package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// A heartbeat whose answer is lost does not keep its pull for longer than a part of a lease, also where all leases that it was about are
// lost or given back: the pull waits for it when everything else has ended.
func TestABeatForNothingIsShort(t *testing.T) {
	t.Parallel()
	s, err := New(memstore.New(memstore.Config{}), Config{Default: KindConfig{Lease: 9 * time.Second}})
	require.NoError(t, err)
	lost := claimKey{fence: 1}
	h := heart{pull: &pull{s: s}, claims: map[claimKey]*heldClaim{lost: {lease: 3 * time.Second, given: true}}}
	assert.Equal(t, time.Second, h.patience([]claimKey{lost}))
	assert.Equal(t, 3*time.Second, h.patience([]claimKey{{fence: 2}}), "it has ended")
	h.claims[lost].given, h.claims[lost].deadline = false, s.config.Clock.Now().Add(500*time.Millisecond)
	assert.Less(t, h.patience([]claimKey{lost}), 300*time.Millisecond)
}
