package storetest

// Replacing a live task.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// refused demands that a call is refused because a task of agent a already exists.
func (b *bench) refused(id string, tasks ...store.Submission) {
	b.Helper()
	_, err := b.store.Submit(b.Context(), tasks)
	var conflict *store.ConflictError
	require.ErrorAs(b, err, &conflict)
	assert.Equal(b, [2]string{"a", id}, [2]string{conflict.Agent, conflict.ID})
}

// failing is a task whose submit fails if it exists.
func failing(agent, id string) store.Submission {
	s := task(agent, id)
	s.Conflict = store.ConflictFail
	return s
}

// replacing is a new definition of task a/1, in all respects, that was seen as it is now.
// Every field differs, so that one that is not replaced shows.
func (b *bench) replacing() store.Submission {
	b.Helper()
	return store.Submission{
		Agent: "a", ID: "1", Kind: "new", Group: "h", OldGroup: "g", Key: "other", Level: store.LevelHigh, Body: []byte("new body"),
		State: []byte("new state"), Conflict: store.ConflictReplace, Version: b.one("a", "1").Version,
	}
}

// anew is a task that replaces one as it is now.
func (b *bench) anew(s store.Submission) store.Submission {
	b.Helper()
	s.Conflict, s.Version = store.ConflictReplace, b.one(s.Agent, s.ID).Version
	return s
}

// claimAny claims tasks of the old and the new kind.
func (b *bench) claimAny() store.Claim {
	b.Helper()
	r := b.request(10)
	r.Kinds = []string{"k", "new"}
	return b.claimWith(r)
}

// testReplaceWaiting replaces a task in each place: everything is new but its
// id, its time of submit and its holds.
func testReplaceWaiting(t *testing.T, b *bench) {
	for _, p := range places() {
		for _, due := range []time.Duration{0, time.Minute, 2 * time.Hour} {
			b.stand(p)
			submitted := b.now()
			b.clock.Advance(time.Second)
			s := within(b.replacing(), due)
			assert.Equal(t, []store.Submitted{{Replaced: true, Due: b.now().Add(due)}}, b.submit(s), p.name)
			got := b.one("a", "1")
			assert.NotEqual(t, s.Version, got.Version, p.name)
			got.Version, got.Ahead = "", 0
			want := store.Stored{
				Agent: "a", ID: "1", Status: store.StatusWaiting, Kind: "new", Key: "other", Level: store.LevelHigh,
				Due: b.now().Add(due), Submitted: submitted, Updated: b.now(), Body: s.Body, State: s.State, Holds: got.Holds,
			}
			assert.Equal(t, want, got, p.name)
			// A pause is an operator's, and outlives a new definition.
			assert.Equal(t, p.name == "held", len(got.Holds) == 1, "%s: a hold of the task stays", p.name)
			b.replaced(p)

			b.unhold(holdable[0])
			b.clock.Advance(max(due-time.Millisecond, 0))
			if due > 0 {
				assert.NotContains(t, names(b.claimAny()), "a/1", p.name)
				b.clock.Advance(time.Millisecond)
			}
			c := b.claimAny()
			require.Contains(t, names(c), "a/1", p.name)
			assert.Equal(t, []byte("new body"), c.Tasks[0].Body, p.name)
			assert.Equal(t, []byte("new state"), c.Tasks[0].State, p.name)
		}
	}
}

// replaced checks the counters once a/1 was replaced.
func (b *bench) replaced(p place) {
	b.Helper()
	st := b.stats()
	others := int64(0)
	if p.several {
		others = 1
	}
	assert.Equal(b, [5]int64{1 + others, 0, 0, 1 + others, 1}, [5]int64{st.Waiting, st.Parked, st.Held, st.Submitted, st.Agents}, p.name)
	assert.Equal(b, [2]int64{others, 1}, [2]int64{b.kind("k").Live, b.kind("new").Live}, p.name)
	assert.Equal(b, store.GroupCounts{}, b.group("g"), p.name)
	assert.Equal(b, store.GroupCounts{Live: 1}, b.group("h"), p.name)
}

