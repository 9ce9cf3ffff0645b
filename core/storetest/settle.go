package storetest

// Settlements, and what a run whose lease is lost can do.

import (
	"bytes"
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

// testExtend keeps a lease alive for longer than it lasts, and shortens one. A
// lease whose runs have ended is not held.
func testExtend(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"))
	c := b.claim(1)
	for range 5 {
		b.clock.Advance(lease - time.Second)
		held, err := b.store.Extend(b.Context(), []store.Extension{{Fence: c.Fence, Lease: lease}, {Fence: c.Fence + 1, Lease: lease}})
		require.NoError(t, err)
		require.Equal(t, []store.Extended{{Held: true}, {}}, held)
		assert.Empty(t, b.claim(1).Tasks)
	}
	assert.Equal(t, b.now().Add(lease), b.claim(1).NextLease)
	b.complete(c)
	held, err := b.store.Extend(b.Context(), []store.Extension{{Fence: c.Fence, Lease: lease}})
	require.NoError(t, err)
	assert.Equal(t, []store.Extended{{}}, held, "there is nothing left to hold")

	b.submit(task("a", "2"))
	c = b.claim(1)
	held, err = b.store.Extend(b.Context(), []store.Extension{{Fence: c.Fence, Lease: time.Second}})
	require.NoError(t, err)
	require.Equal(t, []store.Extended{{Held: true}}, held)
	assert.Equal(t, b.now().Add(time.Second), b.lookWith(store.LookRequest{Kinds: []string{"k"}}).NextDue, "a shorter lease is seen by a look")

	b.submit(task("a", "3"), task("b", "3"), task("c", "3"))
	c = b.claim(3)
	assert.Equal(t, store.Extended{Held: true, Running: 3, Holder: "nonce000"}, b.extend(c.Fence), "how many of the claim run, and whose it is")
	b.ended(complete(c.Tasks[1]))
	assert.Equal(t, 2, b.extend(c.Fence).Running)
	b.ended(complete(c.Tasks[0]))
	assert.Equal(t, store.Extended{Held: true}, b.extend(c.Fence))
}

// testProgress stores states of runs that have not ended: they outlive a crash,
// and do not hide that there was one.
func testProgress(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"), task("b", "1"))
	c := b.claim(2)
	require.NoError(t, b.settle(complete(c.Tasks[1]))[0].Err)
	_, err := b.store.Extend(b.Context(), []store.Extension{{Fence: c.Fence, Lease: lease, Progress: []store.Progress{
		{Run: c.Tasks[0].Run, State: []byte("half")}, {Run: c.Tasks[1].Run, State: []byte("late")},
	}}})
	require.NoError(t, err)
	s := b.read("a", "1")[0]
	assert.Equal(t, []byte("half"), s.State)
	assert.Equal(t, store.StatusInProgress, s.Status)
	// Its record is final.
	assert.Nil(t, b.read("b", "1")[0].State, "an ended run has no progress")
	// A claim that a failover has undone may have had the same fence: what its runs report is not about the tasks of this one.
	b.submit(task("c", "1"))
	other := c.Tasks[0].Run
	other.Agent, other.ID, other.Ref = "c", "1", ""
	_, err = b.store.Extend(b.Context(), []store.Extension{{Fence: c.Fence, Lease: lease, Progress: []store.Progress{{Run: other, State: []byte("another's")}}}})
	require.NoError(t, err)
	assert.Equal(t, []byte("half"), b.read("a", "1")[0].State)
	assert.Nil(t, b.read("c", "1")[0].State)
	assert.Equal(t, store.EffectDone, b.delete(store.Submission{Agent: "c", ID: "1"}).Code)
	b.clock.Advance(lease)
	again := b.claim(2)
	require.Len(t, again.Tasks, 1)
	assert.Equal(t, []byte("half"), again.Tasks[0].State, "progress outlives a crash")
	assert.Equal(t, 1, again.Tasks[0].Crashes)
	_, err = b.store.Extend(b.Context(), []store.Extension{{Fence: again.Fence, Lease: lease, Progress: []store.Progress{
		{Run: again.Tasks[0].Run, State: []byte("more")},
	}}})
	require.NoError(t, err)
	b.clock.Advance(lease)
	third := b.claim(2)
	assert.Equal(t, 2, third.Tasks[0].Crashes, "progress does not hide that its process has died")
	assert.Equal(t, []byte("more"), third.Tasks[0].State)
	// A run that is given back has shown nothing.
	gave := store.Settlement{Run: third.Tasks[0].Run, Verb: store.VerbRelease, Due: moment.When{At: third.Tasks[0].Due}, State: []byte("back")}
	require.NoError(t, b.settle(gave)[0].Err)
	third = b.claim(2)
	assert.Equal(t, 2, third.Tasks[0].Crashes)
	assert.Equal(t, []byte("back"), third.Tasks[0].State)
	lateState(t, b, &third)
}

// lateState sends states of a run out of order, with what else changes the task in between.
func lateState(t *testing.T, b *bench, c *store.Claim) {
	for _, s := range []struct {
		number int64
		want   string
	}{{2, "state 2"}, {1, "state 2"}, {2, "state 2"}, {300, "state 300"}, {299, "state 300"}, {0, "state 0"}, {1, "state 1"}} {
		b.extend(c.Fence, store.Progress{Run: c.Tasks[0].Run, State: fmt.Appendf(nil, "state %d", s.number), Number: s.number})
		assert.Equal(t, s.want, string(b.read("a", "1")[0].State), "number %d", s.number)
		if s.number == 2 {
			b.run("a", "1", true)
		}
	}
	b.clock.Advance(lease)
	*c = b.claim(2)
	require.Len(t, c.Tasks, 1)
	assert.Equal(t, "state 1", string(c.Tasks[0].State))
	b.extend(c.Fence, store.Progress{Run: c.Tasks[0].Run, State: []byte("of the next run"), Number: 1})
	assert.Equal(t, "of the next run", string(b.read("a", "1")[0].State), "each run counts from one")
}

// testSettleTwice sends settlements again, in one call and in several: each has the
// answer of the first, and counts once.
func testSettleTwice(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"), task("b", "1"))
	c := b.claim(2)
	runs := []store.Settlement{complete(c.Tasks[0]), complete(c.Tasks[1]), complete(c.Tasks[0])}
	for range 3 {
		for _, s := range b.settle(runs...) {
			assert.NoError(t, s.Err)
		}
	}
	unknown := complete(c.Tasks[0])
	unknown.Fence--
	assert.ErrorIs(t, b.settle(unknown)[0].Err, store.ErrLeaseLost)
	unknown = complete(c.Tasks[0])
	unknown.Index = 7
	assert.ErrorIs(t, b.settle(unknown)[0].Err, store.ErrLeaseLost)
	st := b.stats()
	assert.Equal(t, int64(2), st.Completed)
	assert.Zero(t, st.InProgress)
	assert.Zero(t, st.Waiting)
}

// testAgain makes tasks wait again, with and without a state, after a while or at a time.
func testAgain(t *testing.T, b *bench) {
	b.with(Options{})
	for _, agent := range []string{"single", "several"} {
		b.submit(task(agent, "1"))
		if agent == "several" {
			other := task(agent, "2")
			other.Due.After = 24 * time.Hour
			b.submit(other)
		}
		c := b.claim(1)
		got := b.settle(store.Settlement{
			Run: c.Tasks[0].Run, Verb: store.VerbAgain, Due: moment.When{After: 61 * time.Second}, Waited: time.Second, State: []byte("s1"),
		})
		assert.Equal(t, []store.Settled{{Due: b.now().Add(time.Minute)}}, got)
		s := b.read(agent, "1")[0]
		assert.Equal(t, store.StatusWaiting, s.Status)
		assert.Equal(t, b.now().Add(time.Minute), s.Due)
		assert.Equal(t, []byte("s1"), s.State)
		assert.Empty(t, b.claim(1).Tasks)

		b.clock.Advance(time.Minute)
		c = b.claim(1)
		require.Len(t, c.Tasks, 1)
		assert.Equal(t, []byte("s1"), c.Tasks[0].State)
		due := c.Tasks[0].Due
		// A release keeps the due time, and with it the place in the queue.
		got = b.settle(store.Settlement{Run: c.Tasks[0].Run, Verb: store.VerbRelease, Due: moment.When{At: due}})
		assert.Equal(t, []store.Settled{{Due: due}}, got)
		c = b.claim(1)
		require.Len(t, c.Tasks, 1, "given back work is due as before")
		assert.Equal(t, due, c.Tasks[0].Due)
		assert.Equal(t, []byte("s1"), c.Tasks[0].State)
		at := b.now().Add(time.Hour)
		got = b.settle(store.Settlement{Run: c.Tasks[0].Run, Verb: store.VerbAgain, Due: moment.When{At: at}})
		assert.Equal(t, []store.Settled{{Due: at}}, got)
		assert.Equal(t, []byte("s1"), b.read(agent, "1")[0].State, "no state leaves the old one")
	}
	st := b.stats()
	assert.Equal(t, int64(4), st.Again)
	assert.Equal(t, int64(2), st.Released)
	assert.Equal(t, int64(3), st.Waiting)
}

// testRetention waits until finished tasks are forgotten, to the millisecond.
func testRetention(t *testing.T, b *bench) {
	b.with(Options{Retention: time.Hour})
	b.submit(task("a", "1"))
	b.complete(b.claim(1))
	b.clock.Advance(time.Hour - time.Millisecond)
	assert.Equal(t, store.StatusCompleted, b.status("a", "1"))
	b.submit(task("a", "2"))
	b.complete(b.claim(1))
	b.clock.Advance(time.Millisecond)
	assert.Empty(t, b.status("a", "1"), "forgotten")
	assert.Equal(t, store.StatusCompleted, b.status("a", "2"))
	page, err := b.store.List(b.Context(), store.List{Agent: "a", Limit: 10})
	require.NoError(t, err)
	assert.Len(t, page.Tasks, 1)
	assert.True(t, b.submit(task("a", "1"))[0].Created, "its id is free again")
}

// testGroups follows the counts of a group through its life, until it is forgotten.
func testGroups(t *testing.T, b *bench) {
	b.with(Options{Retention: time.Hour})
	in := func(id string) store.Submission {
		s := task("a", id)
		s.Group = "g:1"
		return s
	}
	group := func() store.GroupCounts {
		return b.group("g:1")
	}
	assert.Equal(t, store.GroupCounts{}, group())
	b.submit(in("1"), in("2"), in("3"), task("a", "4"))
	b.submit(in("1"))
	assert.Equal(t, store.GroupCounts{Live: 3}, group())
	c := b.claim(10)
	require.Len(t, c.Tasks, 4)
	end := func(i int, verb store.Verb) {
		s := store.Settlement{Run: c.Tasks[i].Run, Verb: verb, Group: "g:1"}
		// Settled twice in one call, which counts once.
		require.NoError(t, b.settle(s, s)[0].Err)
	}
	end(0, store.VerbComplete)
	assert.Equal(t, store.GroupCounts{Live: 2, Completed: 1}, group())
	end(1, store.VerbFail)
	end(2, store.VerbCancel)
	assert.Equal(t, store.GroupCounts{Completed: 1, Failed: 1, Cancelled: 1}, group())
	assert.Equal(t, store.StatusFailed, group().Status())
	b.clock.Advance(time.Hour - time.Millisecond)
	b.submit(in("5"))
	assert.Equal(t, store.GroupCounts{Live: 1, Completed: 1, Failed: 1, Cancelled: 1}, group())
	b.clock.Advance(time.Hour)
	assert.Equal(t, int64(1), group().Live, "a group with live tasks is not forgotten")
	c = b.claim(10)
	require.Equal(t, []string{"a/4", "a/5"}, names(c))
	end(0, store.VerbComplete)
	assert.Equal(t, int64(1), group().Live, "it is of no group, whatever is said")
	end(1, store.VerbComplete)
	b.clock.Advance(time.Hour)
	assert.Equal(t, store.GroupCounts{}, group())
	b.submit(in("6"))
	assert.Equal(t, store.GroupCounts{Live: 1}, group())
}

// testReplay makes dead tasks live again: with a fresh state, once, and only if they failed.
func testReplay(t *testing.T, b *bench) {
	b.with(Options{})
	again := func(id string) store.Effect {
		s := task("a", id)
		s.Group = "g"
		return b.effect(b.store.Replay(b.Context(), []store.Replay{given.Replay(s)}))
	}
	fail := func(id string) {
		s := task("a", id)
		s.Group = "g"
		b.submit(s)
		c := b.claim(1)
		require.Len(t, c.Tasks, 1)
		require.NoError(t, b.settle(store.Settlement{Run: c.Tasks[0].Run, Verb: store.VerbFail, Record: []byte("r"), Group: "g"})[0].Err)
	}
	assert.Zero(t, again("1").Code, "unknown")
	fail("1")
	fail("2")
	b.clock.Advance(time.Second)
	assert.Equal(t, store.Effect{Code: store.EffectDone, Due: b.now()}, again("1"))
	assert.Zero(t, again("1").Code, "it is live again")
	assert.Equal(t, store.StatusWaiting, b.status("a", "1"))
	assert.NotZero(t, again("2").Code)
	c := b.claim(10)
	assert.Equal(t, []string{"a/1", "a/2"}, names(c))
	assert.Equal(t, []byte("body of 1"), c.Tasks[0].Body)
	assert.Nil(t, c.Tasks[0].State)
	assert.Equal(t, store.GroupCounts{Live: 2}, b.group("g"))
	b.complete(c)
	assert.Zero(t, again("1").Code, "completed tasks are not replayed")
	assert.Equal(t, int64(2), b.stats().Replayed)

	// A replayed activity task answers to activity again.
	fail("3")
	active := given.Replay(task("a", "3"))
	active.Group, active.Activity = "g", true
	b.effect(b.store.Replay(b.Context(), []store.Replay{active}))
	assert.Equal(t, store.Touched{Due: b.now(), Reason: store.ReasonWaiting}, b.touch(pulse("a", "3")))
	c = b.claim(10)
	require.Equal(t, []string{"a/3"}, names(c))
	assert.Equal(t, store.Touched{Booked: true, Reason: store.ReasonRunning}, b.touch(pulse("a", "3")), "it answers to activity again")
}

// testPages walks through tasks in each status, in pages of any size.
func testPages(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("b", "only"))
	for i := range 9 {
		s := task("a", fmt.Sprint(i))
		if i >= 6 {
			s.Due.After = time.Hour
		}
		b.submit(s)
	}
	r := b.request(6)
	r.Agents = []string{"a"}
	c := b.claimWith(r) // 0 to 5 run
	require.NoError(t, b.settle(complete(c.Tasks[0]))[0].Err)
	require.NoError(t, b.settle(store.Settlement{Run: c.Tasks[1].Run, Verb: store.VerbFail})[0].Err)
	require.NoError(t, b.settle(store.Settlement{Run: c.Tasks[2].Run, Verb: store.VerbCancel})[0].Err)
	list := func(q store.List) (ids []string) {
		whole.EachTask(b.T, b.store, q, func(page store.Page) {
			require.LessOrEqual(t, len(page.Tasks), q.Limit)
			require.True(t, len(page.Tasks) > 0 || page.Next == "", "only the last page may be empty")
			for _, s := range page.Tasks {
				ids = append(ids, s.ID)
			}
		})
		return ids
	}
	// The walk has the same order for each size of page.
	for _, limit := range []int{1, 2, 9, 100} {
		ids := list(store.List{Agent: "a", Limit: limit})
		require.Len(t, ids, 9)
		assert.Equal(t, []string{"6", "7", "8", "3", "4", "5"}, ids[:6], "what waits comes first, then what runs")
		assert.ElementsMatch(t, []string{"0", "1", "2"}, ids[6:])
		assert.Equal(t, ids, list(store.List{Agent: "a", Limit: limit, Brief: true}))
	}
	only := func(s ...store.Status) []string {
		return slices.Sorted(slices.Values(list(store.List{Agent: "a", Limit: 2, Statuses: s})))
	}
	assert.Equal(t, []string{"0"}, only(store.StatusCompleted))
	assert.Equal(t, []string{"1", "2"}, only(store.StatusFailed, store.StatusCancelled))
	assert.Equal(t, []string{"3", "4", "5"}, only(store.StatusInProgress))
	assert.Equal(t, []string{"6", "7", "8"}, only(store.StatusWaiting))
	assert.Equal(t, []string{"only"}, list(store.List{Agent: "b", Limit: 2}))
	assert.Empty(t, list(store.List{Agent: "nobody", Limit: 2}))
}

