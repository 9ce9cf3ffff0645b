package storetest

// Deleted tasks leave nothing behind.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// fresh demands that task a/1 is not known, and that one of its id is new.
// A deleted task must not live on in an order, a crash counter, a state or a group.
func (b *bench) fresh() {
	b.Helper()
	assert.Equal(b, store.Stored{Agent: "a", ID: "1"}, b.one("a", "1"))
	assert.Equal(b, store.EffectNone, b.remove("1", "g"))
	assert.True(b, b.submit(task("a", "1"))[0].Created)
	c := b.claim(10)
	require.Contains(b, names(c), "a/1")
	// The new task has none of what the old one had.
	for _, got := range c.Tasks {
		if got.ID == "1" {
			assert.Equal(b, [3]any{0, []byte(nil), false}, [3]any{got.Crashes, got.State, got.Cancelled})
		}
	}
}

// testDeleteWaiting deletes a task in each place where it does not run:
// counters, group and agent follow.
func testDeleteWaiting(t *testing.T, b *bench) {
	for _, p := range places() {
		b.stand(p)
		before := b.stats()
		assert.Equal(t, store.EffectDone, b.remove("1", "g"), p.name)
		st := b.stats()
		assert.Equal(t, before.Waiting-1, st.Waiting, p.name)
		assert.Equal(t, [3]int64{0, 0, 1}, [3]int64{st.Parked, st.Held, st.Deleted}, p.name)
		assert.Equal(t, st.Waiting, b.kind("k").Live, p.name)
		assert.Equal(t, st.Waiting, st.Agents, p.name)
		assert.Zero(t, st.Cancelled, p.name)
		assert.Equal(t, store.GroupCounts{}, b.group("g"), p.name)
		assert.Empty(t, b.claim(10).Tasks, p.name)
		b.fresh()
	}
}

// testDeleteRunning deletes a task that runs: its run is lost, its heartbeat says so,
// and what it still sends changes nothing.
func testDeleteRunning(t *testing.T, b *bench) {
	b.with(Options{})
	first := task("a", "1")
	first.Group = "g"
	b.submit(first, task("a", "2"), task("b", "1"))
	c := b.claim(10)
	require.Len(t, c.Tasks, 3)
	at := 0
	for i, task := range c.Tasks {
		if task.Agent == "a" && task.ID == "1" {
			at = i
		}
	}
	// Cancelled as well, so that two orders meet.
	b.cancelled(store.Cancellation{Agent: "a", ID: "1"})
	b.extend(c.Fence, store.Progress{Run: c.Tasks[at].Run, State: []byte("old")})
	assert.Equal(t, store.EffectDone, b.remove("1", "g"))
	assert.Equal(t, store.GroupCounts{}, b.group("g"))
	st := b.stats()
	assert.Equal(t, [3]int64{2, 1, 0}, [3]int64{st.InProgress, st.Deleted, st.Waiting})
	assert.Equal(t, [2]int64{2, 2}, [2]int64{b.kind("k").Live, b.kind("k").Running})
	// Every heartbeat reports it, as the answer to one may be lost.
	want := store.Extended{Held: true, Ended: []store.Ended{{Index: at, Deleted: true}}, Running: 2, Holder: "nonce000"}
	assert.Equal(t, want, b.extend(c.Fence, store.Progress{Run: c.Tasks[at].Run, State: []byte("late")}))
	assert.ErrorIs(t, b.settle(complete(c.Tasks[at]))[0].Err, store.ErrLeaseLost)
	b.fresh()
	assert.ErrorIs(t, b.settle(complete(c.Tasks[at]))[0].Err, store.ErrLeaseLost, "nor does the old run end the new task")
	assert.Equal(t, store.StatusInProgress, b.status("a", "1"))
	b.ended(complete(c.Tasks[(at+1)%3]))
	b.ended(complete(c.Tasks[(at+2)%3]))
	assert.Zero(t, b.extend(c.Fence), "none is left to hold")
}

// testDeleteLastOfClaim deletes the only run of a claim: the lease ends with it.
func testDeleteLastOfClaim(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"))
	r := b.request(1)
	c := b.claimWith(r)
	require.Len(t, c.Tasks, 1)
	assert.Equal(t, store.EffectDone, b.remove("1", ""))
	assert.Zero(t, b.extend(c.Fence))
	assert.Empty(t, b.claimWith(r).Tasks, "a repeated claim does not bring it back")
	assert.ErrorIs(t, b.settle(complete(c.Tasks[0]))[0].Err, store.ErrLeaseLost)
	assert.Zero(t, b.look(), "no lease is left")
	assert.Zero(t, b.stats().Agents+b.stats().InProgress)
	b.clock.Advance(lease)
	assert.Zero(t, b.claim(1).Recovered)
	b.fresh()
}

// testDeleteFinished deletes records: the id is free at once, and the counts of the group stay.
func testDeleteFinished(t *testing.T, b *bench) {
	for _, several := range []bool{false, true} {
		b.with(Options{Retention: time.Hour})
		s := task("a", "1")
		s.Group = "g"
		b.submit(s)
		if several {
			b.submit(task("a", "2"))
		}
		c := b.claim(10)
		for _, task := range c.Tasks {
			end := complete(task)
			end.Group = map[string]string{"1": "g"}[task.ID]
			b.ended(end)
		}
		assert.Equal(t, store.EffectNone, b.remove("3", ""), "another one of the agent")
		assert.Equal(t, store.StatusCompleted, b.status("a", "1"))
		assert.Equal(t, store.EffectDone, b.remove("1", "g"))
		assert.Equal(t, store.GroupCounts{Completed: 1}, b.group("g"), "what was done stays done")
		assert.Zero(t, b.stats().Deleted)
		b.fresh()
		if several {
			assert.Equal(t, store.StatusCompleted, b.status("a", "2"))
			b.clock.Advance(time.Hour)
			assert.Equal(t, store.EffectNone, b.remove("2", ""), "it was forgotten before")
		}
	}
}

// testDeleteBoth deletes an id that has both a live task and an older record.
func testDeleteBoth(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"))
	b.complete(b.take("a/1"))
	b.submit(b.anew(task("a", "1")))
	assert.Equal(t, store.EffectDone, b.remove("1", ""))
	b.fresh()
}

// testDeleteAll deletes all tasks of an agent in some order: the agent goes with the last.
func testDeleteAll(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(within(task("a", "1"), time.Hour), within(task("a", "2"), time.Hour), task("a", "3"))
	b.take("a/3")
	for _, id := range []string{"2", "3", "1"} {
		assert.Equal(t, int64(1), b.stats().Agents)
		assert.Equal(t, store.EffectDone, b.remove(id, ""))
	}
	st := b.stats()
	assert.Zero(t, st.Agents+st.Waiting+st.InProgress+b.kind("k").Live+b.kind("k").Running)
	assert.Zero(t, st.NextDue)
	assert.Zero(t, b.look())
	b.fresh()
}
