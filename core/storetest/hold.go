package storetest

// Holds of every scope.

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/storetest/whole"
)

// holdable are holds of every kind of scope that task a/1 with the key is in.
var holdable = []store.Target{{Agent: "a", ID: "1"}, {Agent: "a"}, {Kind: "k"}, {Key: "key"}, {}}

// keyed is task a/1, with a key.
// Each scope of holdable holds it by another of its properties.
func keyed() store.Submission {
	s := task("a", "1")
	s.Key = "key"
	return s
}

// testHoldScopes holds task a/1 by each scope: it is parked, others are not,
// and it keeps its due time for the end.
func testHoldScopes(t *testing.T, b *bench) {
	for _, scope := range holdable {
		for _, several := range []bool{false, true} {
			name := fmt.Sprintf("%+v, several: %t", scope, several)
			b.with(Options{})
			b.submit(keyed())
			next := moment.Millis(0)
			if several {
				b.submit(within(task("a", "2"), time.Hour))
				next = b.now().Add(time.Hour)
			}
			since := b.now()
			b.hold(scope, moment.When{})
			b.clock.Advance(time.Second)
			if all := scope == (store.Target{}); !all {
				other := task("b", "1")
				other.Kind = "other"
				b.submit(other)
				r := b.request(10)
				r.Kinds = []string{"k", "other"}
				assert.Equal(t, []string{"b/1"}, names(b.claimWith(r)), "%s: the others go on", name)
				assert.Equal(t, [2]int64{1, 1}, [2]int64{b.stats().Parked, b.stats().Held}, name)
				assert.True(t, b.one("a", "1").Parked, name)
			} else {
				b.quiet(0, name)
			}
			s := b.one("a", "1")
			assert.Equal(t, store.StatusWaiting, s.Status, name)
			assert.Equal(t, []store.Held{{Target: scope, Since: since, Note: []byte("why")}}, s.Holds, name)

			assert.Equal(t, store.EffectDone, b.unhold(scope), name)
			assert.LessOrEqual(t, b.look(), b.now(), name)
			assert.NotZero(t, b.look(), name)
			c := b.take("a/1")
			assert.Equal(t, since, c.Tasks[0].Due, "%s: it keeps its due time", name)
			assert.Equal(t, next, c.NextDue, name)
			assert.Zero(t, b.stats().Held+b.stats().Parked, name)
			assert.Equal(t, store.EffectNone, b.unhold(scope), name)
		}
	}
}

// testHoldEnds lets holds end by themselves, whether or not a claim has parked anything under them.
// A hold that no claim has met still has to end on time: the end must not depend on who has looked.
func testHoldEnds(t *testing.T, b *bench) {
	for _, scope := range holdable {
		for _, seen := range []bool{true, false} {
			name := fmt.Sprintf("%+v, parked: %t", scope, seen)
			b.with(Options{})
			b.submit(keyed())
			until := moment.When{After: time.Minute}
			if seen {
				until = moment.When{At: b.now().Add(time.Minute)}
			}
			b.hold(scope, until)
			if seen {
				b.quiet(b.now().Add(time.Minute), name)
			}
			assert.Equal(t, b.now().Add(time.Minute), b.one("a", "1").Holds[0].Until, name)
			b.clock.Advance(time.Minute - time.Millisecond)
			b.quiet(b.now()+1, name)
			b.clock.Advance(time.Millisecond)
			assert.Empty(t, b.one("a", "1").Holds, "%s: it is over, whoever has seen it", name)
			assert.Equal(t, b.now(), max(b.look(), b.now()), name)
			assert.NotZero(t, b.look(), name)
			c := b.take("a/1")
			assert.Zero(t, c.NextDue, name)
			assert.Equal(t, b.now().Add(lease), c.NextLease, name)
			assert.Equal(t, store.EffectNone, b.unhold(scope), name)
		}
	}
}

