package storetest

// The contract of turns: outcomes and the next claim in one call.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// turn makes one call of Turn, which must not fail.
func (b *bench) turn(runs []store.Settlement, requests ...store.ClaimRequest) ([]store.Settled, []store.Claim) {
	b.Helper()
	settled, claims, err := b.store.Turn(b.Context(), runs, requests)
	require.NoError(b, err)
	require.Len(b, settled, len(runs))
	require.Len(b, claims, len(requests))
	return settled, claims
}

// testTurn ends runs before it claims: what they make due again is in the claim, and the answer says when the rest is due.
func testTurn(t *testing.T, b *bench) {
	b.with(Options{Partitions: 1})
	b.submit(task("a", "1"), task("b", "1"))
	first := b.claim(10)
	require.Len(t, first.Tasks, 2)
	now, later := again(first.Tasks[0], 0), again(first.Tasks[1], time.Minute)
	settled, claims := b.turn([]store.Settlement{now, later}, b.request(10))
	assert.Equal(t, []store.Settled{{Due: b.now()}, {Due: b.now().Add(time.Minute)}}, settled)
	assert.Equal(t, names(store.Claim{Tasks: first.Tasks[:1]}), names(claims[0]))
	assert.Greater(t, claims[0].Fence, first.Fence)
	assert.Equal(t, b.now().Add(time.Minute), claims[0].NextDue)

	// Each half does without the other, and both without anything.
	settled, _ = b.turn([]store.Settlement{complete(claims[0].Tasks[0])})
	require.NoError(t, settled[0].Err)
	b.clock.Advance(time.Minute)
	_, claims = b.turn(nil, b.request(10))
	assert.Equal(t, names(store.Claim{Tasks: first.Tasks[1:]}), names(claims[0]))
	b.turn(nil)
}

// testTurnRefused has a run that lost its lease, and several partitions: each item has an answer of its own.
func testTurnRefused(t *testing.T, b *bench) {
	b.with(Options{Partitions: 4})
	agents := map[int]string{}
	for _, agent := range []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"} {
		agents[store.PartitionOf(agent, 4)] = agent
	}
	require.Len(t, agents, 4)
	var runs []store.Settlement
	var requests []store.ClaimRequest
	for p := range 4 {
		b.submit(task(agents[p], "1"))
		r := b.request(5)
		r.Partition = p
		c := b.claimWith(r)
		require.Len(t, c.Tasks, 1)
		runs = append(runs, complete(c.Tasks[0]))
		b.submit(task(agents[p], "2"))
		r = b.request(5)
		r.Partition = p
		requests = append(requests, r)
	}
	runs[2].Fence += 1000
	settled, claims := b.turn(runs, requests...)
	for p := range 4 {
		if p == 2 {
			require.ErrorIs(t, settled[p].Err, store.ErrLeaseLost)
		} else {
			require.NoError(t, settled[p].Err)
		}
		require.NoError(t, claims[p].Err)
		assert.Equal(t, p, claims[p].Partition)
		assert.Equal(t, []string{agents[p] + "/2"}, names(claims[p]))
	}
	assert.Equal(t, int64(3), b.stats().Completed)
}

// testQuiet wakes nobody for what a settlement makes due whose caller knows it, and everybody for what another does.
func testQuiet(t *testing.T, b *bench) {
	b.with(Options{Partitions: 1})
	waker, ok := b.store.(store.Waker)
	require.True(t, ok)
	b.submit(task("a", "1"), task("b", "1"))
	c := b.claim(10)
	require.Len(t, c.Tasks, 2)
	wakeups, err := waker.Wakeups(b.Context())
	require.NoError(t, err)
	quiet, loud := again(c.Tasks[0], 2*time.Second), again(c.Tasks[1], time.Second)
	quiet.Quiet = true
	b.settle(quiet)
	looks, err := b.store.Look(t.Context(), []store.LookRequest{{Kinds: []string{"k"}}})
	require.NoError(t, err)
	assert.Equal(t, b.now().Add(2*time.Second), looks[0].NextDue, "whoever looks sees it")
	b.settle(loud)
	assert.Equal(t, store.Wakeup{Due: b.now().Add(time.Second)}, receive(t, wakeups), "the first is that of the other task")
}
