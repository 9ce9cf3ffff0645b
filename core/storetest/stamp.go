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

	noteStamp(b, given.Stamp(1))
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
		noteStamp(b, given.Stamp(i))
	}
	noteStamp(b, given.Stamp(0)) // once more
	noteStamp(b, given.Stamp(bound.MostStamps))
	for i := range bound.MostStamps + 1 {
		known, err := b.store.Stamped(t.Context(), 0, given.Stamp(i))
		require.NoError(t, err)
		assert.Equal(t, i != 1, known, i)
	}
}

// testStampsOfBounds notes no stamp where a limit or a budget that it names is not set.
func testStampsOfBounds(t *testing.T, b *bench) {
	b.with(Options{})
	limit := bound.Limit{About: bound.LimitTarget{Kind: "k", Key: "key*", Each: bound.EachAgent}, Concurrency: 3}
	budget := bound.Budget{About: bound.BudgetTarget{
		LimitTarget: bound.LimitTarget{Kind: "k", Each: bound.EachAgent}, Unit: "tokens", Per: bound.PerDay,
	}, Amount: 5 * bound.AmountOne, Then: bound.ThenHold, Zone: "UTC", Clock: bound.Clock{{}}}
	of := []bound.BudgetTarget{{LimitTarget: limit.About}, budget.About}
	_, err := b.store.Limit(t.Context(), []bound.LimitChange{{Limit: limit}})
	require.NoError(t, err)
	kept := func(want bool, of ...bound.BudgetTarget) {
		t.Helper()
		got, err := b.store.Stamp(t.Context(), given.Stamp(1), of...)
		require.NoError(t, err)
		assert.Equal(t, want, got, of)
		known, err := b.store.Stamped(t.Context(), 0, given.Stamp(1))
		require.NoError(t, err)
		assert.Equal(t, want, known, of)
	}
	kept(false, of...)
	_, err = b.store.Budget(t.Context(), []bound.BudgetChange{{Budget: budget}})
	require.NoError(t, err)
	other := budget.About
	other.Per = bound.PerHour
	kept(false, of[0], other)
	kept(true, of...)
	_, err = b.store.Limit(t.Context(), []bound.LimitChange{{Limit: limit, Lift: true}})
	require.NoError(t, err)
	again, err := b.store.Stamp(t.Context(), given.Stamp(2), of...)
	require.NoError(t, err)
	assert.False(t, again)
}

// noteStamp notes a stamp of no limit.
func noteStamp(b *bench, stamp string) {
	b.Helper()
	kept, err := b.store.Stamp(b.Context(), stamp)
	require.NoError(b, err)
	require.True(b, kept)
}
