package storetest

// Activity tasks.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/storetest/given"
)

// pulse is a touch that is quiet for a minute.
// It throttles: later touches do not move the run.
func pulse(agent, id string) store.Touch {
	return given.Touching(task(agent, id), store.Pulse{Delay: time.Minute})
}

// debounced is a touch whose run waits until a minute has passed without
// another, for two and a half minutes at most.
func debounced(agent string) store.Touch {
	s := pulse(agent, "1")
	s.Pulse.MaxWait, s.Pulse.Debounce = 150*time.Second, true
	return s
}

// touch sends one touch, which must not be refused.
func (b *desk) touch(t store.Touch) store.Touched {
	b.Helper()
	out, err := b.store.Touch(b.Context(), []store.Touch{t})
	require.NoError(b, err)
	require.Len(b, out, 1)
	return out[0]
}

// testTouchInLine puts a debounced run off that waits in line for a limit: it is not due any more, and nothing takes it before its time.
func testTouchInLine(_ *testing.T, b *bench) {
	b.with(Options{})
	_, err := b.store.Limit(b.Context(), []bound.LimitChange{{Limit: bound.Limit{About: bound.LimitTarget{Kind: "k"}, Concurrency: 1}}})
	require.NoError(b, err)
	b.touch(debounced("a"))
	b.touch(debounced("b"))
	b.clock.Advance(time.Minute)
	c := b.claim(2)
	require.Equal(b, []string{"a/1"}, names(c), "the other one waits in line")
	b.clock.Advance(time.Second)
	due := b.touch(debounced("b")).Due
	assert.Equal(b, b.now().Add(time.Minute), due)
	b.complete(c)
	assert.Empty(b, b.claim(2).Tasks, "it is not due")
	b.audited()
	b.clock.Advance(time.Minute)
	assert.Equal(b, []string{"b/1"}, names(b.claim(2)))
}

// rested ends the run of an activity task: it rests for a day, and may not run again before the floor.
// A day is how long core lets activity tasks rest before it forgets them.
func rested(t store.Claimed, floor moment.Millis, p store.Pulse) store.Settlement {
	s := again(t, 24*time.Hour)
	s.Verb, s.Floor = store.VerbRest, &store.Floor{At: floor, Reason: store.ReasonInterval, Pulse: p}
	return s
}

// booked is the answer to a touch that booked a run.
func booked(due moment.Millis, reason store.Reason) store.Touched {
	return store.Touched{Booked: true, Due: due, Reason: reason}
}

// active opens a store in which activity task a/1 runs for the first time; with another task of its agent, or not.
func (b *bench) active(several bool) store.Claim {
	b.Helper()
	b.with(Options{})
	if several {
		b.submit(within(task("a", "2"), 240*time.Hour))
	}
	b.touch(pulse("a", "1"))
	b.clock.Advance(time.Minute)
	return b.take("a/1")
}

// testTouchThrottle touches again and again: the run stays where the first touch has put it.
func testTouchThrottle(t *testing.T, b *bench) {
	for _, several := range []bool{false, true} {
		b.with(Options{})
		if several {
			b.submit(within(task("a", "2"), time.Hour))
		}
		s := pulse("a", "1")
		due := b.now().Add(time.Minute)
		assert.Equal(t, booked(due, store.ReasonActivity), b.touch(s))
		assert.Equal(t, due, b.look())
		for range 2 {
			b.clock.Advance(29 * time.Second)
			assert.Equal(t, store.Touched{Due: due, Reason: store.ReasonWaiting}, b.touch(s), "it is due after the first")
		}
		got := b.one("a", "1")
		assert.False(t, got.Resting)
		assert.Nil(t, got.State)
		b.clock.Advance(time.Second)
		assert.Empty(t, b.claim(10).Tasks)
		b.clock.Advance(time.Second)
		c := b.take("a/1")
		assert.Equal(t, due, c.Tasks[0].Due)
		assert.Equal(t, s.Body, c.Tasks[0].Body)
		b.ended(complete(c.Tasks[0]))
		b.clock.Advance(time.Second)
		assert.True(t, b.touch(s).Booked, "one that has ended begins anew")
	}
}

