package storetest

// Signals: tasks that wait for what somebody else says.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// signal tells whoever waits for a key of agent a.
func (b *desk) signal(key, payload string) store.Signalled {
	b.Helper()
	out, err := b.store.Signal(b.Context(), []store.Signal{{Agent: "a", Key: key, Payload: []byte(payload), Keep: time.Hour}})
	require.NoError(b, err)
	return out[0]
}

// told is what a task of agent a was told; "-" for nothing yet.
func (b *sight) told(id, key string) string {
	b.Helper()
	out, err := b.store.Heard(b.Context(), []store.Wait{{Agent: "a", ID: id, Key: key}})
	require.NoError(b, err)
	if out[0] == nil {
		return "-"
	}
	return string(out[0].Payload)
}

// awaits has a claimed task wait for a key, for an hour.
func (b *bench) awaits(c *store.Claimed, key string, heard bool) store.Settled {
	b.Helper()
	return b.settle(store.Settlement{
		Run: c.Run, Verb: store.VerbAgain, Due: moment.When{After: time.Hour}, State: []byte("s"), Kind: c.Kind,
		Await: &store.Await{Key: key, Heard: heard},
	})[0]
}

// A signal makes the tasks due that wait for its key, and no others.
func testSignal(_ *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"), task("a", "2"), task("a", "other"), task("b", "1"))
	for _, c := range b.claim(4).Tasks {
		key := "k:1"
		if c.ID == "other" {
			key = "k"
		}
		b.awaits(&c, key, false)
	}
	assert.Empty(b, b.claim(4).Tasks)
	assert.Equal(b, "-", b.told("1", "k:1"))
	assert.Equal(b, store.Signalled{Code: store.SignalResumed, Resumed: 2}, b.signal("k:1", "yes\x00"))
	c := b.claim(4)
	assert.ElementsMatch(b, []string{"a/1", "a/2"}, names(c))
	for _, id := range []string{"1", "2"} {
		assert.Equal(b, "yes\x00", b.told(id, "k:1"))
		assert.Equal(b, "-", b.told(id, "k"), "another key")
	}
	// What it was told stays until a settlement says that it has heard it: the run may die, or be given back.
	b.clock.Advance(2 * time.Minute)
	c = b.claim(4)
	require.Len(b, c.Tasks, 2, "their leases are over")
	assert.Equal(b, "yes\x00", b.told("1", "k:1"))
	for i := range c.Tasks {
		b.settle(store.Settlement{Run: c.Tasks[i].Run, Verb: store.VerbAgain, Due: moment.When{After: time.Hour}, Kind: "k", Await: &store.Await{Heard: true}})
	}
	assert.Equal(b, "-", b.told("1", "k:1"))
	assert.Equal(b, store.Signalled{Code: store.SignalKept}, b.signal("k:1", "again"), "they wait for it no more")
	assert.Equal(b, store.Signalled{Code: store.SignalResumed, Resumed: 1}, b.signal("k", ""), "the other does")
	assert.Equal(b, []string{"a/other"}, names(b.claim(4)))
	assert.Empty(b, b.told("other", "k"), "an empty payload is one")
	b.audited()
}

