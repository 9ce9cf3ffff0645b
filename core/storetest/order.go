package storetest

// Commands to tasks that run.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// run makes one task due now.
func (b *desk) run(agent, id string, queue bool) store.Effect {
	b.Helper()
	return b.effect(b.store.RunNow(b.Context(), []store.RunNow{{Agent: agent, ID: id, Queue: queue}}))
}

// cancel is a command to end task a/1 of group g, at the version that it has now.
func (b *desk) cancel() store.Cancellation {
	b.Helper()
	return store.Cancellation{
		Agent: "a", ID: "1", Group: "g", Version: b.one("a", "1").Version, Record: []byte("record"), Order: []byte("told"),
	}
}

// remove deletes a task of agent a.
func (b *desk) remove(id, group string) store.EffectCode {
	b.Helper()
	s := about(id)
	s.Group = group
	return b.delete(s).Code
}

// testRun runs waiting and running tasks on demand; what runs already runs
// again only if that is asked for.
func testRun(t *testing.T, b *bench) {
	for _, several := range []bool{false, true} {
		b.with(Options{})
		b.submit(within(task("a", "1"), time.Hour))
		next := moment.Millis(0)
		if several {
			b.submit(within(task("a", "2"), 2*time.Hour))
			next = b.now().Add(2 * time.Hour)
		}
		assert.Equal(t, store.Effect{Code: store.EffectDone, Due: b.now()}, b.run("a", "1", false))
		assert.Equal(t, b.now(), b.look())
		due := b.now()
		b.clock.Advance(time.Second)
		// Otherwise a task that is due could be moved behind others by an operator's impatience.
		assert.Equal(t, store.Effect{Code: store.EffectDone, Due: due}, b.run("a", "1", false), "due already: it keeps its place")
		c := b.take("a/1")
		assert.Equal(t, due, c.Tasks[0].Due)
		assert.Equal(t, next, c.NextDue)

		assert.Equal(t, store.Effect{Code: store.EffectRunning}, b.run("a", "1", false))
		assert.Equal(t, b.now().Add(time.Hour), b.ended(again(c.Tasks[0], time.Hour)), "nothing was changed")
		b.run("a", "1", false)
		r := b.request(1)
		c = b.claimWith(r)
		// Ordered twice, it has one further run and not two.
		for range 2 {
			assert.Equal(t, store.Effect{Code: store.EffectOrdered}, b.run("a", "1", true))
			assert.Equal(t, c.Tasks, b.claimWith(r).Tasks, "a repeated claim does not carry it out")
		}
		assert.Equal(t, b.now(), b.ended(again(c.Tasks[0], time.Hour)), "once more when its run ends")
		c = b.take("a/1")
		assert.Equal(t, b.now().Add(time.Hour), b.ended(again(c.Tasks[0], time.Hour)), "once")
		assert.Zero(t, b.run("a", "3", true), "unknown")
		assert.Zero(t, b.run("b", "1", true), "unknown")
	}
}

// testRunHeld runs a held task on demand: once, in spite of the hold, which stays.
func testRunHeld(t *testing.T, b *bench) {
	for _, p := range places() {
		if p.name != "held" && p.name != "held by its key" {
			continue
		}
		for _, parked := range []bool{true, false} {
			if !parked {
				p.put, p.parked = func(b *bench, agent, id string) {
					b.hold(store.Target{Agent: agent, ID: id}, moment.When{After: 24 * time.Hour})
				}, false
			}
			b.stand(p)
			assert.Equal(t, store.Effect{Code: store.EffectDone, Due: b.now()}, b.run("a", "1", false), p.name)
			assert.Len(t, b.one("a", "1").Holds, 1, p.name)
			assert.Equal(t, b.now(), b.look(), p.name)
			c := b.take("a/1")
			b.ended(again(c.Tasks[0], 0))
			assert.Empty(t, b.claim(10).Tasks, "%s: once", p.name)
			assert.True(t, b.one("a", "1").Parked, p.name)
			b.run("a", "1", false)
			b.take("a/1")
		}
	}
}

