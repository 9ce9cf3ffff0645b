package storetest

// The contract of claims that bring their task: it is stored, and leased in the same step if it may run.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/storetest/given"
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

// ahead is a request that takes what falls due within a second besides ten that are due.
func ahead(b *bench) store.ClaimRequest {
	r := b.request(10)
	r.Ahead, r.AheadMost, r.AheadLease = time.Second, 10, 2*time.Second
	return r
}

// givenBack gives a run back that has not begun.
func givenBack(t store.Claimed) store.Settlement {
	return store.Settlement{Run: t.Run, Kind: t.Kind, Verb: store.VerbRelease, Due: moment.When{At: t.Due}}
}

// testAhead claims what falls due within a moment, with what is due and under a short lease; its time is that of the task.
func testAhead(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"), within(task("b", "2"), 700*time.Millisecond), within(task("c", "3"), time.Second), within(task("d", "4"), time.Second+time.Millisecond))
	begun := b.now()
	c := b.claimWith(ahead(b))
	require.Equal(t, []string{"a/1", "b/2", "c/3"}, names(c))
	assert.Equal(t, begun.Add(time.Second), c.Ahead)
	assert.Equal(t, []moment.Millis{begun, begun.Add(700 * time.Millisecond), begun.Add(time.Second)}, []moment.Millis{c.Tasks[0].Due, c.Tasks[1].Due, c.Tasks[2].Due})
	assert.Equal(t, [2]moment.Millis{begun.Add(time.Second + time.Millisecond), begun.Add(2 * time.Second)}, [2]moment.Millis{c.NextDue, c.NextLease})
	assert.Empty(t, names(b.claimWith(ahead(b))), "they are leased")
	b.ended(givenBack(c.Tasks[1]))
	assert.Equal(t, begun.Add(700*time.Millisecond), b.one("b", "2").Due, "what is given back has its time")
	assert.Empty(t, names(b.claim(10)))

	noticing := func(most int) store.ClaimRequest {
		r := ahead(b)
		r.AheadMost, r.Notice = most, 10*time.Second
		return r
	}
	c = b.claimWith(noticing(1))
	require.Equal(t, []string{"b/2"}, names(c))
	b.clock.Advance(2*time.Second + 499*time.Millisecond)
	c = b.claimWith(noticing(1))
	assert.Equal(t, []string{"d/4"}, names(c), "the others are given notice")
	assert.Equal(t, b.now().Add(time.Second), c.NextLease, "half of the short lease")
	b.clock.Advance(time.Second)
	assert.Len(t, b.claimWith(noticing(1)).Tasks, 3)
	b.audited()
}

// testAheadLeaves leaves everything that is out of the ordinary until it is due.
func testAheadLeaves(t *testing.T, b *bench) {
	b.with(Options{})
	soon := 500 * time.Millisecond
	urgent := within(task("urgent", "1"), soon)
	urgent.Level = store.LevelHigh
	other := within(task("other", "1"), soon)
	other.Kind = "unknown"
	keyed := within(task("keyed", "1"), soon)
	keyed.Key = "x"
	b.submit(urgent, other, within(task("held", "1"), soon), within(task("held", "2"), soon), keyed)
	b.hold(store.Target{Agent: "held"}, moment.When{})
	b.hold(store.Target{Key: "x"}, moment.When{})
	_, err := b.store.Touch(b.Context(), []store.Touch{given.Touching(task("active", "1"), store.Pulse{Delay: soon})})
	require.NoError(t, err)
	b.clock.Advance(100 * time.Millisecond)
	assert.Empty(t, names(b.claimWith(ahead(b))))
	b.clock.Advance(soon)
	c := b.claim(10)
	assert.ElementsMatch(t, []string{"urgent/1", "active/1"}, names(c))
	b.audited()
}

// testAheadWithdrawn has commands come between a claim and the time of its task.
func testAheadWithdrawn(t *testing.T, b *bench) {
	b.with(Options{})
	woken, err := b.store.(store.Waker).Wakeups(b.Context())
	require.NoError(t, err)
	withdrawn := func() {
		b.Helper()
		for {
			select {
			case w := <-woken:
				if w.Withdrawn {
					assert.Zero(t, w.Due)
					return
				}
			case <-time.After(5 * time.Second):
				require.Fail(t, "nobody is asked for what was claimed ahead")
			}
		}
	}
	b.submit(within(task("a", "1"), 500*time.Millisecond))
	c := b.claimWith(ahead(b))
	require.Len(t, c.Tasks, 1)
	due := c.Tasks[0].Due
	assert.Equal(t, store.Effect{Code: store.EffectDone, Due: due}, b.held(store.Hold{Target: store.Target{Kind: "k"}}), "until then it may start")
	withdrawn()
	b.ended(givenBack(c.Tasks[0]))
	b.clock.Advance(time.Second)
	assert.Empty(t, names(b.claim(10)), "it is held")
	assert.Equal(t, store.Effect{Code: store.EffectDone}, b.held(store.Hold{Target: store.Target{Agent: "a"}}), "no task that was claimed ahead can start any more")
	b.unhold(store.Target{Kind: "k"})
	b.unhold(store.Target{Agent: "a"})
	c = b.claim(10)
	require.Len(t, c.Tasks, 1)
	b.ended(again(c.Tasks[0], 500*time.Millisecond))

	c = b.claimWith(ahead(b))
	require.Len(t, c.Tasks, 1)
	assert.Equal(t, store.EffectOrdered, b.cancelled(store.Cancellation{Agent: "a", ID: "1", Version: b.one("a", "1").Version, Order: []byte("why")}).Code)
	withdrawn()
	var ending *store.EndingError
	assert.ErrorAs(t, b.settle(givenBack(c.Tasks[0]))[0].Err, &ending)
}
