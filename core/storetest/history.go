package storetest

// Finished tasks: how many are kept, and for how long.

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/storetest/given"
)

// finish takes a task of agent a from its submit to its end. Each ends in a millisecond of its own.
// The millisecond makes the order of ends certain.
func (b *bench) finish(id string, verb store.Verb) {
	b.Helper()
	require.True(b, b.submit(task("a", id))[0].Created)
	c := b.claim(1)
	require.Len(b, c.Tasks, 1)
	require.NoError(b, b.settle(store.Settlement{Run: c.Tasks[0].Run, Verb: verb, Record: []byte("record of " + id)})[0].Err)
	b.clock.Advance(time.Millisecond)
}

// kept are the ids of agent a's tasks that a listing shows.
// A listing has records only: what was dropped is known by its id alone.
func (b *sight) kept() []string {
	b.Helper()
	page, err := b.store.List(b.Context(), store.List{Agent: "a", Limit: 1000})
	require.NoError(b, err)
	ids := []string{}
	for _, s := range page.Tasks {
		ids = append(ids, s.ID)
	}
	return ids
}

// drop deletes a task of agent a.
func (b *desk) drop(id string) store.EffectCode {
	b.Helper()
	return b.delete(task("a", id)).Code
}

// testKept finishes more tasks than are kept: the oldest go, dead letters are
// counted apart, and each loss is counted.
func testKept(t *testing.T, b *bench) {
	b.with(Options{Kept: 3})
	b.finish("dead", store.VerbFail)
	for i := range 6 {
		b.finish(fmt.Sprint(i), store.VerbComplete)
		assert.Zero(t, b.stats().LastTrimmed*moment.Millis(max(3-i, 0)), "nothing is dropped while there is room")
	}
	// Otherwise a busy agent would push out the failures that somebody has yet to look at.
	assert.Equal(t, []string{"3", "4", "5", "dead"}, b.kept(), "a dead letter is not pushed out by what went well")
	st := b.stats()
	assert.Equal(t, int64(3), st.Trimmed, "what is dropped is counted")
	assert.Equal(t, b.now()-1, st.LastTrimmed)
	for i := range 3 {
		b.finish(fmt.Sprint("dead", i), store.VerbFail)
	}
	assert.Equal(t, []string{"3", "4", "5", "dead0", "dead1", "dead2"}, b.kept(), "nor the other way round")
	assert.Equal(t, int64(4), b.stats().Trimmed)
}

// finishLarge is finish with a record of some KiB.
// Large records are those of 4 KiB and more.
func (b *bench) finishLarge(id string, verb store.Verb, kib int) {
	b.Helper()
	b.submit(task("a", id))
	c := b.claim(1)
	require.Len(b, c.Tasks, 1)
	require.NoError(b, b.settle(store.Settlement{Run: c.Tasks[0].Run, Verb: verb, Record: make([]byte, kib<<10)})[0].Err)
	b.clock.Advance(time.Millisecond)
}

// testKeptBytes has large records: they are bounded by their bytes, and the newest stays in any case.
func testKeptBytes(t *testing.T, b *bench) {
	b.with(Options{KeptBytes: 100 << 10})
	b.finish("small", store.VerbFail)
	for i := range 10 {
		b.finishLarge(fmt.Sprint("dead", i), store.VerbFail, 30)
		b.finishLarge(fmt.Sprint("done", i), store.VerbComplete, 3)
	}
	want := []string{"dead7", "dead8", "dead9"}
	for i := range 10 {
		want = append(want, fmt.Sprint("done", i))
	}
	assert.ElementsMatch(t, want, b.kept(), "the oldest went first, also the small one; what is small weighs nothing")
	assert.Equal(t, int64(8), b.stats().Trimmed)
	assert.True(t, b.read("a", "dead0")[0].Dropped, "how it ended stays known")
	// One record larger than the limit pushes out all others, and stays.
	b.finishLarge("huge", store.VerbFail, 200)
	assert.Contains(t, b.kept(), "huge", "the newest stays however large it is")
	assert.NotContains(t, b.kept(), "dead9")
	b.finishLarge("next", store.VerbFail, 5)
	assert.NotContains(t, b.kept(), "huge")
	assert.Contains(t, b.kept(), "next")
}

