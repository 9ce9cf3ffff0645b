package storetest

// Audits of a store in which nothing is wrong.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/storetest/whole"
)

// testAudit has tasks in every place where they can be.
// A task can wait, run, be parked for want of a handler, be held, or be lost by a process that died.
func testAudit(t *testing.T, b *bench) {
	b.with(Options{})
	assert.Zero(t, whole.Audit(t, b.store))
	for _, agent := range []string{"a", "b", "c", "d"} {
		b.submit(task(agent, "1"))
	}
	foreign, own := task("p", "1"), task("p", "2")
	foreign.Kind, own.Kind = "foreign", "foreign"
	b.submit(foreign, own, within(task("a", "2"), time.Hour), within(task("e", "1"), time.Hour))
	b.hold(store.Target{Agent: "c"}, moment.When{})
	b.hold(store.Target{Agent: "d", ID: "1"}, moment.When{After: time.Minute})
	b.hold(store.Target{Agent: "b"}, moment.When{})
	r := b.request(10)
	assert.Equal(t, []string{"a/1"}, names(b.claimWith(r)))
	require.EqualValues(t, [2]int64{5, 3}, [2]int64{b.stats().Parked, b.stats().Held})
	assert.Equal(t, 8, whole.Audit(t, b.store), "they run, wait, and are parked for two reasons")

	b.unhold(store.Target{Agent: "b"})
	b.hold(store.Target{}, moment.When{})
	b.clock.Advance(2 * time.Minute)
	assert.Equal(t, 8, whole.Audit(t, b.store), "a lease and a hold have run out")
	b.unhold(store.Target{})
	b.take("a/1", "b/1", "d/1")
	assert.Equal(t, 8, whole.Audit(t, b.store))
}