// A signal for one wait is for no other wait, of this task or of another, and is not kept; one that has to be an approval is told by nothing else.
func testSignalToOneWait(_ *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"), task("a", "2"))
	say := func(n store.Signal) store.Signalled {
		n.Agent, n.Key, n.Payload, n.Keep = "a", "k", []byte("yes"), time.Hour
		out, err := b.store.Signal(b.Context(), []store.Signal{n})
		require.NoError(b, err)
		return out[0]
	}
	closed := store.Signalled{Code: store.SignalClosed}
	assert.Equal(b, closed, say(store.Signal{ID: "1", Wait: 7}), "it does not wait yet")
	wait := func(c *store.Claimed, fence store.Fence, approval bool) {
		b.settle(store.Settlement{
			Run: c.Run, Verb: store.VerbAgain, Due: moment.When{After: time.Hour}, State: []byte("s"), Kind: c.Kind,
			Await: &store.Await{Key: "k", Wait: fence, Approval: approval, Heard: true},
		})
	}
	for i, c := range b.claim(2).Tasks {
		wait(&c, 7+store.Fence(i), c.ID == "2")
	}
	assert.Equal(b, closed, say(store.Signal{ID: "1", Wait: 6}))
	assert.Equal(b, closed, say(store.Signal{ID: "3", Wait: 7}))
	assert.Equal(b, store.Signalled{Code: store.SignalUnapproved}, say(store.Signal{ID: "2", Wait: 8}))
	assert.Equal(b, store.Signalled{Code: store.SignalResumed, Resumed: 1}, say(store.Signal{Note: []byte("\x00ann")}), "the other wants an approval")
	assert.Equal(b, store.Signalled{Code: store.SignalUnapproved}, say(store.Signal{}), "and so nothing is kept")
	assert.Equal(b, closed, say(store.Signal{ID: "1", Wait: 7}), "it was told")
	out, err := b.store.Heard(b.Context(), []store.Wait{{Agent: "a", ID: "1", Key: "k"}})
	require.NoError(b, err)
	assert.Equal(b, &store.Told{Payload: []byte("yes"), Note: []byte("\x00ann")}, out[0])
	assert.Equal(b, store.Signalled{Code: store.SignalResumed, Resumed: 1}, say(store.Signal{ID: "2", Wait: 8, Approval: true}))

	// What came first counts for whoever waits first and takes it.
	for _, c := range b.claim(2).Tasks {
		b.settle(complete(c))
	}
	b.submit(task("a", "3"), task("a", "4"))
	assert.Equal(b, store.Signalled{Code: store.SignalKept}, say(store.Signal{}))
	tasks := b.claim(2).Tasks
	wait(&tasks[0], 9, true)
	assert.Equal(b, "-", b.told(tasks[0].ID, "k"), "it is no approval")
	wait(&tasks[1], 9, false)
	assert.Equal(b, "yes", b.told(tasks[1].ID, "k"))

	// One that has waited for too long and runs wants nothing any more.
	b.clock.Advance(time.Hour)
	require.Len(b, b.claim(2).Tasks, 2)
	assert.Equal(b, store.Signalled{Code: store.SignalKept}, say(store.Signal{}))
}

// A signal that comes first is kept for whoever waits first, and for a while.
func testEarlySignal(_ *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"), task("a", "2"))
	c := b.claim(2)
	assert.Equal(b, store.Signalled{Code: store.SignalKept}, b.signal("k", "first"))
	assert.Equal(b, store.Signalled{}, b.signal("k", "second"), "one is kept already")
	settled := b.awaits(&c.Tasks[0], "k", false)
	assert.Equal(b, b.now(), settled.Due, "it is due now")
	assert.Equal(b, "first", b.told(c.Tasks[0].ID, "k"))
	b.awaits(&c.Tasks[1], "k", false)
	assert.Equal(b, "-", b.told(c.Tasks[1].ID, "k"), "it was for the first")
	assert.Equal(b, []string{"a/" + c.Tasks[0].ID}, names(b.claim(2)))
	assert.Equal(b, store.Signalled{Code: store.SignalResumed, Resumed: 1}, b.signal("k", "third"))

	assert.Equal(b, store.Signalled{Code: store.SignalKept}, b.signal("late", "x"))
	b.clock.Advance(time.Hour)
	assert.Equal(b, store.Signalled{Code: store.SignalKept}, b.signal("late", "y"), "the first is forgotten")
}

// A task that waits is due at the end of its patience, and is not told any more once its run has begun.
func testSignalTooLate(_ *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"))
	b.awaits(&b.claim(1).Tasks[0], "k", false)
	b.clock.Advance(time.Hour)
	c := b.claim(1)
	require.Len(b, c.Tasks, 1)
	assert.Equal(b, store.Signalled{Code: store.SignalKept}, b.signal("k", "late"), "it runs")
	assert.Equal(b, "-", b.told("1", "k"))
	settled := b.awaits(&c.Tasks[0], "k", true)
	assert.Equal(b, b.now(), settled.Due, "it waits once more")
	assert.Equal(b, "late", b.told("1", "k"))
}

