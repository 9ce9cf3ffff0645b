package storetest

// Roots: how many tasks the runs below a task submit within an hour.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/breaker"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// below is a task that a run below a root has submitted.
func below(root string, most int, s store.Submission) store.Submission {
	s.Root = &breaker.Root{Agent: "root", ID: root, Most: most}
	return s
}

// noRoom submits tasks that a root has no room for, and says when it has some.
func (b *bench) noRoom(most int, tasks ...store.Submission) moment.Millis {
	b.Helper()
	_, err := b.store.Submit(b.Context(), tasks)
	var full *breaker.Error
	require.ErrorAs(b, err, &full)
	assert.Equal(b, breaker.Error{Agent: "root", ID: "r:1", Limit: most, Until: full.Until}, *full)
	return full.Until
}

// testRoot submits as much as a root may have, by one and by several, and more.
func testRoot(t *testing.T, b *bench) {
	b.with(Options{})
	const most = 5
	mine := func(id string) store.Submission { return below("r:1", most, task("a", id)) }
	b.submit(mine("1"))
	b.submit(mine("2"), mine("3"), task("a", "free"))
	b.noRoom(most, task("a", "7"), mine("4"), mine("5"), mine("6"))
	for _, id := range []string{"4", "5", "6", "7"} {
		assert.Empty(t, b.status("a", id), "nothing of a refused call is stored")
	}
	b.submit(mine("1"), mine("2"), mine("3")) // what exists is not submitted again
	b.complete(b.claim(10))
	b.submit(mine("1"), mine("4"), mine("3")) // nor what has ended
	replacing := mine("4")
	replacing.Conflict, replacing.Body, replacing.Version = store.ConflictReplace, []byte("new"), b.one("a", "4").Version
	assert.True(t, b.submit(replacing)[0].Replaced, "what replaces a task counts too")
	b.noRoom(most, mine("5"))
	replacing.Version = b.one("a", "4").Version
	b.noRoom(most, replacing)
	assert.Equal(t, []byte("new"), b.read("a", "4")[0].Body)
	assert.Equal(t, []store.Submitted{{}}, b.submit(mine("4")), "what exists needs no room")
	_, c := b.start(mine("at once"))
	assert.Equal(t, most, func() int {
		var full *breaker.Error
		require.ErrorAs(t, c.Err, &full)
		return full.Limit
	}())
	b.submit(below("r", most, task("a", "other")), below("r:1", most+1, task("a", "more")), task("a", "6"))
}

// testRootWindow follows a root through some hours: no hour of any begin has more than it may have.
func testRootWindow(t *testing.T, b *bench) {
	b.with(Options{})
	const most = 6
	n := 0
	mine := func() store.Submission { n++; return below("r:1", most, task("a", fmt.Sprint(n))) }
	var at []moment.Millis
	place := func(want int) {
		for range want {
			b.submit(mine())
			at = append(at, b.now())
		}
	}
	place(2)
	b.clock.Advance(31 * time.Minute)
	place(3)
	b.clock.Advance(20 * time.Minute)
	place(1)
	for range 5 {
		until := b.noRoom(most, mine())
		assert.Greater(t, until, b.now())
		b.clock.Advance(until.Sub(b.now()) - time.Millisecond)
		b.noRoom(most, mine())
		b.clock.Advance(time.Millisecond)
		placed := 0
		for ; placed < most; placed++ {
			if _, err := b.store.Submit(b.Context(), []store.Submission{mine()}); err != nil {
				break
			}
			at = append(at, b.now())
		}
		assert.Positive(t, placed, "there is room when the refusal has said")
	}
	for i := range at[:len(at)-most] {
		assert.GreaterOrEqual(t, at[i+most].Sub(at[i]), breaker.Window)
		assert.LessOrEqual(t, at[i+most].Sub(at[i]), breaker.Window+breaker.Span, "and no longer than it has to")
	}
	b.clock.Advance(24 * time.Hour)
	place(most)
}

// testRootOfPartitions counts in each partition by itself, and checks all of them before the first stores.
func testRootOfPartitions(t *testing.T, b *bench) {
	b.with(Options{Partitions: 2})
	agents := map[int]string{}
	for i := 0; len(agents) < 2; i++ {
		agents[store.PartitionOf(fmt.Sprint(i), 2)] = fmt.Sprint(i)
	}
	mine := func(partition int, id string) store.Submission { return below("r:1", 2, task(agents[partition], id)) }
	b.submit(mine(0, "1"), mine(1, "1"), mine(0, "2"))
	b.noRoom(2, mine(1, "2"), mine(0, "3"))
	assert.Empty(t, b.status(agents[1], "2"))
	b.submit(mine(1, "2"))
	b.noRoom(2, mine(1, "3"))
}
