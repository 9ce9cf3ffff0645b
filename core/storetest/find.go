package storetest

// The tasks of all agents at a place: dead letters, what runs, and what is overdue.

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/storetest/given"
	"github.com/seed-6f6f2c11/duly/core/storetest/whole"
)

// found are the tasks at a place as agent/id, however long the pages are.
func (b *sight) found(q store.Find) []string {
	b.Helper()
	var first []string
	for i, limit := range []int{1000, 2, 1} {
		q.Limit = limit
		names := []string{}
		for _, t := range whole.Find(b.T, b.store, q) {
			names = append(names, t.Agent+"/"+t.ID)
		}
		if i == 0 {
			first = names
		}
		require.Equal(b, first, names, "pages of %d", limit)
	}
	return first
}

// fail has some tasks fail, each in a millisecond of its own.
func (b *bench) fail(tasks ...store.Submission) {
	b.Helper()
	for _, s := range tasks {
		b.submit(s)
		c := b.claim(1)
		require.Len(b, c.Tasks, 1)
		require.NoError(b, b.settle(store.Settlement{Run: c.Tasks[0].Run, Verb: store.VerbFail, Record: []byte(s.ID)})[0].Err)
		b.clock.Advance(time.Millisecond)
	}
}

// testFindFailed asks for the dead letters of all agents: the last ones come first, and what is replayed, deleted or forgotten is none.
func testFindFailed(t *testing.T, b *bench) {
	b.with(Options{Kept: 3, Retention: time.Hour})
	failed := func() []string { return b.found(store.Find{Place: store.PlaceFailed}) }
	assert.Empty(t, failed())
	begun := b.now()
	b.fail(task("a", "1"), task("b", "1"), task("a", "2"), task("c:d", "1"))
	b.finish("fine", store.VerbComplete)
	b.finish("ended", store.VerbCancel)
	assert.Equal(t, []string{"c:d/1", "a/2", "b/1", "a/1"}, failed())
	all := whole.Find(t, b.store, store.Find{Place: store.PlaceFailed, Limit: 10})
	assert.Equal(t, store.StatusFailed, all[3].Status)
	assert.Equal(t, begun, all[3].Finished)
	assert.Equal(t, "1", string(all[3].Record))
	assert.Equal(t, []string{"a/2", "b/1"}, b.found(store.Find{Place: store.PlaceFailed, Since: begun + 1, Until: begun + 3}))
	assert.Empty(t, b.found(store.Find{Place: store.PlaceFailed, Since: begun + 4}))

	effects, err := b.store.Replay(t.Context(), []store.Replay{given.Replay(task("b", "1"))})
	require.NoError(t, err)
	require.Equal(t, store.EffectDone, effects[0].Code)
	assert.Equal(t, []string{"c:d/1", "a/2", "a/1"}, failed(), "what is replayed is none")
	b.fail() // nothing new
	c := b.claim(1)
	require.NoError(t, b.settle(store.Settlement{Run: c.Tasks[0].Run, Verb: store.VerbFail})[0].Err)
	b.clock.Advance(time.Millisecond)
	assert.Equal(t, []string{"b/1", "c:d/1", "a/2", "a/1"}, failed(), "it has failed again")
	require.Equal(t, store.EffectDone, b.drop("2"))
	assert.Equal(t, []string{"b/1", "c:d/1", "a/1"}, failed())

	b.fail(task("a", "3"), task("a", "4"), task("a", "5"))
	assert.Equal(t, []string{"a/5", "a/4", "a/3", "b/1", "c:d/1"}, failed(), "the oldest of an agent had to make room")
	b.clock.Advance(time.Hour)
	assert.Empty(t, failed())
}

// testFindRunning asks for all that runs: under which lease, and whose.
func testFindRunning(t *testing.T, b *bench) {
	b.with(Options{})
	running := func() []string { return b.found(store.Find{Place: store.PlaceRunning}) }
	assert.Empty(t, running())
	for i := range 5 { // ends of holds are among the leases
		b.hold(store.Target{Agent: fmt.Sprint("held", i)}, moment.When{At: b.now() + moment.Millis(1000*i) + 1})
	}
	b.submit(task("a", "1"), task("a", "2"), task("b", "1"), task("c", "1"))
	first := b.claim(3)
	b.clock.Advance(time.Second)
	second := b.claim(3)
	require.Len(t, first.Tasks, 3)
	require.Len(t, second.Tasks, 1)
	want := append(names(first), names(second)...)
	slices.Sort(want[:3])
	assert.Equal(t, want, running(), "those whose lease ends first come first")
	all := whole.Find(t, b.store, store.Find{Place: store.PlaceRunning, Limit: 2})
	got := b.one(all[3].Agent, all[3].ID)
	assert.Equal(t, got.Lease, all[3].Lease)
	assert.Equal(t, got.Holder, all[3].Holder)
	assert.NotEmpty(t, got.Holder)
	b.complete(first)
	assert.Equal(t, names(second), running())
}