// testHoldAll holds everything: no claim takes or parks anything, while runs
// under way, leases and settlements continue.
func testHoldAll(t *testing.T, b *bench) {
	b.with(Options{Partitions: 2})
	at := store.PartitionOf("a", 2)
	claim := func(agents ...string) store.Claim {
		r := b.request(10)
		r.Partition, r.Agents = at, agents
		return b.claimWith(r)
	}
	b.submit(task("a", "1"), task("a", "2"))
	c := claim()
	require.Len(t, c.Tasks, 2)
	b.hold(store.Target{}, moment.When{After: time.Hour})
	b.submit(task("a", "3"), within(task("a", "4"), time.Second))
	for _, held := range []store.Claim{claim(), claim("a"), claim("a", "b")} {
		assert.Empty(t, held.Tasks)
		assert.Zero(t, held.NextDue, "nothing is due while all is held")
		assert.Equal(t, c.NextLease, held.NextLease)
		assert.Zero(t, held.Parked)
	}
	extended, err := b.store.Extend(b.Context(), []store.Extension{{Partition: at, Fence: c.Fence, Lease: lease}})
	require.NoError(t, err)
	assert.True(t, extended[0].Held, "what runs goes on")
	assert.NoError(t, b.settle(complete(c.Tasks[0]))[0].Err)
	assert.NoError(t, b.settle(again(c.Tasks[1], 0))[0].Err)
	assert.Empty(t, claim().Tasks)
	assert.Equal(t, b.now().Add(time.Hour), claim().NextLease, "the end of the hold")

	assert.Equal(t, store.EffectDone, b.unhold(store.Target{}))
	c = claim()
	assert.ElementsMatch(t, []string{"a/2", "a/3"}, names(c))
	assert.Equal(t, b.now().Add(time.Second), c.NextDue)
	b.hold(store.Target{}, moment.When{})
	b.clock.Advance(lease)
	dead := claim()
	assert.Equal(t, 2, dead.Recovered, "leases run out as ever")
	assert.Empty(t, dead.Tasks)
	assert.Equal(t, store.EffectDone, b.unhold(store.Target{}))
	assert.Len(t, claim().Tasks, 3)
}

// testHoldTwice holds what is held: the hold gets another end and note, and began when it began.
func testHoldTwice(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"))
	for _, scope := range holdable[:3] {
		b.hold(scope, moment.When{After: time.Minute})
		b.clock.Advance(time.Second)
		b.hold(scope, moment.When{After: time.Hour})
		want := store.Held{Target: scope, Since: b.now(), Until: b.now().Add(time.Hour), Note: []byte("why")}
		assert.Equal(t, []store.Held{want}, b.one("a", "1").Holds)
		b.quiet(b.now().Add(time.Hour), "another end")
		b.hold(scope, moment.When{})
		want.Until = 0
		assert.Equal(t, []store.Held{want}, b.one("a", "1").Holds)
		b.quiet(0, "no end")
		b.hold(scope, moment.When{After: time.Second})
		b.clock.Advance(time.Second)
		b.hold(scope, moment.When{})
		assert.Equal(t, b.now(), b.one("a", "1").Holds[0].Since, "one that is over is not there any more")
		b.quiet(0, "held anew")
		assert.Equal(t, store.EffectDone, b.unhold(scope))
		assert.Equal(t, store.EffectNone, b.unhold(scope))
	}
	b.take("a/1")

	unknown := store.Hold{Target: store.Target{Agent: "a", ID: "2"}}
	assert.Zero(t, b.held(unknown))
	assert.Equal(t, store.EffectNone, b.unhold(unknown.Target))
	b.submit(task("a", "2"))
	b.take("a/2")
}