// Whatever ends or replaces a task that waits, no signal is for it any more.
func testSignalEnded(t *testing.T, b *bench) {
	for name, end := range map[string]func(){
		"deleted":   func() { b.delete(about("1")) },
		"cancelled": func() { c := b.cancel(); c.Group = ""; b.cancelled(c) },
		"replaced": func() {
			next := task("a", "1")
			next.Conflict, next.Version, next.Due = store.ConflictReplace, b.one("a", "1").Version, moment.When{After: 2 * time.Hour}
			b.submit(next)
		},
		"replaced while it runs": func() {
			b.run("a", "1", false)
			c := b.claim(1)
			next := task("a", "1")
			next.Conflict, next.Version, next.Due = store.ConflictReplace, b.one("a", "1").Version, moment.When{After: 2 * time.Hour}
			b.submit(next)
			b.settle(store.Settlement{Run: c.Tasks[0].Run, Verb: store.VerbAgain, Kind: "k", Renewed: true, Await: &store.Await{Key: "k"}})
		},
		"replaced while a run has it that dies": func() {
			b.run("a", "1", false)
			b.claim(1)
			next := task("a", "1")
			next.Conflict, next.Version, next.Due = store.ConflictReplace, b.one("a", "1").Version, moment.When{After: 2 * time.Hour}
			b.submit(next)
			b.clock.Advance(2 * time.Minute)
			b.claim(1)
		},
		"completed": func() {
			b.run("a", "1", false)
			b.complete(b.claim(1))
		},
	} {
		b.with(Options{})
		b.submit(task("a", "1"))
		b.awaits(&b.claim(1).Tasks[0], "k", false)
		end()
		assert.Equal(t, store.Signalled{Code: store.SignalKept}, b.signal("k", "x"), name)
		assert.Empty(t, b.claim(1).Tasks, name)
		b.audited()
	}
}

// A signal to many takes several steps, and one that is held stays held.
func testSignalMany(_ *testing.T, b *bench) {
	b.with(Options{MaxTasks: 1000})
	for i := range 250 {
		b.submit(task("a", fmt.Sprint(i)))
	}
	for range 3 {
		for _, c := range b.claim(100).Tasks {
			b.awaits(&c, "k", false)
		}
	}
	assert.Equal(b, store.Signalled{Code: store.SignalResumed, Resumed: 100, More: true}, b.signal("k", "x"))
	assert.Equal(b, store.Signalled{Code: store.SignalResumed, Resumed: 100, More: true}, b.signal("k", "x"))
	assert.Equal(b, store.Signalled{Code: store.SignalResumed, Resumed: 50}, b.signal("k", "x"))
	b.hold(store.Target{Agent: "a"}, moment.When{})
	assert.Empty(b, b.claim(100).Tasks, "they are held")
	b.audited()
}

// A signal that a page of tasks was told is for nobody who waits later, also if none of those that were left waits any more.
func testSignalRest(_ *testing.T, b *bench) {
	b.with(Options{MaxTasks: 1000})
	for i := range 100 {
		b.submit(task("a", fmt.Sprint(i)))
	}
	for range 2 {
		for _, c := range b.claim(50).Tasks {
			b.awaits(&c, "k", false)
		}
	}
	b.submit(task("a", "late"))
	b.settle(store.Settlement{
		Run: b.claim(1).Tasks[0].Run, Verb: store.VerbAgain, Due: moment.When{After: time.Second}, State: []byte("s"), Kind: "k", Await: &store.Await{Key: "k"},
	})
	b.clock.Advance(time.Second)
	require.Len(b, b.claim(1).Tasks, 1, "it has waited for too long, and runs")
	assert.Equal(b, store.Signalled{Code: store.SignalResumed, Resumed: 100}, b.signal("k", "x"), "nobody else is to be told")
	rest := []store.Signal{{Agent: "a", Key: "k", Payload: []byte("x"), Keep: time.Hour, Rest: true}}
	out, err := b.store.Signal(b.Context(), rest)
	require.NoError(b, err)
	assert.Equal(b, store.Signalled{Code: store.SignalResumed}, out[0], "the rest of a signal is not kept")
	assert.Equal(b, store.Signalled{Code: store.SignalKept}, b.signal("k", "next"))
	out, err = b.store.Signal(b.Context(), rest)
	require.NoError(b, err)
	assert.Equal(b, store.Signalled{Code: store.SignalResumed}, out[0], "nor refused because another one is")
}

