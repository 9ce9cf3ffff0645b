package storetest

// A task that was cancelled while it runs: nothing but its end is accepted.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// renamed is a new definition of task a/1, told apart by its body, that was seen as it is now.
// Its version is read at that moment, as a caller would.
func (b *bench) renamed(body string, due time.Duration) store.Submission {
	b.Helper()
	s := within(task("a", "1"), due)
	s.Body, s.Conflict, s.Version = []byte(body), store.ConflictReplace, b.one("a", "1").Version
	return s
}

// A task that is told to end while it runs ends: it is neither replaced nor due again until it has.
// Each way to submit is tried, as a store may take different ways for one task,
// for several and for several partitions.
func testEnding(t *testing.T, b *bench) {
	b.with(Options{Partitions: 4})
	b.submit(task("a", "1"))
	r := b.request(10)
	r.Partition = store.PartitionOf("a", 4)
	c := b.claimWith(r)
	require.Len(t, c.Tasks, 1)
	require.Equal(t, store.EffectOrdered, b.cancelled(b.cancel()).Code)
	before := b.one("a", "1")
	anew := b.renamed("new", time.Hour)
	b.refused("1", anew) // alone, with others of its partition, and of other partitions
	b.refused("1", task("a", "2"), anew)
	b.refused("1", task("b", "1"), task("c", "1"), task("d", "1"), task("e", "1"), anew)
	// A stale version is refused as such first: the caller has to read the task again in any case.
	stale := anew
	stale.Version = "x"
	_, err := b.store.Submit(t.Context(), []store.Submission{stale})
	require.ErrorIs(t, err, store.ErrChanged)
	for _, queue := range []bool{false, true} {
		assert.Equal(t, store.Effect{Code: store.EffectEnding}, b.run("a", "1", queue))
	}
	assert.Equal(t, before, b.one("a", "1"), "nothing has changed")
	assert.Equal(t, int64(1), b.stats().Submitted)
	// In the end it settles as cancelled, and its id can be used again.
	b.settleCancelled(c.Tasks[0])
	b.ended(store.Settlement{Run: c.Tasks[0].Run, Kind: "k", Verb: store.VerbCancel, Record: []byte("r")})
	assert.True(t, b.submit(b.renamed("new", 0))[0].Created, "it has ended")
}

// testOrders gives a task that runs one order after another: the last definition counts, and so does a cancel.
// The run is ended twice: by a settlement, and by the death of its process.
func testOrders(t *testing.T, b *bench) {
	replace := func(body string, due time.Duration) func() {
		return func() { require.True(t, b.submit(b.renamed(body, due))[0].Replaced) }
	}
	run := func() { require.Equal(t, store.EffectOrdered, b.run("a", "1", true).Code) }
	cancel := func() { require.Equal(t, store.EffectOrdered, b.cancelled(b.cancel()).Code) }
	// Maps have no order, so no case may depend on another.
	for name, c := range map[string]struct {
		orders []func()
		body   string // of the task afterwards; empty if it is cancelled
		due    time.Duration
	}{
		"replace twice":         {[]func(){replace("one", time.Minute), replace("two", time.Hour)}, "two", time.Hour},
		"replace, run":          {[]func(){replace("one", time.Hour), run}, "one", 0},
		"run, replace":          {[]func(){run, replace("one", time.Hour)}, "one", time.Hour},
		"replace, run, replace": {[]func(){replace("one", time.Hour), run, replace("two", time.Hour)}, "two", time.Hour},
		"run, cancel":           {[]func(){run, cancel}, "", 0},
		"replace, cancel":       {[]func(){replace("one", time.Hour), cancel}, "", 0},
		"replace, run, cancel":  {[]func(){replace("one", time.Hour), run, cancel}, "", 0},
		"run, replace, cancel":  {[]func(){run, replace("one", time.Hour), cancel}, "", 0},
		"cancel, cancel":        {[]func(){cancel, cancel}, "", 0},
		"replace twice, cancel": {[]func(){replace("one", 0), replace("two", 0), cancel}, "", 0},
	} {
		for _, crash := range []bool{false, true} {
			b.with(Options{})
			b.submit(task("a", "1"))
			taken := b.take("a/1").Tasks[0]
			for _, order := range c.orders {
				order()
			}
			b.afterOrders(name, taken, crash, c.body, c.due)
		}
	}
}

// afterOrders ends the run of a task that has got orders, and checks what becomes of it.
// A cancelled run that died is claimed again, only to be ended.
func (b *bench) afterOrders(name string, taken store.Claimed, crash bool, body string, due time.Duration) {
	b.Helper()
	due2 := b.now().Add(due)
	if crash {
		b.clock.Advance(lease)
	}
	if crash && body == "" {
		taken = b.take("a/1").Tasks[0]
		require.True(b, taken.Cancelled, name)
	}
	switch {
	case body == "":
		b.settleCancelled(taken)
		b.ended(store.Settlement{Run: taken.Run, Kind: "k", Verb: store.VerbCancel, Record: []byte("r")})
		assert.Equal(b, store.StatusCancelled, b.status("a", "1"), name)
	// The first settlement is refused, as it does not know the new
	// definition; the second says that it does.
	case !crash:
		require.ErrorIs(b, b.settle(complete(taken))[0].Err, store.ErrReplaced, name)
		s := again(taken, 0)
		s.Renewed = true
		require.Equal(b, due2, b.ended(s), name)
	}
	if body != "" {
		b.clock.Advance(due)
		c := b.take("a/1")
		assert.Equal(b, body, string(c.Tasks[0].Body), name)
		assert.False(b, c.Tasks[0].Cancelled, name)
		b.ended(complete(c.Tasks[0]))
	}
	// Nothing is left over that could become due a day later.
	b.clock.Advance(24 * time.Hour)
	assert.Empty(b, b.claim(10).Tasks, name)
}