// What was known of a task, or ordered for it, is not for the one that replaces it.
// A new definition that began as a suspect, or as cancelled, would not be new.
func testReplaceForgets(t *testing.T, b *bench) {
	replace := func() {
		s := task("a", "1")
		s.Conflict, s.Version = store.ConflictReplace, b.one("a", "1").Version
		assert.True(t, b.submit(s)[0].Replaced)
	}
	b.with(Options{})
	first := task("a", "1")
	first.State = []byte("old")
	b.submit(first)
	b.take("a/1")
	require.Equal(t, store.EffectOrdered, b.cancelled(b.cancel()).Code)
	b.hold(store.Target{}, moment.When{})
	b.clock.Advance(lease)
	b.quiet(0, "crashed, told to end, and everything is held")
	assert.Equal(t, 1, b.one("a", "1").Crashes)
	replace()
	b.unhold(store.Target{})
	c := b.take("a/1")
	assert.Equal(t, [3]any{0, []byte(nil), false}, [3]any{c.Tasks[0].Crashes, c.Tasks[0].State, c.Tasks[0].Cancelled})

	b.ended(again(c.Tasks[0], time.Hour))
	b.hold(holdable[0], moment.When{})
	b.run("a", "1", false)
	replace()
	b.quiet(0, "the order to run it was for the old one")
}

// testReplaceDue replaces a due time by an earlier and by a later one.
func testReplaceDue(t *testing.T, b *bench) {
	for _, several := range []bool{false, true} {
		b.with(Options{})
		b.submit(within(task("a", "1"), time.Minute))
		if several {
			b.submit(within(task("a", "2"), 24*time.Hour))
		}
		replace := func(due time.Duration) {
			s := within(task("a", "1"), due)
			s.Conflict, s.Version = store.ConflictReplace, b.one("a", "1").Version
			b.submit(s)
		}
		replace(time.Second)
		assert.Equal(t, b.now().Add(time.Second), b.look(), "earlier")
		replace(time.Hour)
		b.clock.Advance(time.Minute)
		c := b.claim(10)
		assert.Empty(t, c.Tasks, "later")
		assert.Equal(t, b.now().Add(59*time.Minute), b.claim(10).NextDue)
		b.clock.Advance(59 * time.Minute)
		b.take("a/1")
	}
}

// testReplaceOrder replaces levels: the tasks run in the order of the new ones.
func testReplaceOrder(t *testing.T, b *bench) {
	b.with(Options{})
	at := func(id string, level store.Level) store.Submission {
		s := task("a", id)
		s.Level = level
		return s
	}
	b.submit(at("1", 3), at("2", 2), at("3", 3), at("4", 2))
	for id, level := range map[string]store.Level{"3": 1, "2": 3} {
		s := at(id, level)
		s.Conflict, s.Version = store.ConflictReplace, b.one("a", id).Version
		b.submit(s)
	}
	b.take("a/3", "a/4", "a/1", "a/2")
}

// testReplaceChanged replaces what was read before it changed: refused, with
// nothing stored, in each way to call.
func testReplaceChanged(t *testing.T, b *bench) {
	b.with(Options{Partitions: 4})
	b.submit(keyed(), within(task("a", "2"), time.Hour))
	changed := func(s store.Submission, why string) {
		t.Helper()
		before := b.one(s.Agent, s.ID)
		for _, call := range [][]store.Submission{{s}, {task("a", "new"), s}, {s, task("b", "new"), task("c", "new")}} {
			_, err := b.store.Submit(b.Context(), call)
			require.ErrorIs(t, err, store.ErrChanged, why)
		}
		assert.Equal(t, before, b.one(s.Agent, s.ID), why)
		assert.Equal(t, int64(2), b.stats().Submitted, why)
	}
	seen := b.replacing()
	stale := seen
	stale.Version = "x"
	changed(stale, "not its version")
	stale.Version = ""
	changed(stale, "it was not there")
	stale = seen
	stale.ID = "3"
	changed(stale, "it is gone")
	for _, differ := range []func(s *store.Submission){
		func(s *store.Submission) { s.Kind = "other" }, func(s *store.Submission) { s.Key = "other" },
		func(s *store.Submission) { s.Level = store.LevelHigh }, func(s *store.Submission) { s.Body = []byte("other") },
		func(s *store.Submission) { s.State = []byte("other") },
	} {
		s := keyed()
		s.Conflict, s.Version = store.ConflictReplace, b.one("a", "1").Version
		differ(&s)
		b.submit(s)
		stale.ID, stale.Version = "1", s.Version
		changed(stale, "replaced by another")
	}
}