// Whoever sleeps until a task is due is woken when a signal, or a plan, makes it due sooner.
func testSignalWakes(t *testing.T, b *bench) {
	b.with(Options{})
	waker, ok := b.store.(store.Waker)
	require.True(t, ok)
	wakeups, err := waker.Wakeups(b.Context())
	require.NoError(t, err)
	b.submit(task("a", "1"))
	receive(t, wakeups)
	b.awaits(&b.claim(1).Tasks[0], "k", false)
	assert.Equal(t, b.now().Add(time.Hour), b.look())
	b.clock.Advance(time.Second)
	for _, sooner := range []func() moment.Millis{
		func() moment.Millis {
			due, was := b.now().Add(time.Minute), b.one("a", "1")
			b.effect(b.store.Replan(t.Context(), []store.Replan{{Agent: "a", ID: "1", Version: was.Version, Was: was.Due, Due: due, State: []byte("s")}}))
			return due
		},
		func() moment.Millis { b.signal("k", "x"); return b.now() },
	} {
		due := sooner()
		for receive(t, wakeups).Due != due { // an earlier one
			continue
		}
	}
}

// A message sends one signal to an agent, as long as it is remembered: sent again it tells no task and is not kept. More tasks than one step reaches are
// reached all the same.
func testSignalOnce(_ *testing.T, b *bench) {
	b.with(Options{})
	send := func(message, key string, rest bool) store.Signalled {
		out, err := b.store.Signal(b.Context(), []store.Signal{{
			Agent: "a", Key: key, Payload: []byte("yes"), Keep: time.Hour, Rest: rest, Message: message, Remember: time.Hour,
		}})
		require.NoError(b, err)
		return out[0]
	}
	nothing, kept := store.Signalled{Code: store.SignalResumed}, store.Signalled{Code: store.SignalKept}
	assert.Equal(b, kept, send("1", "k", false))
	assert.Equal(b, nothing, send("1", "k", false), "and it is not refused, though one is kept")
	assert.Equal(b, store.Signalled{Code: store.SignalTaken}, send("2", "k", false))
	assert.Equal(b, kept, send("2", "other", false), "what was refused is not remembered")
	b.clock.Advance(61 * time.Minute)
	assert.Equal(b, kept, send("1", "k", false), "it is forgotten")

	tasks := make([]store.Submission, 102)
	for i := range tasks {
		tasks[i] = task("a", fmt.Sprintf("w%03d", i))
	}
	b.submit(tasks...)
	for _, c := range b.claim(len(tasks)).Tasks {
		b.settle(store.Settlement{Run: c.Run, Verb: store.VerbAgain, Due: moment.When{After: time.Hour}, State: []byte("s"), Kind: c.Kind, Await: &store.Await{Key: "all"}})
	}
	assert.Equal(b, store.Signalled{Code: store.SignalResumed, Resumed: 100, More: true}, send("3", "all", false))
	assert.Equal(b, store.Signalled{Code: store.SignalResumed, Resumed: 2}, send("3", "all", false), "its process died before it had reached all")
	assert.Equal(b, nothing, send("3", "all", false))
	assert.Equal(b, nothing, send("4", "all", true), "all are reached: that ends it")
	assert.Equal(b, nothing, send("4", "all", false))
	b.audited()
}
