package storetest

// A claim whose answer was lost is asked for again.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// A claim is only repeated when its answer was lost, so none of its runs has begun: what was replaced meanwhile is not run by
// it, and waits as what it was replaced by.
// It is not a second chance: a claim that was replaced meanwhile has nothing to run.
func testNonceReplaced(t *testing.T, b *bench) {
	for _, several := range []bool{false, true} {
		for _, serial := range []bool{false, true} {
			b.with(Options{})
			b.submit(grouped("1", "g"), task("b", "1"))
			if several {
				b.submit(within(task("a", "2"), time.Minute))
			}
			r := b.request(10)
			r.Serial = serial
			c := b.claimWith(r)
			require.ElementsMatch(t, []string{"a/1", "b/1"}, names(c))
			b.submit(b.renamed("one", time.Hour))
			b.submit(b.renamed("two", 2*time.Hour))
			// Repeating it again changes nothing.
			for range 2 {
				again := b.claimWith(r)
				require.Equal(t, []string{"b/1"}, names(again))
				assert.Equal(t, c.Fence, again.Fence)
			}
			got := b.one("a", "1")
			assert.Equal(t, store.StatusWaiting, got.Status)
			assert.Equal(t, b.now().Add(2*time.Hour), got.Due)
			assert.Zero(t, got.Crashes)
			assert.Equal(t, [2]int64{1, 1}, [2]int64{b.stats().InProgress, b.kind("k").Running})
			// The run of the replaced task is lost, and the other one is not affected.
			for _, run := range c.Tasks {
				if run.Agent == "a" {
					assert.ErrorIs(t, b.settle(complete(run))[0].Err, store.ErrLeaseLost)
				} else {
					b.ended(complete(run))
				}
			}
			assert.Zero(t, b.extend(c.Fence), "nothing is left to hold")
			assert.Empty(t, names(b.claimWith(r)), "nor to run")
			b.audited()
			b.clock.Advance(2 * time.Hour)
			assert.Contains(t, names(b.claim(10)), "a/1")
		}
	}
}
