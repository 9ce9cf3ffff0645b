package storetest

// Large tasks: what a step reads is bounded.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// quarter is a task with a quarter of a mebibyte: a claim looks at two of them.
// It is large enough that nothing else in a claim matters.
func quarter(agent, id, kind string) store.Submission {
	s := heavy(agent, id, 256)
	s.Kind = kind
	return s
}

// A claim takes large tasks up to a bound, but one at least, and small ones of other agents beside them. What an agent has
// behind a large task that stays does not overtake it, and the agent keeps its turn.
func testLargeClaims(_ *testing.T, b *bench) {
	b.with(Options{})
	for i := range 5 {
		// Each claim looks at half a mebibyte of large tasks, or at one task.
		b.submit(quarter("a", fmt.Sprint(i), "k"))
	}
	b.submit(task("a", "small"))
	b.clock.Advance(time.Millisecond)
	b.submit(quarter("b", "large", "k"), task("c", "1"), task("c", "2"))
	assert.Equal(b, []string{"c/1", "c/2", "a/0", "a/1"}, names(b.claim(50)))
	assert.Equal(b, []string{"a/2", "a/3"}, names(b.claim(50)))
	// A small task behind large ones waits for its turn: order within an agent is kept.
	assert.Equal(b, []string{"a/4", "a/small", "b/large"}, names(b.claim(50)))
	b.submit(heavy("huge", "1", 700), heavy("huge", "2", 700))
	assert.Equal(b, []string{"huge/1"}, names(b.claim(50)))
	assert.Equal(b, []string{"huge/2"}, names(b.claim(50)))
}

// Large tasks that a picky claim leaves do not hide those of other agents from the next claims, however they are due.
// Passed is how a store says how far it has looked.
func testLargeLeft(t *testing.T, b *bench) {
	for _, apart := range []time.Duration{0, time.Millisecond} {
		b.with(Options{})
		for i := range 6 {
			b.submit(quarter(fmt.Sprint("slow", i), "1", "slow"), quarter(fmt.Sprint("slow", i), "2", "slow"))
			b.clock.Advance(apart)
		}
		b.clock.Advance(time.Millisecond)
		b.submit(quarter("z", "1", "fast"))
		r := b.request(10)
		r.Kinds, r.Leave = []string{"fast"}, []string{"slow"}
		// The bound on tries is what would fail if every claim began with the same tasks.
		for tries := 1; ; tries++ {
			require.LessOrEqual(t, tries, 8, "the search goes on")
			c := b.claimWith(r)
			if len(c.Tasks) > 0 {
				assert.Equal(t, []string{"z/1"}, names(c))
				break
			}
			require.True(t, c.Passed > r.After || c.Passed == r.After && c.PassedName > r.AfterName, "each claim goes on where the one before stopped")
			r = b.request(10)
			r.Kinds, r.Leave, r.After, r.AfterName = []string{"fast"}, []string{"slow"}, c.Passed, c.PassedName
		}
	}
}

// What is parked is put back a few large tasks at a time, and all of it in the end.
// Putting back is bounded too, as each task is read and written.
func testLargeParked(t *testing.T, b *bench) {
	b.with(Options{})
	for i := range 5 {
		b.submit(quarter("a", fmt.Sprint(i), "other"))
	}
	b.submit(quarter("b", "1", "other2"))
	parked := 0
	for range 5 {
		c := b.claim(50)
		require.Empty(t, c.Tasks)
		require.LessOrEqual(t, c.Parked, 3)
		parked += c.Parked
	}
	require.Equal(t, 6, parked)
	var got []string
	for range 3 {
		r := b.request(50)
		r.Kinds = []string{"other", "other2"}
		c := b.claimWith(r)
		require.LessOrEqual(t, len(c.Tasks), 2)
		got = append(got, names(c)...)
	}
	assert.Equal(t, []string{"a/0", "a/1", "a/2", "a/3", "a/4", "b/1"}, got)

	// The same for tasks under a hold.
	held := store.Target{Agent: "a"}
	b.with(Options{})
	for i := range 5 {
		b.submit(quarter("a", fmt.Sprint(i), "k"))
	}
	b.hold(held, moment.When{After: time.Hour})
	for range 3 {
		require.Empty(t, b.claim(50).Tasks)
	}
	b.unhold(held)
	got = nil
	for range 3 {
		got = append(got, names(b.claim(50))...)
	}
	assert.Equal(t, []string{"a/0", "a/1", "a/2", "a/3", "a/4"}, got)
}
