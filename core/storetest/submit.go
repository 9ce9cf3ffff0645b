package storetest

// Submits: limits, conflicts, all or none.

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// testLife takes a task from submit to completion, and looks at it at each step.
func testLife(t *testing.T, b *bench) {
	b.with(Options{})
	placed := b.submit(task("a", "1"))
	assert.Equal(t, []store.Submitted{{Created: true, Due: b.now()}}, placed)
	s := b.read("a", "1")[0]
	assert.Equal(t, store.StatusWaiting, s.Status)
	assert.Equal(t, b.now(), s.Due)
	assert.Equal(t, b.now(), s.Submitted)
	assert.Equal(t, []byte("body of 1"), s.Body)

	b.clock.Advance(time.Second)
	c := b.claim(10)
	require.Len(t, c.Tasks, 1)
	assert.Equal(t, b.now(), c.Now)
	assert.Zero(t, c.NextDue)
	assert.Equal(t, b.now().Add(lease), c.NextLease)
	got := c.Tasks[0]
	assert.Equal(t, store.Claimed{
		Run: store.Run{Fence: c.Fence, Agent: "a", ID: "1", Ref: got.Ref}, Kind: "k", Level: store.LevelLow,
		Due: b.now().Add(-time.Second), Submitted: b.now().Add(-time.Second), Body: []byte("body of 1"),
	}, got)
	assert.Equal(t, store.StatusInProgress, b.status("a", "1"))
	assert.Empty(t, b.claim(10).Tasks, "a task under lease is nobody else's")

	b.clock.Advance(time.Second)
	b.complete(c)
	s = b.read("a", "1")[0]
	assert.Equal(t, store.StatusCompleted, s.Status)
	assert.Equal(t, b.now(), s.Finished)
	assert.Equal(t, []byte("record of 1"), s.Record)
	assert.Equal(t, store.Status(""), b.status("a", "2"))
	c = b.claim(10)
	assert.Empty(t, c.Tasks)
	assert.Zero(t, c.NextDue)
	assert.Zero(t, c.NextLease, "a claim whose tasks are all settled holds nothing")
}

// testSubmitKeeps submits what exists: waiting, running or finished, it is left alone.
func testSubmitKeeps(t *testing.T, b *bench) {
	b.with(Options{})
	later := task("a", "1")
	later.Due.After = time.Hour
	b.submit(later)
	again := task("a", "1")
	again.Body = []byte("another")
	assert.Equal(t, []store.Submitted{{}}, b.submit(again), "waiting")
	b.submit(task("a", "2"))
	assert.Equal(t, []store.Submitted{{}, {}}, b.submit(again, task("a", "2")), "waiting, of an agent with several")
	assert.Equal(t, []byte("body of 1"), b.read("a", "1")[0].Body)

	c := b.claim(10)
	require.Equal(t, []string{"a/2"}, names(c))
	assert.Equal(t, []store.Submitted{{}}, b.submit(task("a", "2")), "in progress")
	b.complete(c)
	assert.Equal(t, []store.Submitted{{}}, b.submit(task("a", "2")), "finished")
	placed := b.submit(task("a", "2"), task("a", "3"), task("b", "2"))
	assert.False(t, placed[0].Created)
	assert.True(t, placed[1].Created)
	assert.True(t, placed[2].Created, "ids are unique for their agent only")
	b.complete(b.claim(10))
	assert.Equal(t, []store.Submitted{{}, {}, {}}, b.submit(task("a", "2"), task("a", "3"), task("b", "2")), "all finished")
}

// testSubmitKeepsFirst submits the first task of an agent again that has another one by now. Nothing else was out of the ordinary so far.
func testSubmitKeepsFirst(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"))
	b.submit(task("a", "2"))
	assert.Equal(t, []store.Submitted{{}}, b.submit(task("a", "1")))
	c := b.take("a/1", "a/2")
	b.complete(c)
	b.quiet(0, "each was there once")
	assert.Equal(t, int64(2), b.stats().Submitted)
}

