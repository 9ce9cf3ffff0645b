package storetest

// Claims: order, shares, leases, and what is taken back.

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// testTurns has one agent flood the queue: the others are served between its tasks,
// in the order in which they have waited.
func testTurns(t *testing.T, b *bench) {
	b.with(Options{})
	// A hundred tasks of one agent are due before anything of the others.
	var flood []store.Submission
	for i := range 100 {
		flood = append(flood, task("flood", fmt.Sprintf("%03d", i)))
	}
	b.submit(flood...)
	b.clock.Advance(time.Millisecond)
	for i := range 5 {
		b.submit(task(fmt.Sprintf("small%d", i), "1"))
	}
	b.clock.Advance(time.Millisecond)
	assert.Equal(t, []string{"flood/000"}, names(b.claim(1)))
	b.clock.Advance(time.Millisecond)
	var got []string
	for range 7 {
		got = append(got, names(b.claim(1))...)
		b.clock.Advance(time.Millisecond)
	}
	assert.Equal(t, []string{"small0/1", "small1/1", "small2/1", "small3/1", "small4/1", "flood/001", "flood/002"}, got,
		"an agent that floods waits behind those that wait since its last turn")
}

// testShare has two agents with many tasks and one with few: a claim is divided evenly,
// and what one cannot use goes to the others.
func testShare(t *testing.T, b *bench) {
	b.with(Options{})
	var subs []store.Submission
	for _, agent := range []string{"a", "b"} {
		for i := range 40 {
			subs = append(subs, task(agent, fmt.Sprintf("%02d", i)))
		}
	}
	subs = append(subs, task("c", "1"))
	b.submit(subs...)
	count := func(c store.Claim) map[string]int {
		n := map[string]int{}
		for _, task := range c.Tasks {
			n[task.Agent]++
		}
		return n
	}
	assert.Equal(t, map[string]int{"a": 10, "b": 10, "c": 1}, count(b.claim(21)))
	assert.Equal(t, map[string]int{"a": 25, "b": 25}, count(b.claim(50)))
	assert.Equal(t, map[string]int{"a": 5, "b": 5}, count(b.claim(50)))
	b.submit(subs[0]) // it already exists
	assert.Empty(t, b.claim(50).Tasks)
	// Fairness costs nothing when nobody else is waiting.
	var one []store.Submission
	for i := range 60 {
		one = append(one, task("alone", fmt.Sprintf("%02d", i)))
	}
	b.submit(one...)
	assert.Len(t, b.claim(50).Tasks, 50, "one agent alone is not held back")
	assert.Len(t, b.claim(50).Tasks, 10)
}

// testPerAgent bounds what one claim takes of an agent, whatever else is due.
func testPerAgent(t *testing.T, b *bench) {
	b.with(Options{})
	for i := range 5 {
		b.submit(task("a", fmt.Sprint(i)), task("b", fmt.Sprint(i)))
	}
	r := b.request(50)
	r.PerAgent = 2
	c := b.claimWith(r)
	assert.Equal(t, []string{"a/0", "a/1", "b/0", "b/1"}, names(c))
	assert.Equal(t, b.now(), c.NextDue, "there is more")
}

// testAgents claims for some agents only: nobody else's task is taken, and
// due times are those of the named ones.
func testAgents(t *testing.T, b *bench) {
	b.with(Options{})
	later := task("c", "later")
	later.Due.After = time.Minute
	soon := task("d", "soon")
	soon.Due.After = time.Second
	b.submit(task("a", "1"), task("b", "1"), task("b", "2"), later, soon)
	r := b.request(50)
	r.Agents = []string{"b", "c", "nobody"}
	c := b.claimWith(r)
	assert.Equal(t, []string{"b/1", "b/2"}, names(c))
	assert.Equal(t, b.now().Add(time.Minute), c.NextDue, "of the agents that were asked for")
	assert.Equal(t, []string{"a/1"}, names(b.claim(50)))
}

// testLeave leaves a kind: its tasks stay in their queues, unparked, and are
// there for a claim that wants them.
func testLeave(t *testing.T, b *bench) {
	b.with(Options{})
	slow := task("a", "1")
	slow.Kind = "slow"
	slow2 := task("b", "1")
	slow2.Kind = "slow"
	b.submit(slow, slow2, task("b", "2"))
	r := b.request(50)
	r.Leave = []string{"slow"}
	c := b.claimWith(r)
	assert.Equal(t, []string{"b/2"}, names(c))
	// Leaving is the caller's lack of time, not of a handler.
	assert.Zero(t, c.Parked)
	assert.Equal(t, b.now(), c.NextDue)
	r = b.request(50)
	r.Kinds = []string{"slow"}
	assert.ElementsMatch(t, []string{"a/1", "b/1"}, names(b.claimWith(r)))

	// Otherwise a kind that is left would use up the claims of everybody behind it.
	for i := range 5 { // those that are left do not take the turns of those behind them
		slow.Agent = fmt.Sprint("slow", i)
		b.submit(slow)
	}
	b.clock.Advance(time.Millisecond)
	b.submit(task("quick", "1"))
	r = b.request(2)
	r.Leave = []string{"slow"}
	assert.Equal(t, []string{"quick/1"}, names(b.claimWith(r)))
}