// testTouchDebounce touches again and again: each touch moves the run, up to a
// bound and never to an earlier time.
func testTouchDebounce(t *testing.T, b *bench) {
	for _, several := range []bool{false, true} {
		b.with(Options{})
		if several {
			b.submit(within(task("a", "2"), time.Hour))
		}
		s := debounced("a")
		first := b.now()
		assert.Equal(t, booked(first.Add(time.Minute), store.ReasonActivity), b.touch(s))
		for range 2 {
			b.clock.Advance(40 * time.Second)
			assert.Equal(t, store.Touched{Due: b.now().Add(time.Minute), Reason: store.ReasonWaiting}, b.touch(s), "after the last")
		}
		sooner := debounced("a")
		sooner.Pulse.Delay = time.Second
		assert.Equal(t, b.now().Add(time.Minute), b.touch(sooner).Due, "never earlier")
		b.clock.Advance(40 * time.Second)
		assert.Equal(t, first.Add(150*time.Second), b.touch(s).Due, "but not for ever")
		b.clock.Advance(29 * time.Second)
		assert.Equal(t, first.Add(150*time.Second), b.touch(s).Due)
		assert.Empty(t, b.claim(10).Tasks)
		b.clock.Advance(time.Second)
		assert.Equal(t, first.Add(150*time.Second), b.take("a/1").Tasks[0].Due)
	}
}

// testTouchRunning touches a task that runs: one run follows, whatever the number of touches.
func testTouchRunning(t *testing.T, b *bench) {
	for _, several := range []bool{false, true} {
		for _, s := range []store.Touch{pulse("a", "1"), debounced("a")} {
			c := b.active(several)
			first := b.now()
			assert.Equal(t, store.Touched{Booked: true, Reason: store.ReasonRunning}, b.touch(s))
			b.clock.Advance(10 * time.Second)
			assert.Equal(t, store.Touched{Reason: store.ReasonRunning}, b.touch(s), "one run follows, not two")
			due := first.Add(time.Minute)
			if s.Pulse.Debounce {
				due = b.now().Add(time.Minute)
			}
			assert.Equal(t, due, b.ended(rested(c.Tasks[0], b.now(), s.Pulse)))
			assert.False(t, b.one("a", "1").Resting)
			assert.Equal(t, store.ReasonWaiting, b.touch(pulse("a", "1")).Reason)
			b.clock.Advance(due.Sub(b.now()))
			c = b.take("a/1")
			b.ended(rested(c.Tasks[0], b.now(), s.Pulse))
			assert.True(t, b.one("a", "1").Resting, "that was all")
		}
	}
}

// testTouchRunningBounds looks at when the run that follows is due: not after MaxWait,
// not before the floor, not in the past.
func testTouchRunningBounds(t *testing.T, b *bench) {
	c := b.active(false)
	first := b.now()
	s := debounced("a")
	b.touch(s)
	for range 4 {
		b.clock.Advance(25 * time.Second)
		b.extend(c.Fence)
		b.touch(s)
	}
	assert.Equal(t, first.Add(150*time.Second), b.ended(rested(c.Tasks[0], first, s.Pulse)), "MaxWait after the first")

	c = b.active(false)
	b.touch(pulse("a", "1"))
	floor := b.now().Add(time.Hour)
	assert.Equal(t, floor, b.ended(rested(c.Tasks[0], floor, store.Pulse{Delay: time.Minute})), "never before the floor")
	assert.Equal(t, store.Touched{Due: floor, Reason: store.ReasonInterval}, b.touch(pulse("a", "1")))

	c = b.active(false)
	b.touch(pulse("a", "1"))
	for range 3 {
		b.clock.Advance(25 * time.Second)
		b.extend(c.Fence)
	}
	assert.Equal(t, b.now(), b.ended(rested(c.Tasks[0], 1, store.Pulse{Delay: time.Minute})), "nor in the past")
	b.take("a/1")
}

