package storetest

// The contract of stamps, by which a process notices that a store has lost what it relies on.

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/storetest/given"
)

// testStamps leases nothing to a caller whose definitions are not stored, however its tasks come, and leaves all of it in place.
func testStamps(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"))
	claim := func(stamp string) store.Claim {
		r := b.request(10)
		r.Stamp = stamp
		return b.claimWith(r)
	}
	c := claim(given.Stamp(1))
	assert.True(t, c.Unstamped)
	assert.Empty(t, c.Tasks)
	assert.Zero(t, c.Fence)
	assert.LessOrEqual(t, c.NextDue, b.now(), "it is still due")

	require.NoError(t, b.store.Stamp(t.Context(), given.Stamp(1)))
	for partition := range b.store.Partitions() {
		known, err := b.store.Stamped(t.Context(), partition, given.Stamp(1))
		require.NoError(t, err)
		assert.True(t, known)
		known, err = b.store.Stamped(t.Context(), partition, given.Stamp(2))
		require.NoError(t, err)
		assert.False(t, known)
	}
	c = claim(given.Stamp(2))
	assert.True(t, c.Unstamped)
	c = claim(given.Stamp(1))
	assert.False(t, c.Unstamped)
	assert.Equal(t, []string{"a/1"}, names(c))
	b.ended(complete(c.Tasks[0]))

	urgent := task("a", "2")
	r := b.request(1)
	r.New, r.Stamp = &urgent, given.Stamp(2)
	c = b.claimWith(r)
	assert.True(t, c.Unstamped)
	assert.True(t, c.Submitted.Created, "it is stored, and waits")
	assert.Empty(t, c.Tasks)
	third := task("b", "3")
	r = b.request(1)
	r.New, r.Stamp = &third, given.Stamp(1)
	assert.Equal(t, []string{"b/3"}, names(b.claimWith(r)))
	assert.Equal(t, []string{"a/2"}, names(claim("")), "who has no definitions has nothing to lose")
	b.audited()
}

// testManyStamps knows those stamps that were given last.
func testManyStamps(t *testing.T, b *bench) {
	b.with(Options{})
	for i := range bound.MostStamps {
		require.NoError(t, b.store.Stamp(t.Context(), given.Stamp(i)))
	}
	require.NoError(t, b.store.Stamp(t.Context(), given.Stamp(0))) // once more
	require.NoError(t, b.store.Stamp(t.Context(), given.Stamp(bound.MostStamps)))
	for i := range bound.MostStamps + 1 {
		known, err := b.store.Stamped(t.Context(), 0, given.Stamp(i))
		require.NoError(t, err)
		assert.Equal(t, i != 1, known, i)
	}
}