// testReplaceTogether replaces tasks among new ones, in one call over several partitions.
func testReplaceTogether(t *testing.T, b *bench) {
	b.with(Options{Partitions: 4})
	b.submit(task("a", "1"), task("b", "1"))
	var call []store.Submission
	for _, agent := range []string{"a", "b"} {
		s := task(agent, "1")
		s.Body, s.Conflict, s.Version = []byte("new"), store.ConflictReplace, b.one(agent, "1").Version
		call = append(call, task(agent, "2"), s, failing(agent, "3"))
	}
	for i, p := range b.submit(call...) {
		assert.Equal(t, [2]bool{i%3 != 1, i%3 == 1}, [2]bool{p.Created, p.Replaced})
	}
	for _, agent := range []string{"a", "b"} {
		r := b.request(10)
		r.Partition = store.PartitionOf(agent, 4)
		r.Agents = []string{agent}
		c := b.claimWith(r)
		assert.Equal(t, []string{agent + "/1", agent + "/2", agent + "/3"}, names(c))
		assert.Equal(t, []byte("new"), c.Tasks[0].Body)
	}
}

// runReplaced replaces a/1 of group g while it runs.
func (b *bench) runReplaced(several bool) store.Claim {
	b.Helper()
	b.with(Options{})
	s := task("a", "1")
	s.Group = "g"
	b.submit(s)
	if several {
		b.submit(within(task("a", "2"), 24*time.Hour))
	}
	c := b.take("a/1")
	s = within(b.replacing(), time.Hour)
	assert.Equal(b, []store.Submitted{{Replaced: true, Due: b.now().Add(time.Hour)}}, b.submit(s))
	assert.Equal(b, [2]int64{1, 1}, [2]int64{b.kind("new").Live, b.kind("new").Running})
	assert.Zero(b, b.kind("k").Running)
	assert.Equal(b, store.GroupCounts{Live: 1}, b.group("h"))
	return c
}

// testReplaceRunning replaces a task that runs: its run continues, and its outcome
// counts only if it knows the new definition.
func testReplaceRunning(t *testing.T, b *bench) {
	for _, several := range []bool{false, true} {
		c := b.runReplaced(several)
		assert.Equal(t, store.Extended{Held: true}, b.extend(c.Fence), "the run is not disturbed")
		before := b.stats()
		for _, verb := range []store.Verb{store.VerbComplete, store.VerbFail, store.VerbCancel, store.VerbAgain, store.VerbRelease, store.VerbRest} {
			s := again(c.Tasks[0], 0)
			s.Verb, s.State, s.Group, s.Tally = verb, []byte("changed"), "h", &store.RunStat{Kind: "k"}
			assert.ErrorIs(t, b.settle(s)[0].Err, store.ErrReplaced)
		}
		assert.Equal(t, before, b.stats())
		got := b.one("a", "1")
		assert.Equal(t, store.StatusInProgress, got.Status)
		assert.Nil(t, got.State, "a refused settlement changes nothing")
		assert.Nil(t, got.Order, "nobody told it to end")
		due := b.now().Add(time.Hour)
		b.clock.Advance(time.Second)
		s := again(c.Tasks[0], 0)
		s.State, s.Renewed, s.Tally = []byte("both"), true, &store.RunStat{Kind: "k"}
		assert.Equal(t, due, b.ended(s), "when the replacement said")
		assert.Equal(t, [2]int64{1, 0}, [2]int64{b.kind("new").Live, b.kind("new").Running})
		b.clock.Advance(time.Hour)
		c = b.claimAny()
		require.Equal(t, []string{"a/1"}, names(c))
		assert.Equal(t, [2]string{"new body", "both"}, [2]string{string(c.Tasks[0].Body), string(c.Tasks[0].State)})
		b.ended(complete(c.Tasks[0]))
		assert.Zero(t, b.kind("new").Live)
	}
}

// testReplaceCrash kills the process of a run that was replaced: the new
// definition starts afresh, at its own time.
func testReplaceCrash(t *testing.T, b *bench) {
	for _, several := range []bool{false, true} {
		c := b.runReplaced(several)
		b.clock.Advance(lease)
		dead := b.claimAny()
		assert.Empty(t, dead.Tasks)
		assert.Equal(t, 1, dead.Recovered)
		assert.ErrorIs(t, b.settle(complete(c.Tasks[0]))[0].Err, store.ErrLeaseLost)
		b.clock.Advance(time.Hour - lease)
		c = b.claimAny()
		require.Equal(t, []string{"a/1"}, names(c))
		got := c.Tasks[0]
		assert.Equal(t, [3]any{"new", "new state", 0}, [3]any{got.Kind, string(got.State), got.Crashes})
		assert.Equal(t, [2]int64{1, 1}, [2]int64{b.kind("new").Live, b.kind("new").Running})
		b.ended(again(got, 0))
	}
}