// testSubmitLimit goes over the limit of an agent: nothing of the call is stored, in any partition.
func testSubmitLimit(t *testing.T, b *bench) {
	b.with(Options{MaxTasks: 3, Partitions: 4})
	b.submit(task("a", "1"), task("a", "2"))
	_, err := b.store.Submit(b.Context(), []store.Submission{task("b", "1"), task("c", "1"), task("a", "3"), task("a", "4"), task("d", "1")})
	var limit *store.LimitError
	require.ErrorAs(t, err, &limit)
	assert.Equal(t, store.LimitError{Agent: "a", Limit: 3}, *limit)
	for _, agent := range []string{"b", "c", "d"} {
		assert.Empty(t, b.status(agent, "1"), "nothing of a refused call is stored")
	}
	assert.Empty(t, b.status("a", "3"))
	b.submit(task("a", "1"), task("a", "3"), task("a", "2")) // two of them are there already
	_, err = b.store.Submit(b.Context(), []store.Submission{task("a", "4")})
	require.True(t, errors.As(err, &limit))
}

// testSubmitLimitEach comes to the limit of an agent task by task, with few and with many of them.
func testSubmitLimitEach(t *testing.T, b *bench) {
	for _, most := range []int{1, 3, mostAhead, mostAhead + 8} {
		b.with(Options{MaxTasks: most})
		for i := range most {
			assert.True(t, b.submit(task("a", fmt.Sprint(i)))[0].Created)
		}
		_, err := b.store.Submit(b.Context(), []store.Submission{task("a", "more")})
		var limit *store.LimitError
		require.ErrorAs(t, err, &limit, "beside %d", most)
		b.complete(b.claim(1))
		assert.True(t, b.submit(task("a", "more"))[0].Created)
	}
}

// testSubmitOwed stores tasks beyond the limits of an agent that follow from others: they count for those that come later, and one that
// exists is kept.
func testSubmitOwed(t *testing.T, b *bench) {
	b.with(Options{MaxTasks: 2, MaxBytes: 100 << 10, Partitions: 4})
	owed := func(s store.Submission) store.Submission { s.Owed = true; return s }
	b.submit(task("a", "1"), task("a", "2"))
	assert.True(t, b.submit(owed(task("a", "3")))[0].Created)
	assert.True(t, b.submit(owed(heavy("a", "4", 60)), owed(task("b", "1")))[0].Created)
	assert.True(t, b.submit(owed(heavy("a", "5", 60)))[0].Created)
	assert.Equal(t, []store.Submitted{{}}, b.submit(owed(task("a", "1"))))
	var limit *store.LimitError
	_, err := b.store.Submit(b.Context(), []store.Submission{task("a", "6")})
	require.ErrorAs(t, err, &limit)
	b.complete(b.claim(6))
	b.quiet(0, "each was there once")
}

// testDue has tasks due at a time, after a delay and in the past: none starts a millisecond early.
func testDue(t *testing.T, b *bench) {
	b.with(Options{})
	at := task("a", "at")
	at.Due.At = b.now() + 5000
	delay := task("b", "delay")
	delay.Due.After = 7 * time.Second
	past := task("c", "past")
	past.Due.At = b.now() - 1000
	placed := b.submit(at, delay, past)
	assert.Equal(t, []moment.Millis{b.now() + 5000, b.now() + 7000, b.now()}, []moment.Millis{placed[0].Due, placed[1].Due, placed[2].Due})
	c := b.claim(10)
	assert.Equal(t, []string{"c/past"}, names(c))
	assert.Equal(t, b.now()+5000, c.NextDue)
	b.clock.Advance(4999 * time.Millisecond)
	assert.Empty(t, b.claim(10).Tasks, "a millisecond early")
	b.clock.Advance(time.Millisecond)
	c = b.claim(10)
	assert.Equal(t, []string{"a/at"}, names(c))
	assert.Equal(t, b.now()+2000, c.NextDue)
	b.clock.Advance(2 * time.Second)
	c = b.claim(10)
	assert.Equal(t, []string{"b/delay"}, names(c))
	assert.Zero(t, c.NextDue)
}

// testOrder has tasks of all levels and times: level, then due time, then submit,
// and those that waited for long first.
func testOrder(t *testing.T, b *bench) {
	b.with(Options{})
	at := func(id string, level store.Level, ms moment.Millis) store.Submission {
		s := task("a", id)
		s.Level, s.Due.At = level, b.now()+ms
		return s
	}
	// Ids sort against the order of submit, so that a store that orders ties by id fails.
	b.submit(at("z", 3, 10), at("y", 3, 10), at("x", 3, 5), at("w", 2, 20), at("v", 1, 30), at("u", 1, 30), at("t", 3, 40))
	b.clock.Advance(30 * time.Millisecond)
	c := b.claim(5)
	assert.Equal(t, []string{"a/v", "a/u", "a/w", "a/x", "a/z"}, names(c), "level, then due time, then submit")
	b.complete(c)
	c = b.claim(5)
	assert.Equal(t, []string{"a/y"}, names(c))
	b.complete(c)

	b.clock.Advance(time.Hour) // t is overdue by far: it goes before a level 1 that is due just now
	b.submit(at("s", 1, 0), at("r", 2, 0))
	assert.Equal(t, []string{"a/t", "a/s", "a/r"}, names(b.claim(5)), "a task that waited long counts as level 1")
}