// testTouchResting lets a task rest: it has a count of its own, is woken by a touch,
// and is due by itself after a long rest.
func testTouchResting(t *testing.T, b *bench) {
	for _, several := range []bool{false, true} {
		c := b.active(several)
		rest := b.now().Add(24 * time.Hour)
		assert.Equal(t, rest, b.ended(rested(c.Tasks[0], b.now().Add(time.Hour), store.Pulse{Delay: time.Minute})))
		got := b.one("a", "1")
		assert.Equal(t, [2]any{true, rest}, [2]any{got.Resting, got.Due})
		st := b.stats()
		assert.Equal(t, [3]int64{1, 1, b.kind("k").Live - b.kind("k").Running - 1}, [3]int64{st.Resting, b.kind("k").Resting, st.Waiting}, "it has a count of its own")
		// The touch brings a new body, which its run gets.
		s := pulse("a", "1")
		s.Body = []byte("another body")
		floor := b.now().Add(time.Hour)
		assert.Equal(t, booked(floor, store.ReasonInterval), b.touch(s), "not before the floor")
		got = b.one("a", "1")
		assert.Equal(t, [3]any{false, floor, "another body"}, [3]any{got.Resting, got.Due, string(got.Body)})
		assert.Zero(t, b.stats().Resting+b.kind("k").Resting)
		assert.Equal(t, store.Touched{Due: floor, Reason: store.ReasonInterval}, b.touch(s))
		assert.Equal(t, floor, b.look())
		b.clock.Advance(time.Hour)
		c = b.take("a/1")
		assert.Equal(t, "another body", string(c.Tasks[0].Body))

		b.ended(rested(c.Tasks[0], b.now().Add(time.Second), store.Pulse{Delay: time.Minute}))
		b.clock.Advance(time.Minute)
		assert.Equal(t, booked(b.now().Add(time.Minute), store.ReasonActivity), b.touch(pulse("a", "1")))
		b.clock.Advance(time.Minute)
		c = b.take("a/1")
		// Without a touch it is claimed when the rest is over, so that core can forget it.
		b.ended(rested(c.Tasks[0], b.now(), store.Pulse{Delay: time.Minute}))
		b.clock.Advance(24*time.Hour - time.Millisecond)
		assert.Empty(t, b.claim(10).Tasks)
		b.clock.Advance(time.Millisecond)
		assert.Len(t, b.take("a/1").Tasks, 1, "it has rested for long enough")
	}
}

// testTouchAtRestsEnd books a run for the very time at which the rest ends: both have to be told apart.
func testTouchAtRestsEnd(t *testing.T, b *bench) {
	for _, several := range []bool{false, true} {
		c := b.active(several)
		rest := b.ended(rested(c.Tasks[0], b.now(), store.Pulse{Delay: time.Minute}))
		b.clock.Advance(rest.Sub(b.now()) - time.Minute)
		assert.Equal(t, booked(rest+1, store.ReasonActivity), b.touch(pulse("a", "1")), "so that a claim can tell it from the end of the rest")
		b.clock.Advance(time.Minute + time.Millisecond)
		assert.Equal(t, rest+1, b.take("a/1").Tasks[0].Due)
	}
}

// testTouchKeepsKind touches with another kind and level: only the body is taken.
func testTouchKeepsKind(t *testing.T, b *bench) {
	for _, several := range []bool{false, true} {
		c := b.active(several)
		b.ended(rested(c.Tasks[0], b.now(), store.Pulse{}))
		b.hold(store.Target{Kind: "k"}, moment.When{})
		b.run("a", "1", false)
		b.ended(rested(b.take("a/1").Tasks[0], b.now(), store.Pulse{}))
		before := b.one("a", "1")
		s := pulse("a", "1")
		s.Kind, s.Level, s.Body = "other", store.LevelHigh, []byte("new body")
		b.touch(s)
		got := b.one("a", "1")
		assert.Equal(t, [3]any{before.Kind, before.Key, before.Level}, [3]any{got.Kind, got.Key, got.Level}, "only the body is new")
		assert.Equal(t, s.Body, got.Body)
		b.unhold(store.Target{Kind: "k"})
		b.clock.Advance(time.Minute)
		b.complete(b.take("a/1"))
		assert.Zero(t, b.kind("k").Running+b.kind("other").Live)
	}
}

