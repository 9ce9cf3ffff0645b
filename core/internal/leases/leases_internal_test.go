package leases

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// A heartbeat whose answer is lost does not keep its pull for longer than a part of a lease, also where all leases that it was about are
// lost or given back: the pull waits for it when everything else has ended.
func TestABeatForNothingIsShort(t *testing.T) {
	t.Parallel()
	one, other := claimKey{fence: 1}, claimKey{fence: 2}
	h := Heartbeat[*testRun, *testCall]{Default: 9 * time.Second, claims: map[claimKey]*heldClaim[*testRun, *testCall]{one: {lease: 3 * time.Second}}}
	assert.Equal(t, time.Second, h.patience([]claimKey{one}))
	assert.Equal(t, base.LongestLook, h.patience([]claimKey{other}), "it has ended")
	assert.Equal(t, time.Second, h.patience([]claimKey{one, other}))
}

// testRun and testCall are none that are made.
type (
	testRun  struct{}
	testCall struct{}
)

func (*testRun) Progress(bool) (state []byte, number int64) { return nil, 0 }
func (*testRun) Claimed() *store.Claimed                    { return nil }
func (*testRun) Ordered(*[]byte)                            {}
func (*testCall) Alone() bool                               { return true }
func (*testCall) Has(func(c *store.Claimed) bool) bool      { return false }
func (*testCall) Cancel(error)                              {}

// The notice of a lease is a part of it, and long enough for a heartbeat that is tried again.
func TestNotices(t *testing.T) {
	t.Parallel()
	for lease, notice := range map[time.Duration]time.Duration{
		100 * time.Millisecond: 50 * time.Millisecond, time.Second: 500 * time.Millisecond, 2 * time.Second: time.Second,
		30 * time.Second: 5 * time.Second, 12 * time.Second: 2 * time.Second, time.Hour: 5 * time.Second,
	} {
		assert.Equal(t, notice, Notice(lease), lease)
		assert.Equal(t, lease, Stored(lease)+Notice(lease))
	}
}