// testHostileIDs uses ids that mean something to Redis, to keys, to patterns or to
// shells: no two of them are ever mixed up.
func testHostileIDs(t *testing.T, b *bench) {
	b.with(Options{Partitions: 8})
	hostile := []string{
		"a", "a:b", "a%3Ab", "%", "%%", "{", "}", "{}", "}{", "a}:agenda", "*", "?", "[a]", `\`, "'", `"`, " ", "é", "日本",
		"__proto__", "queue:3:a", "!", "|", "-", "0", "..", strings.Repeat("x", 256), strings.Repeat("%", 256),
	}
	var subs []store.Submission
	for _, agent := range hostile {
		for _, id := range hostile {
			s := task(agent, id)
			s.Group = id
			subs = append(subs, s)
		}
	}
	for _, p := range b.submit(subs...) {
		require.True(t, p.Created)
	}
	// Each task is claimed once, under its own name and with its own body.
	seen := map[string]bool{}
	for {
		var n int
		for p := range b.store.Partitions() {
			r := b.request(store.MaxClaim)
			r.Partition = p
			c := b.claimWith(r)
			n += len(c.Tasks)
			for _, got := range c.Tasks {
				require.False(t, seen[got.Agent+"\x00"+got.ID])
				seen[got.Agent+"\x00"+got.ID] = true
				require.Equal(t, "body of "+got.ID, string(got.Body))
				s := complete(got)
				s.Group = got.ID
				require.NoError(t, b.settle(s)[0].Err)
			}
		}
		if n == 0 {
			break
		}
	}
	require.Len(t, seen, len(hostile)*len(hostile))
	for _, agent := range hostile {
		page, err := b.store.List(b.Context(), store.List{Agent: agent, Limit: 1000})
		require.NoError(t, err)
		require.Len(t, page.Tasks, len(hostile))
		counts, err := b.store.Group(b.Context(), agent, "{}")
		require.NoError(t, err)
		require.Equal(t, store.GroupCounts{Completed: 1}, counts)
	}
}

// testSubmitHeld submits tasks with the holds that they have from the beginning: no claim takes one, not the first after the step either.
func testSubmitHeld(t *testing.T, b *bench) {
	b.with(Options{})
	for _, id := range []string{"1", "2"} { // alone of its agent, and one of several
		held := task("a", id)
		held.Hold = &store.Hold{Note: []byte("why")}
		since := b.now()
		assert.True(t, b.submit(held)[0].Created)
		target := store.Target{Agent: "a", ID: id}
		want := []store.Held{{Target: target, Since: since, Note: []byte("why")}}
		assert.Equal(t, want, b.one("a", id).Holds)
		assert.Empty(t, b.claim(10).Tasks)
		assert.Equal(t, want, b.one("a", id).Holds, "parked")

		assert.Equal(t, store.EffectDone, b.unhold(target))
		assert.Equal(t, []store.Submitted{{}}, b.submit(held), "it exists")
		assert.Empty(t, b.one("a", id).Holds, "what was resumed stays so")
		b.clock.Advance(time.Second)
		c := b.take("a/" + id)
		assert.Equal(t, since, c.Tasks[0].Due)
		if id == "2" {
			b.complete(c)
			assert.Equal(t, []store.Submitted{{}}, b.submit(held), "finished")
			assert.Empty(t, b.one("a", id).Holds)
		}
	}
}