// testReplaceCancelled cancels a task that was replaced while it ran.
func testReplaceCancelled(t *testing.T, b *bench) {
	c := b.runReplaced(false)
	require.Equal(t, store.EffectOrdered, b.cancelled(b.cancel()).Code)
	b.settleCancelled(c.Tasks[0])
	b.ended(store.Settlement{Run: c.Tasks[0].Run, Kind: c.Tasks[0].Kind, Verb: store.VerbCancel, Group: "h"})
	for _, kind := range []string{"k", "new"} {
		assert.Zero(t, b.kind(kind).Live+b.kind(kind).Running, kind)
	}
	assert.Equal(t, store.GroupCounts{Cancelled: 1}, b.group("h"))
}

// testReplaceFinished replaces a task that has ended: a new task, listed once.
func testReplaceFinished(t *testing.T, b *bench) {
	b.with(Options{})
	s := task("a", "1")
	s.Group = "g"
	b.submit(s)
	live := b.one("a", "1").Version
	end := complete(b.take("a/1").Tasks[0])
	end.Group = "g"
	b.ended(end)
	b.clock.Advance(time.Second)
	anew := b.replacing()
	for _, seen := range []string{"", live, anew.Version + "0"} { // nobody undoes an end that they have not seen
		unseen := anew
		unseen.Version = seen
		_, err := b.store.Submit(t.Context(), []store.Submission{unseen})
		require.ErrorIs(t, err, store.ErrChanged, seen)
	}
	assert.Equal(t, []store.Submitted{{Created: true, Due: b.now()}}, b.submit(anew))
	got := b.one("a", "1")
	assert.Equal(t, [2]moment.Millis{b.now(), b.now()}, [2]moment.Millis{got.Due, got.Submitted})
	assert.Equal(t, store.GroupCounts{Completed: 1}, b.group("g"))
	assert.Equal(t, store.GroupCounts{Live: 1}, b.group("h"))
	c := b.claimAny()
	assert.Equal(t, []byte("new state"), c.Tasks[0].State)
	page, err := b.store.List(b.Context(), store.List{Agent: "a", Limit: 10})
	require.NoError(t, err)
	assert.Len(t, page.Tasks, 1, "it is listed once, as what it is now")
	assert.Equal(t, store.StatusInProgress, page.Tasks[0].Status)
}

// testReplaceFirst has an agent's only task replaced, with another level, by the call that also makes a
// task that replaces nothing: each exists once.
func testReplaceFirst(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"))
	other, same := task("a", "2"), task("a", "1")
	other.Conflict = store.ConflictReplace
	same.Conflict, same.Version, same.Level = store.ConflictReplace, b.one("a", "1").Version, store.LevelHigh
	placed := b.submit(other, same)
	assert.Equal(t, [2]bool{true, true}, [2]bool{placed[0].Created, placed[1].Replaced})
	page, err := b.store.List(t.Context(), store.List{Agent: "a", Limit: 10})
	require.NoError(t, err)
	assert.Len(t, page.Tasks, 2)
	b.take("a/1", "a/2")
	assert.Empty(t, names(b.claim(10)), "each runs once")
}

// testReplaceSeveral replaces several tasks of an agent with few in one call: the first, which gets another level, gives the agent queues,
// and those that are replaced after it must not wait there as what they were.
func testReplaceSeveral(t *testing.T, b *bench) {
	for _, level := range []store.Level{store.LevelHigh, task("a", "1").Level} {
		b.with(Options{})
		b.submit(task("a", "1"), task("a", "2"), task("a", "3"))
		var all []store.Submission
		for _, id := range []string{"1", "2", "3"} {
			s := task("a", id)
			s.Conflict, s.Version = store.ConflictReplace, b.one("a", id).Version
			s.Due.After = time.Second
			all = append(all, s)
		}
		all[0].Level, all[1].Level, all[2].Level = store.LevelHigh, level, level
		b.submit(all...)
		b.audited()
		assert.Equal(t, b.now().Add(time.Second), b.agents(10)[0].Due)
		assert.Empty(t, names(b.claim(10)))
		b.clock.Advance(time.Second)
		c := b.claim(10)
		assert.ElementsMatch(t, []string{"a/1", "a/2", "a/3"}, names(c))
		assert.Empty(t, names(b.claim(10)))
		b.complete(c)
		b.audited()
		assert.Zero(t, b.stats().Waiting)
		assert.Empty(t, names(b.claim(10)))
	}
}