// testTouchCooling touches a task that failed: its retry is not moved,
// and the answer says why it waits.
func testTouchCooling(t *testing.T, b *bench) {
	c := b.active(false)
	until := b.now().Add(time.Hour)
	s := again(c.Tasks[0], time.Hour)
	s.Floor = &store.Floor{At: until, Reason: store.ReasonCooling, Pulse: store.Pulse{Delay: time.Minute}}
	b.touch(pulse("a", "1"))
	assert.Equal(t, until, b.ended(s), "a retry is due when it says, touched or not")
	assert.False(t, b.one("a", "1").Resting)
	assert.Equal(t, store.Touched{Due: until, Reason: store.ReasonCooling}, b.touch(pulse("a", "1")))
	b.clock.Advance(time.Hour)
	assert.Equal(t, store.Touched{Due: until, Reason: store.ReasonWaiting}, b.touch(pulse("a", "1")), "the time is over")
	c = b.take("a/1")
	s.Run, s.Due.After, s.Floor.At = c.Tasks[0].Run, time.Second, b.now()
	b.ended(s)
	assert.False(t, b.one("a", "1").Resting, "it is due for the same touch")
	b.clock.Advance(time.Second)
	b.ended(rested(b.take("a/1").Tasks[0], b.now(), store.Pulse{}))
	assert.True(t, b.one("a", "1").Resting)
}

// testTouchHeld touches a held task: the run is booked, and the answer says that it is paused.
func testTouchHeld(t *testing.T, b *bench) {
	for _, several := range []bool{false, true} {
		c := b.active(several)
		b.hold(holdable[0], moment.When{})
		b.ended(rested(c.Tasks[0], b.now(), store.Pulse{}))
		due := b.now().Add(time.Minute)
		assert.Equal(t, booked(due, store.ReasonPaused), b.touch(pulse("a", "1")))
		b.clock.Advance(30 * time.Second)
		assert.Equal(t, store.Touched{Due: due, Reason: store.ReasonPaused}, b.touch(pulse("a", "1")))
		b.clock.Advance(30 * time.Second)
		require.Equal(t, 1, b.claim(10).Parked)
		s := debounced("a")
		assert.Equal(t, b.now().Add(time.Minute), b.touch(s).Due, "put off where it is parked")
		assert.True(t, b.one("a", "1").Parked)
		b.unhold(holdable[0])
		assert.Empty(t, b.claim(10).Tasks)
		b.clock.Advance(time.Minute)
		b.take("a/1")
	}
}

// testTouchRun runs a resting task on demand, in every state of its rest.
func testTouchRun(t *testing.T, b *bench) {
	for _, several := range []bool{false, true} {
		c := b.active(several)
		b.ended(rested(c.Tasks[0], b.now().Add(time.Hour), store.Pulse{}))
		assert.Equal(t, store.Effect{Code: store.EffectDone, Due: b.now()}, b.run("a", "1", false))
		assert.False(t, b.one("a", "1").Resting, "an order is as good as a touch")
		c = b.take("a/1")
		b.run("a", "1", true)
		assert.Equal(t, b.now(), b.ended(rested(c.Tasks[0], b.now().Add(time.Hour), store.Pulse{})))
		assert.False(t, b.one("a", "1").Resting)

		c = b.take("a/1")
		b.ended(rested(c.Tasks[0], b.now(), store.Pulse{}))
		b.clock.Advance(24 * time.Hour)
		c = b.take("a/1")
		b.run("a", "1", true)
		s := again(c.Tasks[0], 0)
		s.Verb, s.Due = store.VerbRelease, moment.When{At: c.Tasks[0].Due}
		assert.Equal(t, c.Tasks[0].Due, b.ended(s))
		assert.True(t, b.one("a", "1").Resting, "what is given back goes back as it was")
	}
}