// testNonce repeats a claim whose answer was lost: it gets the tasks
// that it already has, and no others.
func testNonce(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"), task("b", "1"), task("b", "2"), task("c", "1"))
	r := b.request(3)
	first := b.claimWith(r)
	require.Len(t, first.Tasks, 3)
	assert.Equal(t, first.Tasks, b.claimWith(r).Tasks, "the answer was lost: the same tasks again")
	assert.NoError(t, b.settle(complete(first.Tasks[1]))[0].Err)
	// Places are kept, as settlements refer to a run by its place in the claim.
	again := b.claimWith(r)
	assert.Equal(t, []store.Claimed{first.Tasks[0], first.Tasks[2]}, again.Tasks, "without those that are settled, in their places")
	assert.Equal(t, first.Fence, again.Fence)
	b.complete(again)
	assert.Empty(t, b.claimWith(r).Tasks)
	assert.Len(t, b.claim(3).Tasks, 1)
}

// testRecover lets leases run out: the next claim takes the tasks back, and whatever
// the dead process still sends is refused.
func testRecover(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"), task("b", "1"), task("b", "2"))
	c := b.claim(50)
	require.Len(t, c.Tasks, 3)
	require.NoError(t, b.settle(complete(c.Tasks[0]))[0].Err)
	// One millisecond before the end nothing happens.
	b.clock.Advance(lease - time.Millisecond)
	assert.Empty(t, b.claim(50).Tasks)
	b.clock.Advance(time.Millisecond)
	assert.Equal(t, b.now(), b.look(), "an expired lease is work")

	again := b.claim(50)
	assert.Equal(t, 2, again.Recovered)
	require.Len(t, again.Tasks, 2)
	for i, task := range again.Tasks {
		assert.Equal(t, 1, task.Crashes)
		assert.Equal(t, c.Tasks[0].Due, task.Due, "recovered work keeps its place")
		assert.Greater(t, task.Fence, c.Fence)
		assert.ErrorIs(t, b.settle(complete(c.Tasks[i+1]))[0].Err, store.ErrLeaseLost, "the late result is refused")
		assert.Equal(t, store.StatusInProgress, b.status(task.Agent, task.ID))
	}
	// A settlement that came in time was stored, and is confirmed as often as it is sent.
	assert.NoError(t, b.settle(complete(c.Tasks[0]))[0].Err, "what was settled in time stays settled")
	held, err := b.store.Extend(b.Context(), []store.Extension{{Fence: c.Fence, Lease: lease}, {Fence: again.Fence, Lease: lease}})
	require.NoError(t, err)
	assert.Equal(t, []store.Extended{{}, {Held: true, Running: 2, Holder: "nonce000"}}, held)

	b.clock.Advance(lease)
	third := b.claim(50)
	require.Len(t, third.Tasks, 2)
	assert.Equal(t, 2, third.Tasks[0].Crashes, "each death counts")
	s := store.Settlement{Run: third.Tasks[0].Run, Verb: store.VerbAgain, State: []byte("new")}
	require.NoError(t, b.settle(s)[0].Err)
	fourth := b.claim(50)
	require.Len(t, fourth.Tasks, 1)
	assert.Zero(t, fourth.Tasks[0].Crashes, "writing the state clears the crashes")
	assert.Equal(t, int64(4), b.stats().Recovered)
}

// testFences claims and releases as fast as it can: fences grow with every
// claim, also within a millisecond.
func testFences(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"))
	last := store.Fence(0)
	for range 2000 { // within one millisecond too
		c := b.claim(1)
		require.Len(t, c.Tasks, 1)
		require.Greater(t, c.Fence, last)
		last = c.Fence
		require.NoError(t, b.settle(store.Settlement{Run: c.Tasks[0].Run, Verb: store.VerbRelease, Due: moment.When{At: c.Tasks[0].Due}})[0].Err)
	}
}

// After a failover the new master may lack the last fences, and its clock may be behind: a client tells it what it has seen.
// The store promises only what it can: fences of one client still grow.
func testFencesSeen(t *testing.T, b *bench) {
	for _, perAgent := range []int{0, 1} { // a store may have a shorter way for claims that ask for nothing special
		b.with(Options{})
		b.submit(task("a", "1"))
		next := func(seen store.Fence) store.Fence {
			r := b.request(1)
			r.Fence, r.PerAgent = seen, perAgent
			c := b.claimWith(r)
			require.Len(t, c.Tasks, 1)
			require.NoError(t, b.settle(store.Settlement{Run: c.Tasks[0].Run, Verb: store.VerbRelease, Due: moment.When{At: c.Tasks[0].Due}})[0].Err)
			return c.Fence
		}
		// About seventeen minutes ahead, in units of 1/1024 ms.
		first := next(0)
		second := next(first + 1<<30)
		require.Greater(t, second, first+1<<30)
		third := next(first)
		require.Greater(t, third, second, "a client that has seen less changes nothing")
		require.Greater(t, next(0), third)
	}
}

