package storetest

// Holds of more tasks than one step puts back.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// flood submits 300 tasks of 30 agents, i being due at i ms, that are held.
// Three hundred are more than one claim parks, so that several have to be made before all are out of
// the queue, and more than one claim puts back, which is what the tests are about.
func (b *bench) flood(scope store.Target) {
	b.Helper()
	var all []store.Submission
	for i := range 300 {
		s := task(fmt.Sprint("agent", i%30), fmt.Sprintf("%03d", i))
		s.Due.At = b.now() + moment.Millis(i)
		all = append(all, s)
	}
	b.submit(all...)
	b.clock.Advance(time.Second)
	b.hold(scope, moment.When{})
	for range 20 {
		require.Empty(b, b.claim(store.MaxClaim).Tasks)
	}
	require.Equal(b, int64(300), b.stats().Held)
	b.quiet(0, "all are parked")
}

// testHoldMany ends a hold of many tasks. They come back claim by claim, in the order of their due
// times, and until the last is back every look says that something is due: nobody may fall asleep over
// the rest.
func testHoldMany(t *testing.T, b *bench) {
	b.with(Options{})
	b.flood(store.Target{Kind: "k"})
	assert.Equal(t, store.EffectDone, b.unhold(store.Target{Kind: "k"}))
	for from := 0; from < 300; from += store.MaxClaim {
		assert.Equal(t, b.now(), b.look(), "while some are still out of the queue")
		var want, got []string
		c := b.claim(store.MaxClaim)
		for i := range store.MaxClaim {
			want = append(want, fmt.Sprintf("%03d", from+i))
		}
		for _, task := range c.Tasks {
			got = append(got, task.ID)
		}
		require.ElementsMatch(t, want, got, "those that are due first come first")
		if from+store.MaxClaim < 300 {
			assert.Equal(t, b.now(), c.NextDue)
		}
	}
	assert.Zero(t, b.stats().Parked)
	assert.Equal(t, int64(300), b.stats().InProgress)
}

// testHoldAgain holds the same tasks while they are being put back. Those that are back already have
// to be parked a second time, and none may be lost between the two.
func testHoldAgain(t *testing.T, b *bench) {
	b.with(Options{})
	all := store.Target{Kind: "k"}
	b.flood(all)
	assert.Equal(t, store.EffectDone, b.unhold(all))
	assert.Len(t, b.claim(store.MaxClaim).Tasks, store.MaxClaim)
	b.hold(all, moment.When{})
	b.quiet(b.claim(10).NextLease, "held again before all were put back, nothing is due")
	assert.Equal(t, int64(250), b.stats().Held)
	assert.Equal(t, store.EffectDone, b.unhold(all))
	for range 5 {
		assert.Len(t, b.claim(store.MaxClaim).Tasks, store.MaxClaim)
	}
}