// A task that was told to end and whose run has died ends although it is held, as nothing of it runs any more.
// Nobody should have to end a pause before a cancel takes effect.
func testCancelCrashHeld(t *testing.T, b *bench) {
	for _, several := range []bool{false, true} {
		for _, scope := range holdable[:4] {
			b.with(Options{})
			s := keyed()
			b.submit(s)
			if several {
				b.submit(within(task("a", "2"), time.Hour))
			}
			require.Len(t, b.claim(10).Tasks, 1)
			require.Equal(t, store.EffectOrdered, b.cancelled(b.cancel()).Code)
			b.hold(scope, moment.When{})
			b.clock.Advance(lease)
			// A claim that may take nothing still takes back what has died.
			r := b.request(10) // takes back what has died, and nothing else
			r.Kinds, r.Leave = []string{"other"}, []string{"k"}
			require.Equal(t, 1, b.claimWith(r).Recovered)
			got := b.one("a", "1")
			require.Equal(t, store.StatusWaiting, got.Status)
			assert.Equal(t, []byte("told"), got.Order, "it is still told to end")
			assert.Equal(t, store.Effect{Code: store.EffectEnding}, b.run("a", "1", true))
			c := b.take("a/1")
			assert.True(t, c.Tasks[0].Cancelled)
			b.ended(store.Settlement{Run: c.Tasks[0].Run, Kind: "k", Verb: store.VerbCancel, Record: []byte("r")})
			assert.Equal(t, store.StatusCancelled, b.status("a", "1"))
		}
	}
}

// An order to run a task that is held is about the holds of its time: it does not outlive a resume to meet the next hold.
// Otherwise an order that was given during one pause would break the next one, days later.
func testRunStopped(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"))
	everything := store.Target{}
	b.hold(everything, moment.When{After: time.Minute})
	assert.Equal(t, store.Effect{Code: store.EffectStopped}, b.run("a", "1", false), "claims take nothing while everything is held")
	assert.Equal(t, store.Effect{}, b.run("a", "2", false))
	assert.Equal(t, store.EffectDone, b.unhold(everything))
	assert.Equal(t, store.EffectDone, b.run("a", "1", false).Code)
	b.hold(everything, moment.When{})
	assert.Empty(t, b.claim(10).Tasks, "the last word counts")
	assert.Equal(t, store.EffectDone, b.unhold(everything))
	c := b.take("a/1")
	b.hold(everything, moment.When{})
	assert.Equal(t, store.EffectRunning, b.run("a", "1", false).Code, "it runs already")
	assert.Equal(t, store.EffectOrdered, b.run("a", "1", true).Code, "it is due again when it may be")
	b.ended(complete(c.Tasks[0]))
}

// The last word counts also if a pause, an order to run and a pause come within one millisecond.
func testRunHeldInAMoment(t *testing.T, b *bench) {
	for _, scope := range holdable[:4] {
		for _, before := range holdable[:4] {
			b.with(Options{})
			b.submit(keyed())
			b.hold(before, moment.When{})
			for range 20 {
				require.Equal(t, store.EffectDone, b.run("a", "1", false).Code)
				require.Equal(t, store.EffectDone, b.unhold(before))
				b.hold(scope, moment.When{})
				require.Empty(t, b.claim(10).Tasks, "%v, then %v: the last word counts", before, scope)
				b.hold(before, moment.When{})
				require.Equal(t, store.EffectDone, b.run("a", "1", false).Code)
				b.hold(before, moment.When{})
				require.Empty(t, b.claim(10).Tasks, "%v, twice: the last word counts", before)
			}
		}
	}
}

func testRunHeldOnce(t *testing.T, b *bench) {
	for _, scope := range holdable[:4] {
		for _, parked := range []bool{false, true} {
			b.with(Options{})
			b.submit(keyed())
			hold := func() {
				b.hold(scope, moment.When{})
				if parked {
					b.claim(10)
				}
			}
			hold()
			require.Equal(t, store.EffectDone, b.run("a", "1", false).Code)
			b.clock.Advance(time.Second)
			require.Equal(t, store.EffectDone, b.unhold(scope))
			hold()
			assert.Empty(t, b.claim(10).Tasks, "%v: the hold is a new one", scope)
			require.Equal(t, store.EffectDone, b.run("a", "1", false).Code)
			b.clock.Advance(time.Second)
			hold() // again: what was told to run meanwhile is held too
			assert.Empty(t, b.claim(10).Tasks, "%v: the last word counts", scope)
			require.Equal(t, store.EffectDone, b.run("a", "1", false).Code)
			b.clock.Advance(time.Second)
			other := store.Target{Kind: "other"}
			b.hold(other, moment.When{})
			c := b.take("a/1")
			b.hold(store.Target{Agent: "a", ID: "1"}, moment.When{})
			s := again(c.Tasks[0], 0)
			s.Verb, s.Due.At = store.VerbRelease, c.Tasks[0].Due
			b.ended(s)
			// A hold of the task itself would be the one that was set before the release.
			if scope.ID == "" {
				assert.Empty(t, b.claim(10).Tasks, "%v: it was paused after it was asked to run, and given back", scope)
			}
		}
	}
}