// A page ends before the task that would make it too large, and has one task however large that is.
// Pages are bounded so that neither a client nor Redis has to hold more than a mebibyte for one.
func testPageBytes(t *testing.T, b *bench) {
	b.with(Options{})
	large := func(id string, size int) store.Submission {
		s := task("a", id)
		s.Body = bytes.Repeat([]byte("x"), size)
		return s
	}
	for i := range 9 {
		b.submit(large(fmt.Sprint("live", i), 250<<10))
	}
	b.submit(large("huge", store.PageBytes+1), task("a", "small"))
	taken := append(b.claim(2).Tasks, b.claim(2).Tasks...) // more are too large for one claim
	require.Len(t, taken, 4)
	for _, task := range taken {
		s := store.Settlement{Run: task.Run, Verb: store.VerbFail, Record: bytes.Repeat([]byte("r"), 300<<10)}
		require.NoError(t, b.settle(s)[0].Err)
	}
	// Waiting tasks come first, then the finished ones.
	var ids []string
	var sizes []int
	whole.EachTask(t, b.store, store.List{Agent: "a", Limit: 1000}, func(page store.Page) {
		size := 0
		for _, s := range page.Tasks {
			ids = append(ids, s.ID)
			size += len(s.Body) + len(s.Record)
		}
		require.True(t, size <= store.PageBytes || len(page.Tasks) == 1, "%d bytes of %d tasks", size, len(page.Tasks))
		sizes = append(sizes, size)
	})
	assert.Len(t, ids, 11)
	assert.Equal(t, []int{4 * 250 << 10, 250 << 10, store.PageBytes + 1, 900<<10 + len("body of small")}, sizes[:4])
	all, err := b.store.Get(t.Context(), store.Get{Agent: "a", IDs: ids})
	require.NoError(t, err)
	assert.Len(t, all.Tasks, 11, "what is asked for by id is read whole")
	n := 0
	whole.EachTask(t, b.store, store.List{Agent: "a", Limit: 6, Brief: true}, func(page store.Page) {
		for _, s := range page.Tasks {
			n++
			assert.Equal(t, store.Stored{Agent: "a", ID: s.ID, Status: s.Status, Cursor: s.Cursor}, s)
		}
	})
	assert.Equal(t, 11, n)
}

