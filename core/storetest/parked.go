package storetest

// Tasks of kinds that nobody has a handler for.

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// testParked has tasks of a kind that nobody has a handler for: out of
// everyone's way until somebody claims with one.
func testParked(t *testing.T, b *bench) {
	b.with(Options{})
	other := func(agent, id string) store.Submission {
		s := task(agent, id)
		s.Kind = "other"
		return s
	}
	b.submit(other("a", "1"), other("b", "1"), task("b", "2"), other("b", "3"), task("c", "1"))
	c := b.claim(50)
	assert.ElementsMatch(t, []string{"b/2", "c/1"}, names(c))
	assert.Equal(t, 3, c.Parked)
	assert.Zero(t, c.NextDue, "what is parked does not keep anybody awake who cannot run it")
	assert.Equal(t, int64(3), b.stats().Parked)
	assert.Equal(t, int64(3), b.stats().Waiting)
	s := b.read("b", "3", "1")
	assert.True(t, s[0].Parked)
	assert.Equal(t, store.StatusWaiting, s[0].Status)
	assert.Equal(t, b.now(), s[1].Due)
	b.submit(task("a", "2"), task("a", "3")) // an agent whose only task is parked gets more
	assert.Equal(t, []string{"a/2", "a/3"}, names(b.claim(50)))

	// The first claim with a handler brings them back, as many as it may take.
	r := b.request(2)
	r.Kinds = []string{"other"}
	look := r
	look.Limit = 0
	seen := b.claimWith(look)
	assert.LessOrEqual(t, seen.NextDue, seen.Now, "for whoever can run it, it is due")
	c = b.claimWith(r)
	assert.Equal(t, []string{"a/1", "b/1"}, names(c))
	assert.Equal(t, b.now(), c.NextDue, "and says that there is more")
	r = b.request(50)
	r.Kinds = []string{"k", "other"}
	assert.Equal(t, []string{"b/3"}, names(b.claimWith(r)))
	assert.Zero(t, b.stats().Parked)
	var many []store.Submission
	for i := range 500 {
		many = append(many, other("many", fmt.Sprint(i)))
	}
	b.submit(many...)
	assert.LessOrEqual(t, b.claim(10).Parked, 50, "one step parks a bounded number")
	for range 20 {
		b.claim(50)
	}
	assert.Equal(t, int64(500), b.stats().Parked)
	// However many of others are parked, the task of a named agent is found in the end.
	b.submit(other("mine", "1"))
	b.claim(50)
	r = b.request(2)
	r.Kinds, r.Agents = []string{"other"}, []string{"mine"}
	for range 300 {
		c = b.claimWith(r)
		r.Nonce = b.request(2).Nonce
		if len(c.Tasks) > 0 {
			break
		}
		require.Equal(t, b.now(), c.NextDue, "while tasks are parked, some may be theirs")
	}
	assert.Equal(t, []string{"mine/1"}, names(c))
}

// However many kinds are parked, a look finds those that it asks for, and a claim puts back some of each.
// A look must not list a hundred kinds, and still has to answer for each.
func testManyParkedKinds(t *testing.T, b *bench) {
	b.with(Options{})
	const kinds = 100
	var all []string
	for i := range kinds {
		all = append(all, fmt.Sprint("kind", i))
		b.submit(ofKind("a", fmt.Sprint(2*i), all[i]), ofKind("a", fmt.Sprint(2*i+1), all[i]))
	}
	for b.stats().Parked < 2*kinds {
		require.Positive(t, b.claim(50).Parked)
	}
	assert.Zero(t, b.look(), "of none of these kinds")
	seen := b.lookWith(store.LookRequest{Kinds: []string{"k", all[kinds-1]}})
	assert.NotZero(t, seen.NextDue)
	assert.LessOrEqual(t, seen.NextDue, seen.Now)

	r := b.request(10)
	r.Kinds = all[:2]
	first := b.claimWith(r)
	assert.ElementsMatch(t, []string{"a/0", "a/1", "a/2", "a/3"}, names(first))
	r = b.request(kinds)
	r.Kinds = all[2:]
	r.Limit = store.MaxClaim
	got := 0
	for range 2 * kinds {
		got += len(b.claimWith(r).Tasks)
		r.Nonce = b.request(1).Nonce
	}
	assert.Equal(t, 2*kinds-4, got)
	assert.Zero(t, b.stats().Parked)
}