// testKeptBytesDeleted deletes large records: they make room again, so that
// nothing is dropped for want of it.
func testKeptBytesDeleted(t *testing.T, b *bench) {
	b.with(Options{KeptBytes: 100 << 10, Retention: time.Hour})
	b.finish("small", store.VerbFail)
	for i := range 20 {
		id := fmt.Sprint(i)
		b.finishLarge(id, store.VerbFail, 60)
		assert.ElementsMatch(t, []string{id, "small"}, b.kept())
		require.Equal(t, store.EffectDone, b.drop(id))
	}
	b.finishLarge("again", store.VerbFail, 60)
	_, err := b.store.Replay(t.Context(), []store.Replay{given.Replay(task("a", "again"))})
	require.NoError(t, err)
	require.NoError(t, b.settle(store.Settlement{Run: b.claim(1).Tasks[0].Run, Verb: store.VerbFail})[0].Err)
	b.finishLarge("last", store.VerbFail, 60)
	assert.ElementsMatch(t, []string{"again", "last", "small"}, b.kept())
	assert.Zero(t, b.stats().Trimmed)
}

// Several times as many records as any store looks at in one step.
// Stores look at a bounded number in each step; nothing may be dropped, or listed, because of that.
func testKeptWhole(t *testing.T, b *bench) {
	b.with(Options{Kept: 250})
	var want []string
	for from := 0; from < 250; from += 50 {
		for i := from; i < from+50; i++ {
			want = append(want, fmt.Sprintf("%03d", i))
			b.submit(task("a", want[i]))
		}
		b.complete(b.claim(50))
		b.clock.Advance(time.Second)
	}
	assert.Equal(t, want, b.kept())
	assert.Zero(t, b.stats().Trimmed)
	for i := range 60 {
		b.finish(fmt.Sprintf("x%02d", i), store.VerbComplete)
	}
	st := b.stats()
	// A store may cut many at a time, which costs less.
	assert.InDelta(t, 60, st.Trimmed, 2, "a hundredth more may be kept")
	kept := b.kept()
	assert.Len(t, kept, 310-int(st.Trimmed))
	assert.Equal(t, want[st.Trimmed], kept[0], "the oldest go first")
}

// testDroppedIsKnown asks for tasks whose records had to go: their end is known,
// and the same submit changes nothing.
func testDroppedIsKnown(t *testing.T, b *bench) {
	b.with(Options{Kept: 1})
	ends := map[string]moment.Millis{}
	for id, verb := range map[string]store.Verb{"done": store.VerbComplete, "dead": store.VerbFail, "off": store.VerbCancel} {
		ends[id] = b.now()
		b.finish(id, verb)
		b.finish("after "+id, verb)
	}
	b.finish("last", store.VerbComplete)
	b.clock.Advance(23 * time.Hour)
	for id, status := range map[string]store.Status{
		"done": store.StatusCompleted, "dead": store.StatusFailed, "off": store.StatusCancelled,
	} {
		want := store.Stored{Agent: "a", ID: id, Status: status, Finished: ends[id], Dropped: true, Updated: ends[id], Version: strconv.FormatInt(int64(ends[id]), 10)}
		assert.Equal(t, want, b.read("a", id)[0], "its end is all that is known")
		assert.Equal(t, store.Submitted{}, b.submit(task("a", id))[0], "the same submit changes nothing")
		again := task("a", id)
		again.Conflict = store.ConflictFail
		_, err := b.store.Submit(b.Context(), []store.Submission{again})
		require.ErrorAs(t, err, new(*store.ConflictError))
		assert.NotContains(t, b.kept(), id, "a listing has records only")
		assert.Empty(t, b.read("b", id)[0].Status, "another agent's is another task")
	}
	// A dead letter without its record has no payload to run with.
	effects, err := b.store.Replay(b.Context(), []store.Replay{given.Replay(task("a", "dead"))})
	require.NoError(t, err)
	assert.Zero(t, effects[0].Code, "there is nothing left to replay")
	assert.Equal(t, store.StatusFailed, b.status("a", "dead"))
}

