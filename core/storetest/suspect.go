package storetest

// The contract about processes that die, leave, or were only away.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// noticing is a request that gives notice of a lease that is over.
func (b *bench) noticing() store.ClaimRequest {
	r := b.request(1)
	r.Notice = 500 * time.Millisecond
	return r
}

// testNotice lets a lease end while the store is away: its holder has the time of a notice to extend it.
func testNotice(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"))
	first := b.claim(1)
	extend := func() bool {
		held, err := b.store.Extend(b.Context(), []store.Extension{{Fence: first.Fence, Lease: lease}})
		require.NoError(t, err)
		return held[0].Held
	}
	for range 2 { // an extension ends the notice, so that the next one is as long
		b.clock.Advance(time.Hour)
		c := b.claimWith(b.noticing())
		assert.Empty(t, c.Tasks, "its holder may only now be able to extend it")
		assert.Zero(t, c.Recovered)
		assert.Equal(t, b.now().Add(500*time.Millisecond), c.NextLease)
		b.clock.Advance(499 * time.Millisecond)
		assert.Empty(t, b.claimWith(b.noticing()).Tasks)
		require.True(t, extend())
	}
	b.clock.Advance(time.Hour)
	assert.Empty(t, b.claimWith(b.noticing()).Tasks)
	b.clock.Advance(500 * time.Millisecond)
	c := b.claimWith(b.noticing())
	require.Len(t, c.Tasks, 1)
	assert.Equal(t, [2]int{1, 1}, [2]int{c.Recovered, c.Tasks[0].Crashes})
	assert.False(t, extend())
}

// testLeaving ends a process that has said that it leaves: what it held is released, and no suspect.
func testLeaving(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"))
	c := b.claim(1)
	held, err := b.store.Extend(b.Context(), []store.Extension{{Fence: c.Fence, Lease: lease, Leave: true}})
	require.NoError(t, err)
	require.True(t, held[0].Held)
	_, err = b.store.Extend(b.Context(), []store.Extension{{Fence: c.Fence, Lease: lease}})
	require.NoError(t, err)
	b.clock.Advance(lease)
	c = b.claim(1)
	require.Len(t, c.Tasks, 1)
	assert.Equal(t, [2]int{1, 0}, [2]int{c.Recovered, c.Tasks[0].Crashes})
}

// dies claims tasks and lets their lease run out.
func (b *bench) dies(limit int) store.Claim {
	c := b.claim(limit)
	b.clock.Advance(lease)
	return c
}

// testSuspects bounds how many tasks are taken whose processes died.
func testSuspects(t *testing.T, b *bench) {
	b.with(Options{})
	for i := range 6 {
		b.submit(task(fmt.Sprint("s", i), "1"))
	}
	require.Len(t, b.dies(6).Tasks, 6)
	b.clock.Advance(time.Millisecond)
	for i := range 3 {
		b.submit(task(fmt.Sprint("t", i), "1"))
	}
	claim := func(limit, once, twice, more int) store.Claim {
		r := b.request(limit)
		r.Suspects = &[store.SuspectSorts]int{once, twice, more}
		return b.claimWith(r)
	}
	c := claim(5, 0, 2, 1)
	assert.Equal(t, [3]int{6, 3, 6}, [3]int{c.Recovered, len(c.Tasks), c.Suspects}, "what nobody suspects passes them")
	assert.LessOrEqual(t, c.NextDue, b.now())
	b.complete(c)
	b.submit(task("t", "1"))
	c = claim(5, 2, 2, 1)
	require.Len(t, c.Tasks, 3, "two suspects, and what comes behind them")
	assert.Equal(t, 4, c.Suspects)
	b.clock.Advance(lease)
	// Two died twice: a claim takes them, or those that died once.
	c = claim(10, 10, 10, 10)
	assert.Equal(t, 3, c.Recovered)
	sorts := map[int]int{}
	for i := range c.Tasks {
		sorts[c.Tasks[i].Crashes]++
	}
	assert.Len(t, sorts, 1, "of one sort")
	b.complete(c)
	rest := claim(10, 10, 10, 10)
	assert.Equal(t, 7, len(c.Tasks)+len(rest.Tasks))
	b.complete(rest)
	assert.Empty(t, claim(10, 0, 0, 0).Tasks)
	b.submit(task("u", "1"))
	b.dies(1)
	r := b.request(1)
	r.Suspects, r.MaxCrashes = &[store.SuspectSorts]int{}, 1
	assert.Empty(t, b.claimWith(r).Tasks)
	b.dies(1)
	r.Nonce = b.request(1).Nonce
	c = b.claimWith(r)
	require.Len(t, c.Tasks, 1, "it has crashed too often to run, and is only to be ended")
	b.complete(c)
	assert.Zero(t, claim(10, 0, 0, 0).Suspects, "a run that ends clears its task")
}