// testFindOverdue asks for what is due and waits: of agents with one, with few and with many tasks.
func testFindOverdue(t *testing.T, b *bench) {
	b.with(Options{})
	overdue := func() []string { return b.found(store.Find{Place: store.PlaceOverdue}) }
	assert.Empty(t, overdue())
	var want []string
	add := func(agent string, n int) {
		for i := range n {
			id := fmt.Sprintf("%02d", i)
			b.submit(task(agent, id))
			want = append(want, agent+"/"+id)
			b.clock.Advance(time.Millisecond)
		}
	}
	add("one", 1)
	add("few", 3)
	add("many", 30)
	later := task("one", "later")
	later.Due = moment.When{At: b.now().Add(time.Hour)}
	b.submit(later, task("held", "1"))
	b.hold(store.Target{Agent: "held"}, moment.When{})
	b.claim(0)
	got := overdue()
	slices.Sort(got)
	slices.Sort(want)
	assert.Equal(t, append(want[:0:0], want...), slices.DeleteFunc(got, func(name string) bool { return name == "held/1" }), "held tasks leave when a claim comes by")
	b.complete(b.claim(1))
	assert.Len(t, slices.DeleteFunc(overdue(), func(name string) bool { return name == "held/1" }), len(want)-1, "one had its turn")
	page, err := b.store.Find(t.Context(), store.Find{Place: store.PlaceOverdue, Limit: 1})
	require.NoError(t, err)
	require.Len(t, page.Tasks, 1)
	assert.LessOrEqual(t, page.Tasks[0].Due, page.Now)
}

// testFindAwaiting asks for the tasks of all agents that wait for signals: those whose signals have come, that run or have ended are none.
func testFindAwaiting(t *testing.T, b *bench) {
	b.with(Options{})
	awaiting := func() []string { return b.found(store.Find{Place: store.PlaceAwaiting}) }
	assert.Empty(t, awaiting())
	b.submit(task("a", "1"), task("a", "2:x/y"), task("b", "1"), task("c:d", "1"), task("c:d", "2"), task("e", "1"))
	for _, c := range b.claim(6).Tasks {
		if c.Agent != "e" {
			b.awaits(&c, "k:1", false)
		}
	}
	assert.ElementsMatch(t, []string{"a/1", "a/2:x/y", "b/1", "c:d/1", "c:d/2"}, awaiting())
	out, err := b.store.Signal(t.Context(), []store.Signal{{Agent: "a", Key: "k:1", ID: "2:x/y", Payload: []byte("yes")}})
	require.NoError(t, err)
	assert.Equal(t, store.SignalResumed, out[0].Code, "an answer to one wait finds it by the whole of its id")
	assert.ElementsMatch(t, []string{"a/1", "b/1", "c:d/1", "c:d/2"}, awaiting(), "it has its answer, and has not run yet")
	assert.Equal(t, store.EffectDone, b.delete(task("c:d", "1")).Code)
	assert.ElementsMatch(t, []string{"a/1", "b/1", "c:d/2"}, awaiting())
}

// testFindCursor refuses what is no cursor of such a page.
func testFindCursor(t *testing.T, b *bench) {
	b.with(Options{})
	for _, place := range []store.Place{store.PlaceFailed, store.PlaceRunning, store.PlaceOverdue, store.PlaceAwaiting} {
		for _, cursor := range []string{"x", "1.2.3", "1.99.YQ.", "-1.0.YQ.", "1.0..", "1|2", "9007199254740993.0.YQ.", "1.0.!.", "1|0|0|0|9|9|x"} {
			_, err := b.store.Find(t.Context(), store.Find{Place: place, After: cursor, Limit: 1})
			assert.ErrorAs(t, err, new(*store.InvalidError), cursor)
		}
	}
}