// A hold that is prolonged never ends sooner than it would have, whoever set it.
func testHoldProlonged(t *testing.T, b *bench) {
	for _, scope := range holdable {
		name := fmt.Sprintf("%+v", scope)
		b.with(Options{})
		b.submit(keyed())
		prolong := func(until moment.When) store.EffectCode {
			return b.held(store.Hold{Target: scope, Note: []byte("busy"), Until: until, Prolong: true}).Code
		}
		held := func() store.Held {
			holds := b.one("a", "1").Holds
			require.Len(t, holds, 1, name)
			return holds[0]
		}
		since := b.now()
		minutes := func(n int) moment.When { return moment.When{After: time.Duration(n) * time.Minute} }
		assert.Equal(t, store.EffectDone, prolong(minutes(2)), name)
		assert.Equal(t, store.Held{Target: scope, Since: since, Until: since.Add(2 * time.Minute), Note: []byte("busy")}, held(), name)
		assert.Equal(t, store.EffectNone, prolong(minutes(1)), name)
		assert.Equal(t, store.EffectNone, prolong(moment.When{At: since.Add(2 * time.Minute)}), name)
		b.hold(scope, minutes(5))
		assert.Equal(t, store.EffectNone, prolong(minutes(4)), name)
		assert.Equal(t, []byte("why"), held().Note, name)
		b.clock.Advance(time.Minute)
		assert.Equal(t, store.EffectDone, prolong(minutes(5)), name)
		assert.Equal(t, store.Held{Target: scope, Since: since, Until: since.Add(6 * time.Minute), Note: []byte("busy")}, held(), name)
		b.clock.Advance(5 * time.Minute)
		assert.Empty(t, b.one("a", "1").Holds, name)
		assert.Equal(t, store.EffectDone, prolong(minutes(1)), "%s: one that is over is no hold", name)
		assert.Equal(t, b.now(), held().Since, name)
		b.hold(scope, moment.When{})
		assert.Equal(t, store.EffectNone, prolong(minutes(9)), "%s: one without an end outlasts each", name)
		assert.Zero(t, held().Until, name)
		b.unhold(scope)
		b.hold(scope, minutes(1))
		assert.Equal(t, store.EffectDone, prolong(moment.When{}), name)
		assert.Zero(t, held().Until, name)
		assert.Equal(t, store.EffectDone, b.unhold(scope), name)
		b.take("a/1")
	}
	nobody := store.Hold{Target: store.Target{Agent: "a", ID: "2"}, Until: moment.When{After: time.Minute}, Prolong: true}
	assert.Zero(t, b.held(nobody))
}

// testHoldUnderTwo has a task under two holds: it runs when both have ended, in either order.
func testHoldUnderTwo(t *testing.T, b *bench) {
	for _, wide := range holdable[1:] {
		for _, narrowFirst := range []bool{true, false} {
			name := fmt.Sprintf("%+v, %t", wide, narrowFirst)
			b.with(Options{})
			b.submit(keyed())
			first, second := wide, holdable[0]
			if narrowFirst {
				first, second = second, first
			}
			b.hold(second, moment.When{})
			b.quiet(0, name)
			b.hold(first, moment.When{})
			b.quiet(0, name)
			assert.ElementsMatch(t, []store.Target{first, second},
				[]store.Target{b.one("a", "1").Holds[0].Target, b.one("a", "1").Holds[1].Target}, name)
			assert.Equal(t, store.EffectDone, b.unhold(first), name)
			b.quiet(0, name)
			assert.Len(t, b.one("a", "1").Holds, 1, name)
			assert.Equal(t, store.EffectDone, b.unhold(second), name)
			b.take("a/1")
			assert.Zero(t, b.stats().Parked, name)
		}
	}
}

// testHoldRunning holds a task that runs: only its next run is kept from starting.
func testHoldRunning(t *testing.T, b *bench) {
	for _, scope := range holdable {
		b.with(Options{})
		b.submit(keyed())
		c := b.take("a/1")
		b.hold(scope, moment.When{})
		assert.Equal(t, store.StatusInProgress, b.status("a", "1"))
		assert.Len(t, b.one("a", "1").Holds, 1)
		assert.Equal(t, store.Extended{Held: true}, b.extend(c.Fence), "the run goes on")
		b.ended(again(c.Tasks[0], time.Second))
		b.clock.Advance(time.Second)
		b.quiet(0, "the next one does not begin")
		assert.Equal(t, store.EffectDone, b.unhold(scope))
		b.take("a/1")
	}
}

// testHoldEndsWithTask ends a held task: a later task of its id is not held.
func testHoldEndsWithTask(t *testing.T, b *bench) {
	ends := map[string]func(c store.Claimed){
		"complete": func(c store.Claimed) { b.ended(complete(c)) },
		"delete":   func(store.Claimed) { b.delete(about("1")) },
		"cancel": func(c store.Claimed) {
			b.ended(again(c, 0))
			s := about("1")
			s.Version = b.one("a", "1").Version
			assert.Equal(t, store.EffectDone, b.cancelled(store.Cancellation{Agent: s.Agent, ID: s.ID, Group: s.Group, Version: s.Version}).Code)
		},
	}
	for name, end := range ends {
		b.with(Options{})
		b.submit(task("a", "1"))
		c := b.take("a/1")
		b.hold(holdable[0], moment.When{After: time.Hour})
		end(c.Tasks[0])
		assert.True(t, b.submit(b.anew(task("a", "1")))[0].Created, name)
		assert.Empty(t, b.one("a", "1").Holds, name)
		next := b.take("a/1")
		assert.Equal(t, b.now().Add(lease), next.NextLease, "%s: nor does anything end any more", name)
		b.ended(complete(next.Tasks[0]))
		assert.Zero(t, b.look(), name)
		assert.Equal(t, store.EffectNone, b.unhold(holdable[0]), name)
	}
}