// testBack has a process come back whose leases were lost while it lived.
func testBack(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"), task("b", "1"), task("b", "2"), task("c", "1"), task("d", "1"), task("e", "1"))
	mine := b.dies(6)
	require.Len(t, mine.Tasks, 6)
	r := b.request(3)
	r.Agents = []string{"a", "d", "e"}
	theirs := b.claimWith(r)
	require.Len(t, theirs.Tasks, 3, "another process has begun these")
	gave := store.Settlement{Run: theirs.Tasks[2].Run, Verb: store.VerbRelease, Due: moment.When{At: theirs.Tasks[2].Due}}
	require.NoError(t, b.settle(gave)[0].Err)
	assert.Equal(t, 1, theirs.Tasks[0].Crashes)
	require.NoError(t, b.settle(complete(theirs.Tasks[1]))[0].Err)
	assert.Equal(t, store.EffectDone, b.delete(store.Submission{Agent: "c", ID: "1"}).Code)

	e := store.Extension{Fence: mine.Fence, Lease: lease, Nonce: b.request(1).Nonce}
	for i := range mine.Tasks {
		e.Back = append(e.Back, mine.Tasks[i].Run)
	}
	back := func() []store.Run {
		answers, err := b.store.Extend(b.Context(), []store.Extension{e})
		require.NoError(t, err)
		return answers[0].Back
	}
	runs := back()
	require.Len(t, runs, 2)
	assert.Equal(t, runs, back(), "a call that is repeated has the same answer")
	for i, run := range runs {
		assert.Equal(t, [2]string{"b", fmt.Sprint(i + 1)}, [2]string{run.Agent, run.ID})
		assert.Greater(t, run.Fence, theirs.Fence)
		assert.Equal(t, store.StatusInProgress, b.status(run.Agent, run.ID))
	}
	for _, ref := range [][2]string{{"a", "1"}, {"b", "1"}, {"e", "1"}} {
		assert.Zero(t, b.read(ref[0], ref[1])[0].Crashes, "its process lives")
	}
	require.NoError(t, b.settle(store.Settlement{Run: runs[0], Verb: store.VerbComplete})[0].Err)
	// The process dies after all: that counts.
	b.clock.Advance(lease)
	c := b.claim(5)
	require.Len(t, c.Tasks, 3)
	crashes := 0
	for i := range c.Tasks {
		crashes += c.Tasks[i].Crashes
	}
	assert.Equal(t, 2, crashes)
	b.complete(c)
	e.Nonce = b.request(1).Nonce
	assert.Empty(t, back(), "nothing is left to take back")
}

// testLeases holds tasks of some kinds for a time of their own.
func testLeases(t *testing.T, b *bench) {
	b.with(Options{})
	short, long := task("a", "1"), task("b", "1")
	long.Kind = "long"
	b.submit(short, long)
	claim := func() store.Claim {
		r := b.request(5)
		r.Kinds = []string{"k", "long"}
		r.Leases = map[string]time.Duration{"long": time.Hour}
		return b.claimWith(r)
	}
	first, second := claim(), claim()
	require.Len(t, first.Tasks, 1)
	require.Len(t, second.Tasks, 1)
	b.clock.Advance(lease)
	again := claim()
	require.Len(t, again.Tasks, 1)
	assert.Equal(t, "k", again.Tasks[0].Kind)
	b.complete(again)
	b.clock.Advance(time.Hour)
	assert.Equal(t, 1, claim().Recovered)
}