// testStats has tasks in several partitions: the counters are sums over all of them.
func testStats(t *testing.T, b *bench) {
	b.with(Options{Partitions: 4})
	for i := range 10 {
		b.submit(task(fmt.Sprint("agent", i%5), fmt.Sprint(i)))
	}
	st := b.stats()
	assert.Equal(t, 4, st.Partitions)
	assert.Equal(t, int64(10), st.Waiting)
	assert.Equal(t, int64(10), st.Submitted)
	assert.Equal(t, int64(5), st.Agents)
	assert.Equal(t, b.now(), st.NextDue)
	n := 0
	for p := range 4 {
		r := b.request(50)
		r.Partition = p
		c := b.claimWith(r)
		n += len(c.Tasks)
		for i, task := range c.Tasks {
			verb := []store.Verb{store.VerbComplete, store.VerbFail, store.VerbCancel}[i%3]
			require.NoError(t, b.settle(store.Settlement{Run: task.Run, Verb: verb})[0].Err)
		}
	}
	assert.Equal(t, 10, n)
	st = b.stats()
	assert.Zero(t, st.Waiting+st.InProgress+st.Agents)
	assert.Zero(t, st.NextDue)
	assert.Equal(t, int64(10), st.Completed+st.Failed+st.Cancelled)
}