// testTouchOthers touches tasks that are no activity tasks: nothing changes.
func testTouchOthers(t *testing.T, b *bench) {
	b.with(Options{MaxTasks: 2})
	b.submit(within(task("a", "1"), time.Hour))
	before := b.one("a", "1")
	assert.Equal(t, store.Touched{Due: b.now().Add(time.Hour), Reason: store.ReasonWaiting}, b.touch(pulse("a", "1")), "no activity task")
	assert.Equal(t, before, b.one("a", "1"))
	b.clock.Advance(time.Hour)
	c := b.take("a/1")
	assert.Equal(t, store.Touched{Reason: store.ReasonWaiting}, b.touch(pulse("a", "1")))
	assert.Equal(t, b.now().Add(24*time.Hour), b.ended(rested(c.Tasks[0], 0, store.Pulse{})))
}

// testTouchReplaced replaces an activity task by an ordinary one, which rests no more.
func testTouchReplaced(t *testing.T, b *bench) {
	for _, runs := range []bool{false, true} {
		c := b.active(false)
		if !runs {
			b.ended(rested(c.Tasks[0], b.now(), store.Pulse{}))
			require.True(t, b.one("a", "1").Resting)
		}
		due := b.submit(within(b.replacing(), time.Second))[0].Due
		if runs {
			s := rested(c.Tasks[0], b.now().Add(time.Hour), store.Pulse{})
			s.Renewed = true
			assert.Equal(t, due, b.ended(s))
		}
		assert.False(t, b.one("a", "1").Resting, "it is no activity task any more")
		assert.Equal(t, store.Touched{Due: due, Reason: store.ReasonWaiting}, b.touch(pulse("a", "1")))
	}
}

// testTouchEnds ends an activity task: what was noted about it is gone for the next task of its id.
func testTouchEnds(t *testing.T, b *bench) {
	for _, end := range []func(c store.Claimed){
		func(c store.Claimed) { b.ended(complete(c)) },
		func(store.Claimed) { b.remove("1", "") },
	} {
		end(b.active(false).Tasks[0])
		s := b.anew(within(task("a", "1"), time.Hour))
		require.True(t, b.submit(s)[0].Created)
		b.clock.Advance(time.Hour)
		c := b.take("a/1")
		assert.Equal(t, store.Touched{Reason: store.ReasonWaiting}, b.touch(pulse("a", "1")), "a new task, and no activity task")
		b.ended(rested(c.Tasks[0], 0, store.Pulse{}))
		assert.False(t, b.one("a", "1").Resting)
	}
}

// testTouchMany touches many subjects in one call: each touch counts by
// itself, also beside one that is refused.
func testTouchMany(t *testing.T, b *bench) {
	b.with(Options{MaxTasks: 2, Partitions: 4})
	calls := []store.Touch{pulse("a", "1"), pulse("b", "1"), pulse("a", "1"), pulse("a", "2"), debounced("b")}
	touched, err := b.store.Touch(b.Context(), calls)
	require.NoError(t, err)
	for i, created := range []bool{true, true, false, true, false} {
		assert.Equal(t, created, touched[i].Booked, i)
		assert.Equal(t, b.now().Add(time.Minute), touched[i].Due, i)
	}
	var limit *store.LimitError
	_, err = b.store.Touch(b.Context(), []store.Touch{pulse("a", "3")})
	require.ErrorAs(t, err, &limit)
	assert.Equal(t, store.LimitError{Agent: "a", Limit: 2}, *limit)
	_, err = b.store.Touch(b.Context(), []store.Touch{pulse("a", "3"), pulse("b", "2"), pulse("c", "1")})
	require.ErrorAs(t, err, &limit)
	assert.Equal(t, [3]store.Status{store.StatusWaiting, store.StatusWaiting, ""},
		[3]store.Status{b.status("b", "2"), b.status("c", "1"), b.status("a", "3")}, "each touch stands for itself")

	var many []store.Touch
	for i := range 100 {
		many = append(many, pulse(fmt.Sprint("agent", i%40), fmt.Sprint(i%2)))
	}
	_, err = b.store.Touch(b.Context(), many)
	require.NoError(t, err)
	assert.Equal(t, int64(45), b.stats().Submitted)
}
