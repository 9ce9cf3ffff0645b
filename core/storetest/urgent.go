package storetest

// When a process that has slots for urgent tasks alone has to ask for these: as rarely as it can, and never too late.

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// urgent asks for tasks of level 1 alone.
func (b *bench) urgent() store.Claim {
	r := b.request(1)
	r.Urgent = true
	return b.claimWith(r)
}

// high is a task of level 1.
func high(agent, id string) store.Submission {
	s := task(agent, id)
	s.Level = store.LevelHigh
	return s
}

// testUrgentNext has a claim for urgent tasks say until when another one would be in vain.
func testUrgentNext(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"))
	assert.Equal(t, b.now().Add(time.Second), b.urgent().UrgentNext, "nothing else falls due")
	later := task("b", "1")
	later.Due.After = 300 * time.Millisecond
	b.submit(later)
	assert.Equal(t, b.now().Add(300*time.Millisecond), b.urgent().UrgentNext, "what falls due may be urgent")
	assert.Zero(t, b.claimWith(b.request(0)).UrgentNext, "of other claims nothing is said")
	b.submit(high("c", "1"))
	c := b.urgent()
	require.Len(t, c.Tasks, 1)
	assert.Zero(t, c.UrgentNext, "there may be more")

	b.complete(c)
	soon := high("a", "2") // behind the other one of its agent
	soon.Due.After = 200 * time.Millisecond
	b.submit(soon)
	assert.Equal(t, b.now().Add(200*time.Millisecond), b.urgent().UrgentNext)
	b.hold(store.Target{Agent: "d"}, moment.When{})
	b.submit(high("d", "1"))
	c = b.urgent()
	assert.Equal(t, 1, c.Parked)
	assert.Zero(t, c.UrgentNext, "what it has parked is out of the way")
	assert.NotZero(t, b.urgent().UrgentNext)
}

// testUrgentWakeups announces the first urgent task that is placed before those who wait for them would ask again, and no other.
func testUrgentWakeups(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"), high("r", "1"), task("few", "1"), task("few", "2"))
	c := b.urgent()
	require.Len(t, c.Tasks, 1, "it recurs")
	b.submit(high("parked", "1"))
	b.hold(store.Target{Agent: "parked"}, moment.When{})
	require.Equal(t, 1, b.urgent().Parked)
	wakeups, err := b.store.(store.Waker).Wakeups(b.Context())
	require.NoError(t, err)
	heard := func(what string, change func()) {
		require.NotZero(t, b.urgent().UrgentNext, what)
		change()
		assert.Equal(t, store.Wakeup{Urgent: true}, announced(t, wakeups), what)
		b.submit(high("again", what)) // none waits any more
		got := b.urgent()
		for len(got.Tasks) > 0 {
			b.complete(got)
			got = b.urgent()
		}
	}
	heard("a task is submitted", func() { b.submit(high("x", "1")) })
	heard("one of an agent that has others", func() { b.submit(high("few", "3")) })
	heard("one replaces another", func() { b.submit(b.anew(high("few", "2"))) })
	heard("a pause ends", func() { b.unhold(store.Target{Agent: "parked"}) })
	heard("one is due again", func() {
		s := again(c.Tasks[0], 0)
		require.NoError(t, b.settle(s)[0].Err)
	})
	late := high("late", "1")
	late.Due.After = time.Hour
	require.NotZero(t, b.urgent().UrgentNext)
	b.submit(late, task("plain", "1"), high("last", "1"))
	assert.Equal(t, store.Wakeup{Urgent: true}, announced(t, wakeups), "the first of level 1 that is due now")
	b.submit(high("another", "1")) // none waits any more
	select {
	case w := <-wakeups:
		assert.False(t, w.Urgent, "one that is due later is found by asking")
	default:
	}
}

// announced is the next wake-up that is about an urgent task.
func announced(t *testing.T, wakeups <-chan store.Wakeup) store.Wakeup {
	t.Helper()
	for {
		if w := receive(t, wakeups); w.Urgent {
			return w
		}
	}
}
