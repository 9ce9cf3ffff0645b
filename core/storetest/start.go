package storetest

// The contract of claims that bring their task: it is stored, and leased in the same step if it may run.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// start claims with a task of the claim's own.
func (b *bench) start(s store.Submission) (store.ClaimRequest, store.Claim) {
	b.Helper()
	r := b.request(1)
	r.New = &s
	return r, b.claimWith(r)
}

// testStart leases a task as it is stored: whoever claims next does not get it, and it comes back when its lease has ended.
func testStart(t *testing.T, b *bench) {
	b.with(Options{})
	urgent := task("a", "1")
	urgent.Level = store.LevelHigh
	r, c := b.start(urgent)
	require.Equal(t, []string{"a/1"}, names(c))
	assert.Equal(t, &store.Submitted{Created: true, Due: b.now()}, c.Submitted)
	assert.Equal(t, b.now(), c.Tasks[0].Due)
	assert.Equal(t, b.now(), c.Tasks[0].Submitted)
	assert.Equal(t, urgent.Body, c.Tasks[0].Body)
	assert.Equal(t, store.StatusInProgress, b.one("a", "1").Status)
	assert.Empty(t, names(b.claim(10)))
	assert.Equal(t, [2]int64{1, 1}, [2]int64{b.stats().InProgress, b.stats().Submitted})

	again := b.claimWith(r)
	assert.Equal(t, &store.Submitted{}, again.Submitted, "it exists, and is not started twice")
	assert.Empty(t, again.Tasks)

	b.clock.Advance(lease + time.Millisecond)
	back := b.claim(10)
	require.Equal(t, []string{"a/1"}, names(back))
	assert.Equal(t, 1, back.Tasks[0].Crashes)
	assert.Greater(t, back.Fence, c.Fence)
	assert.ErrorIs(t, b.settle(complete(c.Tasks[0]))[0].Err, store.ErrLeaseLost)
	b.ended(complete(back.Tasks[0]))
	b.audited()
}

// testStartBeside starts tasks of agents that have others: few or many, of the same level or not, and none of them due.
func testStartBeside(t *testing.T, b *bench) {
	for _, others := range []int{1, 2, 20} {
		for _, level := range []store.Level{store.LevelHigh, store.LevelLow} {
			b.with(Options{})
			for i := range others {
				b.submit(within(task("a", string(rune('a'+i))), time.Minute))
			}
			s := task("a", "1")
			s.Level = level
			_, c := b.start(s)
			require.Equal(t, []string{"a/1"}, names(c), "%d others, level %d", others, level)
			assert.Equal(t, []moment.Millis{b.now().Add(time.Minute)}, c.AgentsDue)
			b.audited()
			assert.Equal(t, store.Settled{Due: b.now().Add(time.Second)}, b.settle(again(c.Tasks[0], time.Second))[0])
			b.clock.Advance(time.Second)
			c = b.claim(10)
			require.Equal(t, []string{"a/1"}, names(c))
			b.ended(complete(c.Tasks[0]))
			b.clock.Advance(time.Minute)
			assert.Len(t, b.claim(50).Tasks, others)
			b.audited()
		}
	}
}

// testStartWaits stores a task and does not lease it where it may not run, or where another of its agent is first.
func testStartWaits(t *testing.T, b *bench) {
	for name, target := range map[string]store.Target{
		"everything": {}, "its kind": {Kind: "k"}, "its agent": {Agent: "a"}, "its key": {Key: "key"},
	} {
		b.with(Options{})
		b.hold(target, moment.When{})
		s := task("a", "1")
		s.Key = "key"
		_, c := b.start(s)
		assert.True(t, c.Submitted.Created, name)
		assert.Empty(t, c.Tasks, name)
		b.unhold(target)
		assert.Equal(t, []string{"a/1"}, names(b.claim(10)), name)
		b.audited()
	}
	b.with(Options{})
	b.submit(task("a", "before"))
	b.clock.Advance(time.Millisecond)
	_, c := b.start(task("a", "1"))
	assert.Equal(t, []string{"a/before"}, names(c), "it has waited longer")
	_, c = b.start(within(task("b", "1"), time.Second))
	assert.True(t, c.Submitted.Created)
	assert.Empty(t, c.Tasks, "it is not due")
	full := b.request(1)
	refused := task("c", "1")
	b.submit(refused)
	refused.Conflict = store.ConflictFail
	full.New = &refused
	claims, err := b.store.Claim(b.Context(), []store.ClaimRequest{full})
	require.NoError(t, err)
	conflict := new(store.ConflictError)
	assert.ErrorAs(t, claims[0].Err, &conflict)
	assert.Nil(t, claims[0].Submitted)
	b.audited()
}