// testRunParked runs a task that no process has a handler for: it goes back
// to its queue, for whoever has one.
func testRunParked(t *testing.T, b *bench) {
	b.stand(places()[1])
	b.clock.Advance(time.Second)
	assert.Equal(t, store.Effect{Code: store.EffectDone, Due: b.now()}, b.run("a", "1", false), "what is out of the queue is due now")
	assert.False(t, b.one("a", "1").Parked)
	c := b.take("a/1")
	b.hold(holdable[0], moment.When{})
	b.run("a", "1", true)
	assert.Equal(t, b.now(), b.ended(again(c.Tasks[0], time.Hour)))
	b.quiet(0, "due, but held")
	b.unhold(holdable[0])
	c = b.take("a/1")
	// An order to run again means nothing to a task that ends.
	b.run("a", "1", true)
	b.ended(complete(c.Tasks[0]))
	assert.Equal(t, store.StatusCompleted, b.status("a", "1"), "an end is an end")
	assert.Zero(t, b.run("a", "1", true), "it is finished")
}

// testCancelWaiting cancels a waiting task in each place: it ends with a record, if
// its version is the one that was read.
func testCancelWaiting(t *testing.T, b *bench) {
	for _, p := range places() {
		b.stand(p)
		c := b.cancel()
		// A wrong version and none at all are refused alike.
		stale := c
		stale.Version += "x"
		before := b.one("a", "1")
		assert.Equal(t, store.Effect{Code: store.EffectChanged}, b.cancelled(stale), p.name)
		stale.Version = ""
		assert.Equal(t, store.Effect{Code: store.EffectChanged}, b.cancelled(stale), p.name)
		assert.Equal(t, before, b.one("a", "1"), p.name)
		assert.Equal(t, store.GroupCounts{Live: 1}, b.group("g"), p.name)
		assert.Zero(t, b.stats().Cancelled, p.name)

		b.clock.Advance(time.Second)
		assert.Equal(t, store.Effect{Code: store.EffectDone}, b.cancelled(c), p.name)
		s := b.one("a", "1")
		want := store.Stored{Agent: "a", ID: "1", Status: store.StatusCancelled, Finished: b.now(), Updated: b.now(), Record: []byte("record"), Version: s.Version}
		assert.Equal(t, want, s, p.name)
		assert.Equal(t, store.GroupCounts{Cancelled: 1}, b.group("g"), p.name)
		st := b.stats()
		left := int64(0)
		if p.several {
			left = 1
		}
		assert.Equal(t, [6]int64{left, left, 0, 0, 1, 0}, [6]int64{st.Waiting, st.Agents, st.Parked, st.Held, st.Cancelled, st.Deleted}, p.name)
		assert.Equal(t, left, b.kind("k").Live, p.name)
		assert.Zero(t, b.cancelled(c), "%s: it is over", p.name)
		assert.Empty(t, b.claim(10).Tasks, p.name)
		b.clock.Advance(2 * time.Hour)
		assert.Len(t, b.claim(10).Tasks, int(left), p.name)
	}
}

// testCancelChanged cancels at a version: a run that changed the state in between makes it stale.
func testCancelChanged(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(keyed())
	c := b.cancel()
	claimed := b.take("a/1")
	s := again(claimed.Tasks[0], 0)
	s.State = []byte("more")
	b.ended(s)
	assert.Equal(t, store.EffectChanged, b.cancelled(c).Code, "its state is another")
	c = b.cancel()
	claimed = b.take("a/1")
	b.ended(again(claimed.Tasks[0], time.Second))
	assert.Equal(t, store.EffectDone, b.cancelled(c).Code, "a run that left the state alone changed nothing")
}

// testCancelRunning cancels a task that runs: the order reaches its
// heartbeats, and the first order counts.
func testCancelRunning(t *testing.T, b *bench) {
	for _, several := range []bool{false, true} {
		b.with(Options{})
		s := task("a", "1")
		s.Group = "g"
		b.submit(task("b", "1"), s)
		if several {
			b.submit(within(task("a", "2"), time.Hour))
		}
		c := b.claim(10)
		at := 0
		if c.Tasks[1].Agent == "a" {
			at = 1
		}
		told := b.cancel()
		told.Version = "any"
		assert.Equal(t, store.Effect{Code: store.EffectOrdered}, b.cancelled(told))
		second := told
		second.Order = []byte("later")
		assert.Equal(t, store.Effect{Code: store.EffectOrdered}, b.cancelled(second), "twice")
		want := store.Extended{Held: true, Ended: []store.Ended{{Index: at, Order: []byte("told")}}, Running: 2, Holder: "nonce000"}
		for range 2 {
			assert.Equal(t, want, b.extend(c.Fence), "only this run is to end")
		}
		assert.Equal(t, []byte("told"), b.one("a", "1").Order)
		// It is the run's own process that ends it.
		b.settleCancelled(c.Tasks[at])
		assert.Equal(t, store.StatusInProgress, b.status("a", "1"), "the run cannot go on, but it has not ended")
		assert.Equal(t, want, b.extend(c.Fence))
	}
}