// testSubmitHeldUntil submits a task with a hold that ends, and one in place of a task that has none.
func testSubmitHeldUntil(t *testing.T, b *bench) {
	b.with(Options{})
	held := task("a", "1")
	held.Hold = &store.Hold{Until: moment.When{At: b.now().Add(time.Minute)}}
	b.submit(held, task("b", "1"))
	b.complete(b.take("b/1"))
	assert.LessOrEqual(t, b.look(), b.now().Add(time.Minute), "whoever looks comes back for the end")
	b.clock.Advance(time.Minute - time.Millisecond)
	assert.Empty(t, b.claim(10).Tasks)
	b.clock.Advance(time.Millisecond)
	b.claim(0)
	b.take("a/1")

	b.with(Options{})
	b.submit(task("a", "1"))
	s := b.one("a", "1")
	held.Conflict, held.Version, held.Hold = store.ConflictReplace, s.Version, &store.Hold{}
	assert.True(t, b.submit(held)[0].Replaced)
	assert.Empty(t, b.one("a", "1").Holds, "a task that is replaced is as paused as it was")
}

// testSubmitNever submits tasks that only an order makes due: alone of their agent, one of few, and one of many.
func testSubmitNever(t *testing.T, b *bench) {
	for _, others := range []int{0, 1, 40} {
		b.with(Options{})
		for i := range others {
			b.submit(within(task("a", fmt.Sprintf("other%d", i)), time.Hour))
		}
		never := task("a", "1")
		never.Due.At = moment.Never
		assert.Equal(t, moment.Never, b.submit(never)[0].Due)
		b.clock.Advance(time.Minute)
		c := b.claim(10)
		assert.Empty(t, c.Tasks)
		if others == 0 {
			assert.True(t, c.NextDue == 0 || c.NextDue == moment.Never)
			assert.True(t, b.look() == 0 || b.look() == moment.Never)
		}
		assert.Equal(t, store.StatusWaiting, b.status("a", "1"))
		for range 2 {
			assert.Equal(t, b.now(), b.effect(b.store.RunNow(b.Context(), []store.RunNow{{Agent: "a", ID: "1"}})).Due)
			taken := b.take("a/1").Tasks[0]
			again := store.Settlement{Run: taken.Run, Verb: store.VerbAgain, Due: moment.When{At: moment.Never}, State: []byte("s")}
			assert.Equal(t, store.Settled{Due: moment.Never}, b.settle(again)[0])
			assert.Empty(t, b.claim(10).Tasks)
			assert.Equal(t, moment.Never, b.one("a", "1").Due)
		}
	}
}

// testFirstState submits tasks with a state: a new task begins with it,
// and one that exists keeps its own.
func testFirstState(t *testing.T, b *bench) {
	b.with(Options{})
	with := func(id string, c store.Conflict) store.Submission {
		s := task("a", id)
		s.State, s.Conflict = []byte("state of "+id), c
		return s
	}
	b.submit(with("1", store.ConflictKeep))
	b.submit(with("2", store.ConflictFail), with("3", store.ConflictReplace), task("a", "4"))
	kept := with("1", store.ConflictKeep)
	kept.State = []byte("another")
	b.submit(kept)
	for i, task := range b.take("a/1", "a/2", "a/3", "a/4").Tasks {
		want := []byte("state of " + task.ID)
		if i == 3 {
			want = nil
		}
		assert.Equal(t, want, task.State)
		assert.Zero(t, task.Crashes)
	}
}

// testConflictFail submits tasks that must not exist: waiting, running and
// finished ones make the whole call fail.
func testConflictFail(t *testing.T, b *bench) {
	b.with(Options{Partitions: 4, Retention: time.Hour})
	assert.True(t, b.submit(failing("a", "1"))[0].Created, "new")
	b.submit(task("a", "2"))
	for _, id := range []string{"1", "2"} { // alone, with others of its partition, and of other partitions
		b.refused(id, failing("a", id))
		b.refused(id, task("a", "3"), failing("a", id))
		b.refused(id, failing("b", "1"), failing("c", "1"), failing("a", id), failing("d", "1"), task("e", "1"))
	}
	assert.Equal(t, int64(2), b.stats().Submitted, "all or nothing")
	r := b.request(1)
	r.Partition = store.PartitionOf("a", 4)
	c := b.claimWith(r)
	b.refused("1", failing("a", "1"))
	b.complete(c)
	b.refused("1", failing("a", "1"))
	b.clock.Advance(time.Hour)
	assert.True(t, b.submit(failing("a", "1"))[0].Created, "what is forgotten is not there")
	placed := b.submit(failing("a", "4"), failing("b", "1"), task("a", "1"))
	assert.Equal(t, [3]bool{true, true, false}, [3]bool{placed[0].Created, placed[1].Created, placed[2].Created})
}