func testHoldWakes(t *testing.T, b *bench) {
	b.with(Options{Partitions: 4})
	waker, ok := b.store.(store.Waker)
	require.True(t, ok)
	wakeups, err := waker.Wakeups(b.Context())
	require.NoError(t, err)
	b.submit(task("a", "1"))
	for _, scope := range []store.Target{{Agent: "a", ID: "1"}, {Agent: "a"}, {}} {
		b.hold(scope, moment.When{})
		r := b.request(1)
		r.Partition = store.PartitionOf("a", 4)
		require.Empty(t, b.claimWith(r).Tasks)
		b.clock.Advance(time.Second)
		require.Equal(t, store.EffectDone, b.unhold(scope))
		want := store.Wakeup{Partition: store.PartitionOf("a", 4), Due: b.now()}
		for receive(t, wakeups) != want { // an earlier one, or one of another partition
			continue
		}
	}
}

func testHoldBySettlement(t *testing.T, b *bench) {
	for _, verb := range []store.Verb{store.VerbAgain, store.VerbRest} {
		b.with(Options{})
		b.submit(task("a", "1"))
		c := b.take("a/1")
		b.hold(holdable[0], moment.When{After: time.Hour})
		since := b.now()
		b.clock.Advance(time.Second)
		s := again(c.Tasks[0], time.Second)
		s.Verb, s.Hold = verb, []byte("failed too often")
		assert.Equal(t, b.now().Add(time.Second), b.ended(s))
		want := store.Held{Target: holdable[0], Since: since, Note: s.Hold}
		assert.Equal(t, []store.Held{want}, b.one("a", "1").Holds, "without the end that it had")
		b.clock.Advance(time.Second)
		b.quiet(0, "it is paused")
		assert.Equal(t, int64(1), b.stats().Held)
		assert.Equal(t, store.EffectDone, b.unhold(holdable[0]))

		c = b.take("a/1")
		s = again(c.Tasks[0], 0)
		s.Verb, s.Hold = verb, []byte("again")
		b.ended(s)
		assert.Equal(t, []store.Held{{Target: holdable[0], Since: b.now(), Note: s.Hold}}, b.one("a", "1").Holds)
		b.quiet(0, "it is paused at once")
	}
}

// testPauses has holds of all scopes, some of which end.
func testPauses(t *testing.T, b *bench) {
	b.with(Options{Partitions: 4})
	assert.Empty(t, whole.Pauses(t, b.store, 10))
	b.submit(keyed())
	since := b.now()
	want := []store.Held{}
	for _, scope := range holdable {
		b.hold(scope, moment.When{})
		want = append(want, store.Held{Target: scope, Since: since, Note: []byte("why")})
	}
	soon := since.Add(time.Minute)
	for i := range 300 {
		agent := store.Target{Agent: fmt.Sprintf("agent%03d", i)}
		until := moment.When{}
		h := store.Held{Target: agent, Since: since, Note: []byte("why")}
		if i%2 == 0 {
			until.At, h.Until = soon, soon
		}
		b.hold(agent, until)
		want = append(want, h)
	}
	for _, limit := range []int{1, 7, 1000} {
		assert.ElementsMatch(t, want, whole.Pauses(t, b.store, limit), limit)
	}
	b.clock.Advance(time.Minute)
	b.unhold(store.Target{Kind: "k"})
	left := slices.DeleteFunc(want, func(h store.Held) bool { return h.Until != 0 || h.Target.Kind != "" })
	assert.ElementsMatch(t, left, whole.Pauses(t, b.store, 50), "those that have ended are not in force, seen by a claim or not")
}