// settleCancelled demands that a cancelled task can only be settled as cancelled, whatever its run has returned.
// The lease is still held, so that ErrLeaseLost would be wrong.
func (b *bench) settleCancelled(c store.Claimed) {
	b.Helper()
	before := b.stats()
	for _, verb := range []store.Verb{store.VerbAgain, store.VerbRelease, store.VerbRest, store.VerbComplete, store.VerbFail} {
		s := again(c, 0)
		s.Verb, s.State, s.Renewed = verb, []byte("changed"), true
		s.Tally = &store.RunStat{Kind: "k"}
		var cancelled *store.EndingError
		require.ErrorAs(b, b.settle(s)[0].Err, &cancelled)
		assert.Equal(b, []byte("told"), cancelled.Order)
	}
	assert.Equal(b, before, b.stats(), "what is refused counts nothing")
	assert.Nil(b, b.one(c.Agent, c.ID).State)
}

// testCancelSettle ends a cancelled run, and then uses the id for another task.
func testCancelSettle(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"))
	c := b.take("a/1")
	require.Equal(t, store.EffectOrdered, b.cancelled(b.cancel()).Code)
	b.settleCancelled(c.Tasks[0])
	b.ended(store.Settlement{Run: c.Tasks[0].Run, Kind: "k", Verb: store.VerbCancel})
	assert.Equal(t, store.StatusCancelled, b.status("a", "1"))
	assert.Equal(t, [3]int64{0, 0, 1}, [3]int64{b.stats().Completed, b.stats().Failed, b.stats().Cancelled})
	b.submit(b.anew(task("a", "1")))
	c = b.take("a/1")
	assert.False(t, c.Tasks[0].Cancelled, "what was said is over with the task")

	b.ended(complete(c.Tasks[0]))
	assert.Zero(t, b.cancelled(store.Cancellation{Agent: "a", ID: "1"}), "it completed first")
	assert.Equal(t, store.StatusCompleted, b.status("a", "1"))
}

// testCancelCrash kills the process of a cancelled run: whoever claims the task
// next learns of the order, and ends it.
func testCancelCrash(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"), task("b", "1"), task("b", "2"))
	b.claim(10)
	require.Equal(t, store.EffectOrdered, b.cancelled(b.cancel()).Code)
	for deaths := range 2 {
		b.clock.Advance(lease)
		r := b.request(10)
		c := b.claimWith(r)
		require.Len(t, c.Tasks, 3)
		assert.Equal(t, c.Tasks, b.claimWith(r).Tasks, "the same when the claim is repeated")
		for _, task := range c.Tasks {
			assert.Equal(t, task.Agent == "a", task.Cancelled)
			if task.Agent == "a" {
				assert.Equal(t, []byte("told"), task.Order)
				assert.Equal(t, deaths+1, task.Crashes)
				b.settleCancelled(task)
			} else {
				assert.Nil(t, task.Order)
			}
		}
	}
}

// testCancelLeft has a process leave a cancelled run without a crash, and its lease taken back by a claim that does not take the task: nothing
// but the order makes the next claim one that needs more than a glance.
func testCancelLeft(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"))
	c := b.claim(10)
	require.Equal(t, store.EffectOrdered, b.cancelled(b.cancel()).Code)
	_, err := b.store.Extend(b.Context(), []store.Extension{{Fence: c.Fence, Lease: lease, Leave: true}})
	require.NoError(t, err)
	b.clock.Advance(lease)
	urgent := b.request(10)
	urgent.Urgent = true
	require.Empty(t, b.claimWith(urgent).Tasks)
	c = b.take("a/1")
	assert.True(t, c.Tasks[0].Cancelled)
	assert.Equal(t, []byte("told"), c.Tasks[0].Order)
	assert.Zero(t, c.Tasks[0].Crashes)
}

// testCancelCrashLater has the lease of a cancelled run taken back by a claim that does not take the task: the one that does
// learns of the order, though it asks for nothing special.
func testCancelCrashLater(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"))
	b.claim(10)
	require.Equal(t, store.EffectOrdered, b.cancelled(b.cancel()).Code)
	b.clock.Advance(lease)
	urgent := b.request(10)
	urgent.Urgent = true
	require.Empty(t, b.claimWith(urgent).Tasks)
	c := b.take("a/1")
	assert.True(t, c.Tasks[0].Cancelled)
	assert.Equal(t, []byte("told"), c.Tasks[0].Order)
}