// testLook reads all partitions at once: the earliest due time of each, a lease that runs out included.
func testLook(t *testing.T, b *bench) {
	b.with(Options{Partitions: 4})
	look := make([]store.LookRequest, 4)
	for i := range look {
		look[i] = store.LookRequest{Partition: i, Kinds: []string{"k"}}
	}
	next := func() moment.Millis {
		looks, err := b.store.Look(b.Context(), look)
		require.NoError(t, err)
		var next moment.Millis
		for i, c := range looks {
			require.Equal(t, i, c.Partition)
			require.NotZero(t, c.Now)
			if c.NextDue != 0 && (next == 0 || c.NextDue < next) {
				next = c.NextDue
			}
		}
		return next
	}
	// Nothing was ever submitted: nothing is due.
	assert.Zero(t, next())
	s := task("a", "1")
	s.Due.After = time.Minute
	b.submit(s)
	assert.Equal(t, b.now().Add(time.Minute), next())
	s = task("b", "1")
	s.Due.After = time.Second
	b.submit(s)
	assert.Equal(t, b.now().Add(time.Second), next())
	b.clock.Advance(time.Second)
	r := b.request(1)
	r.Partition = store.PartitionOf("b", 4)
	c := b.claimWith(r)
	require.Len(t, c.Tasks, 1)
	assert.Equal(t, b.now().Add(lease), next(), "the end of a lease is work too")
	b.complete(c)
	assert.Equal(t, b.now().Add(59*time.Second), next())
}

// testWakeups hears of a task that is due sooner than everything before, and of no other.
func testWakeups(t *testing.T, b *bench) {
	b.with(Options{Partitions: 4})
	waker, ok := b.store.(store.Waker)
	require.True(t, ok)
	wakeups, err := waker.Wakeups(b.Context())
	require.NoError(t, err)
	s := task("a", "1")
	s.Due.After = time.Minute
	b.submit(s)
	want := store.Wakeup{Partition: store.PartitionOf("a", 4), Due: b.now().Add(time.Minute)}
	assert.Equal(t, want, receive(t, wakeups))
	s = task("a", "2")
	s.Due.After = time.Hour
	b.submit(s) // nobody needs to wake up for this one
	b.submit(task("a", "3"))
	want.Due = b.now()
	assert.Equal(t, want, receive(t, wakeups))
}

// receive waits for a wake-up. The time limit only bounds a test that fails.
func receive(t *testing.T, wakeups <-chan store.Wakeup) store.Wakeup {
	t.Helper()
	select {
	case w := <-wakeups:
		return w
	case <-time.After(10 * time.Second):
		t.Fatal("no wake-up")
		return store.Wakeup{}
	}
}

// testRace has eight goroutines claim and settle at the same time: each task runs exactly once.
func testRace(t *testing.T, b *bench) {
	b.with(Options{Partitions: 2})
	const n, workers = 400, 8
	var subs []store.Submission
	for i := range n {
		subs = append(subs, task(fmt.Sprintf("agent%d", i%37), fmt.Sprint(i)))
	}
	b.submit(subs...)
	var mu sync.Mutex
	runs := map[string]int{}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := 0; ; i++ {
				var requests []store.ClaimRequest
				for p := range 2 {
					// Nonces have to differ between workers, partitions and rounds,
					// and to be of the right length.
					requests = append(requests, store.ClaimRequest{
						Partition: p, Nonce: fmt.Sprintf("w%dp%di%012d", w, p, i)[:store.NonceLen-6] + fmt.Sprintf("%06d", i),
						Kinds: []string{"k"}, Limit: 7, Lease: lease,
					})
				}
				claims, err := b.store.Claim(t.Context(), requests)
				if !assert.NoError(t, err) {
					return
				}
				var settle []store.Settlement
				for _, c := range claims {
					for _, task := range c.Tasks {
						mu.Lock()
						runs[task.ID]++
						mu.Unlock()
						settle = append(settle, complete(task))
					}
				}
				if len(settle) == 0 {
					return
				}
				settled, err := b.store.Settle(t.Context(), settle)
				assert.NoError(t, err)
				// No lease runs out here, so no settlement may be refused.
				for _, s := range settled {
					assert.NoError(t, s.Err)
				}
			}
		})
	}
	wg.Wait()
	require.Len(t, runs, n)
	for id, k := range runs {
		require.Equal(t, 1, k, id)
	}
	assert.Equal(t, int64(n), b.stats().Completed)
}
