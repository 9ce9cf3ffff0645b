package storetest

// When a task last changed.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/storetest/whole"
)

// changes checks that task a/1 has changed now, in whatever way it is read, and lets a minute pass.
func (b *sight) changes(why string) {
	b.Helper()
	t := b.one("a", "1")
	assert.Equal(b, b.now(), t.Updated, why)
	page, err := b.store.List(b.Context(), store.List{Agent: "a", Limit: 100})
	assert.NoError(b, err)
	for i := range page.Tasks {
		if page.Tasks[i].ID == "1" {
			assert.Equal(b, t.Updated, page.Tasks[i].Updated, "%s: a list says the same", why)
		}
	}
	for _, listed := range whole.Find(b.T, b.store, store.Find{Place: store.PlaceRunning, Limit: 100}) {
		if listed.ID == "1" {
			assert.Equal(b, t.Updated, listed.Updated, "%s: a list of all agents says the same", why)
		}
	}
	b.clock.Advance(time.Minute)
}

// testUpdated follows a task through all that can happen to it: each is its last change, also that of one which is not alone, and what happens to
// others is none.
func testUpdated(t *testing.T, b *bench) {
	for _, others := range []int{0, 1, 40} {
		b.with(Options{})
		for i := range others {
			b.submit(within(task("a", "other"+string(rune('A'+i))), 240*time.Hour))
		}
		b.submit(within(task("a", "1"), 24*time.Hour))
		b.changes("submitted")
		target := store.Target{Agent: "a", ID: "1"}
		b.hold(target, moment.When{})
		b.changes("paused")
		b.unhold(target)
		b.changes("resumed")
		b.hold(store.Target{Agent: "a"}, moment.When{})
		assert.Less(t, b.one("a", "1").Updated, b.now(), "its agent was paused")
		b.unhold(store.Target{Agent: "a"})

		seen := b.one("a", "1")
		edited := task("a", "1")
		edited.Conflict, edited.Version, edited.Body = store.ConflictReplace, seen.Version, []byte("new")
		b.submit(within(edited, time.Hour))
		b.changes("replaced")
		assert.Equal(t, seen.Submitted, b.one("a", "1").Submitted)
		b.run("a", "1", false)
		b.changes("told to run")
		b.updatedByRuns(t)
	}
}

// updatedByRuns goes on with what runs do to a task.
func (b *bench) updatedByRuns(t *testing.T) {
	c := b.take("a/1")
	b.changes("claimed")
	b.extend(c.Fence, store.Progress{Run: c.Tasks[0].Run, State: []byte("half")})
	b.changes("its run has stored progress")
	b.run("a", "1", true)
	b.changes("told to run once more")
	settled := again(c.Tasks[0], time.Hour)
	settled.State = []byte("state")
	b.settle(settled)
	assert.Less(t, b.one("a", "1").Updated, b.now(), "the state says when its run ended")
	version := b.one("a", "1").Version
	b.hold(store.Target{Agent: "a", ID: "1"}, moment.When{})
	assert.Equal(t, version, b.one("a", "1").Version, "a pause is no other definition")
	assert.Equal(t, []byte("state"), b.one("a", "1").State)
	b.unhold(store.Target{Agent: "a", ID: "1"})

	b.clock.Advance(2 * time.Hour)
	c = b.take("a/1")
	r := again(c.Tasks[0], 0)
	r.Verb = store.VerbRelease
	b.settle(r)
	b.changes("given back")
	b.take("a/1")
	b.clock.Advance(2 * time.Hour)
	c = b.claim(1)
	assert.Equal(t, 1, c.Tasks[0].Crashes)
	assert.Equal(t, []byte("state"), c.Tasks[0].State)
	b.changes("claimed after its process has died")
	assert.Equal(t, store.EffectOrdered, b.cancelled(store.Cancellation{Agent: "a", ID: "1", Order: []byte("stop")}).Code)
	b.changes("told to end")
	end := again(c.Tasks[0], 0)
	end.Verb, end.Record = store.VerbCancel, []byte("record")
	b.settle(end)
	b.changes("ended")
}

// testUpdatedBySignals is that for what a task waits for, and for its profile.
func testUpdatedBySignals(_ *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"))
	c := b.take("a/1")
	b.awaits(&c.Tasks[0], "key", false)
	b.changes("waits for a signal")
	b.signal("key", "payload")
	b.changes("was told a signal")
	t := b.one("a", "1")
	effect := b.effect(b.store.Replan(b.Context(), []store.Replan{{Agent: "a", ID: "1", Version: t.Version, Was: t.Due, Due: b.now().Add(time.Hour), State: []byte("put off")}}))
	assert.Equal(b, store.EffectDone, effect.Code)
	b.changes("planned again")
}

// testLastActivity follows an activity task: each touch is its last activity, whatever becomes of it, and a change.
func testLastActivity(t *testing.T, b *bench) {
	for _, several := range []bool{false, true} {
		c := b.active(several)
		touched := b.one("a", "1").LastActivity
		assert.Equal(t, b.now()-moment.Millis(time.Minute.Milliseconds()), touched, "it is of the touch, not of the claim")
		b.clock.Advance(time.Second)
		b.touch(pulse("a", "1"))
		assert.Equal(t, b.now(), b.one("a", "1").LastActivity, "while it runs")
		assert.Equal(t, b.now(), b.one("a", "1").Updated, "while it runs")
		touched = b.one("a", "1").LastActivity
		b.settle(rested(c.Tasks[0], 0, pulse("a", "1").Pulse))
		assert.Equal(t, touched, b.one("a", "1").LastActivity, "a run is no activity")
		b.clock.Advance(time.Second)
		b.touch(pulse("a", "1"))
		assert.Equal(t, b.now(), b.one("a", "1").LastActivity, "while a run is booked")
		b.clock.Advance(2 * time.Minute)
		c = b.take("a/1")
		touched = b.one("a", "1").LastActivity
		b.settle(rested(c.Tasks[0], 0, pulse("a", "1").Pulse))
		assert.True(t, b.one("a", "1").Resting)
		b.clock.Advance(time.Second)
		b.run("a", "1", false)
		assert.Equal(t, touched, b.one("a", "1").LastActivity, "an order is no activity")
		assert.False(t, b.one("a", "1").Resting, "but it ends the rest")
		c = b.take("a/1")
		b.settle(rested(c.Tasks[0], 0, pulse("a", "1").Pulse))
		b.clock.Advance(time.Second)
		b.touch(pulse("a", "1"))
		b.changes("touched while it rests")
		assert.Zero(t, b.read("a", "2")[0].LastActivity)
	}
}