// testDroppedIsForgotten waits until the id of a dropped task is forgotten: after a
// day, or the retention if that is shorter.
func testDroppedIsForgotten(t *testing.T, b *bench) {
	for _, c := range []struct{ retention, known time.Duration }{{0, store.KnownFor}, {time.Hour, time.Hour}} {
		b.with(Options{Kept: 1, Retention: c.retention})
		b.finish("first", store.VerbComplete)
		b.finish("second", store.VerbComplete)
		b.clock.Advance(c.known - 3*time.Millisecond)
		assert.Equal(t, store.StatusCompleted, b.status("a", "first"))
		b.clock.Advance(time.Millisecond)
		assert.Empty(t, b.status("a", "first"), "after %s", c.known)
		assert.True(t, b.submit(task("a", "first"))[0].Created, "its id is free again")
	}
}

// testDroppedBeginsAgain deletes and replaces tasks whose records were dropped.
func testDroppedBeginsAgain(t *testing.T, b *bench) {
	b.with(Options{Kept: 1})
	b.finish("first", store.VerbComplete)
	b.finish("second", store.VerbComplete)
	assert.Equal(t, store.EffectDone, b.drop("first"))
	assert.Empty(t, b.status("a", "first"))
	assert.Equal(t, store.EffectNone, b.drop("first"))

	b.finish("third", store.VerbComplete)
	require.True(t, b.read("a", "second")[0].Dropped)
	again := b.anew(task("a", "second"))
	assert.True(t, b.submit(again)[0].Created)
	assert.Equal(t, store.StatusWaiting, b.status("a", "second"))
	assert.Equal(t, store.EffectDone, b.drop("second"))
	assert.Empty(t, b.status("a", "second"), "a deleted task is not known by its end before")
	b.finish("second", store.VerbFail)
	assert.Equal(t, store.StatusFailed, b.status("a", "second"))
	assert.Equal(t, []byte("record of second"), b.read("a", "second")[0].Record)
}

// Records that go in another way than by their age or number leave the places of others alone.
// A store may keep deleted records in its index for a while; they must not count.
func testDeletedMakesRoom(t *testing.T, b *bench) {
	b.with(Options{Kept: 4})
	for i := range 4 {
		b.finish(fmt.Sprint(i), store.VerbComplete)
	}
	require.Equal(t, store.EffectDone, b.drop("1"))
	again := b.anew(task("a", "2"))
	require.True(t, b.submit(again)[0].Created)
	b.complete(b.claim(1))
	b.clock.Advance(time.Millisecond)
	b.finish("4", store.VerbComplete)
	assert.Equal(t, []string{"0", "2", "3", "4"}, b.kept())
	assert.Zero(t, b.stats().Trimmed, "there was room")
	b.finish("5", store.VerbComplete)
	b.finish("6", store.VerbComplete)
	assert.Equal(t, []string{"2", "4", "5", "6"}, b.kept(), "the later end of 2 counts")
	for i := range 3 { // fewer than are indexed, then more
		require.Equal(t, store.EffectDone, b.drop(fmt.Sprint(4+i)))
	}
	for i := range 5 {
		b.finish(fmt.Sprint("new", i), store.VerbComplete)
	}
	assert.Equal(t, []string{"new1", "new2", "new3", "new4"}, b.kept())
	assert.Equal(t, int64(4), b.stats().Trimmed)

	for i := range 4 {
		b.finish(fmt.Sprint("dead", i), store.VerbFail)
	}
	effects, err := b.store.Replay(b.Context(), []store.Replay{given.Replay(task("a", "dead0"))})
	require.NoError(t, err)
	require.Equal(t, store.EffectDone, effects[0].Code)
	b.complete(b.claim(1))
	b.clock.Advance(time.Millisecond)
	b.finish("dead4", store.VerbFail)
	assert.Equal(t, []string{"dead0", "dead1", "dead2", "dead3", "dead4", "new2", "new3", "new4"}, b.kept())
}
