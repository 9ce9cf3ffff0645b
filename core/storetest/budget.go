package storetest

// Budgets and adaptive limits: what is charged, who waits, and what is learned.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// budget sets a budget by the clock of UTC.
func (b *desk) budget(about bound.BudgetTarget, amount float64, then bound.Then) bound.BudgetUse {
	b.Helper()
	set := bound.Budget{About: about, Amount: bound.AmountOf(amount), Zone: "UTC", Clock: bound.Clock{{}}, Then: then, Note: []byte("a|b")}
	assert.Equal(b, store.EffectDone, b.effect(b.store.Budget(b.Context(), []bound.BudgetChange{{Budget: set}})).Code)
	assert.Equal(b, store.EffectNone, b.effect(b.store.Budget(b.Context(), []bound.BudgetChange{{Budget: set}})).Code, "it is so already")
	return b.used()[0]
}

func (b *sight) used() []bound.BudgetUse {
	b.Helper()
	all, err := b.store.Budgets(b.Context())
	require.NoError(b, err)
	return all
}

// testBudgetRuns lets so many start in an hour, tells once that they have, and lets the others go when the hour is over, or the budget is
// lifted.
func testBudgetRuns(t *testing.T, b *bench) {
	b.with(Options{})
	about := bound.BudgetTarget{LimitTarget: bound.LimitTarget{Kind: "k"}, Unit: bound.UnitRuns, Per: bound.PerHour}
	set := b.budget(about, 2, bound.ThenHold)
	for i := range 5 {
		b.submit(task(fmt.Sprint("a", i), "1"))
	}
	first := b.claim(10)
	assert.Equal(t, []string{"a0/1", "a1/1"}, names(first))
	assert.Equal(t, []bound.Crossing{{About: about, Ends: set.Ends}}, first.Crossed)
	waits := b.one("a2", "1")
	require.NotNil(t, waits.Line.Budget)
	assert.Equal(t, [2]moment.Millis{set.Ends, set.Ends}, [2]moment.Millis{waits.Line.StartAt, waits.Line.Budget.Ends})
	assert.Equal(t, bound.AmountOf(2), waits.Line.Budget.Used)
	for _, run := range first.Tasks {
		b.settle(complete(run))
	}
	b.quiet(set.Ends, "a run that ends makes no room")
	use := b.used()[0]
	assert.Equal(t, [3]int64{int64(bound.AmountOf(2)), 1, 3}, [3]int64{int64(use.Used), int64(use.UsedUp), use.Waiting})

	b.clock.Advance(set.Ends.Sub(b.now()))
	assert.LessOrEqual(t, b.look(), b.now(), "another hour has begun")
	b.take("a2/1", "a3/1")
	assert.Equal(t, store.EffectDone, b.effect(b.store.Budget(t.Context(), []bound.BudgetChange{{Budget: set.Budget, Lift: true}})).Code)
	b.take("a4/1")
	assert.Empty(t, b.used())
}

// testBudgetCharged charges what runs have used while they go on: once, and what they use after that when they end. A run that a budget bounds is
// named once that is used up.
func testBudgetCharged(t *testing.T, b *bench) {
	b.with(Options{})
	about := bound.BudgetTarget{LimitTarget: bound.LimitTarget{Each: bound.EachAgent}, Unit: "tokens", Per: bound.PerDay}
	set := b.budget(about, 10, bound.ThenHold)
	b.submit(task("a", "1"), task("a", "2"), task("b", "1"))
	c := b.claim(1)
	charge := func(amount, want float64) store.Extended {
		t.Helper()
		e := b.extend(c.Fence, store.Progress{Run: c.Tasks[0].Run, State: []byte("s"), Used: []bound.Used{{Unit: "tokens", Amount: bound.AmountOf(amount)}, {Unit: "usd", Amount: 1}}})
		assert.Equal(t, bound.AmountOf(want), b.used()[0].Used)
		return e
	}
	assert.Equal(t, store.Extended{Held: true}, charge(4, 4))
	assert.Equal(t, store.Extended{Held: true}, charge(4, 4), "what was charged is not charged again")
	assert.Equal(t, store.Extended{Held: true}, charge(3, 4), "nor given back")
	over := charge(11, 11)
	assert.Equal(t, []store.Ended{{Index: 0, Spent: true}}, over.Ended)
	require.NotNil(t, over.Crossed)
	assert.Equal(t, []bound.Crossing{{About: about, Of: "a", Ends: set.Ends}}, over.Crossed.Budgets)
	over = charge(12, 12)
	assert.Equal(t, []store.Ended{{Index: 0, Spent: true}}, over.Ended)
	assert.Nil(t, over.Crossed, "it is used up once")
	s := again(c.Tasks[0], time.Hour)
	s.Spent = &store.Spent{Used: []bound.Used{{Unit: "tokens", Amount: bound.AmountOf(15)}}}
	b.settle(s)
	assert.Equal(t, bound.AmountOf(15), b.used()[0].Used, "the rest is charged at its end")
	b.take("b/1")
	// A process that dies has used what it was charged, and the next run begins from nothing.
	b.clock.Advance(lease)
	c = b.claim(1)
	require.Equal(t, []string{"b/1"}, names(c))
	charge(2, 17)
	b.clock.Advance(lease)
	c = b.claim(1)
	require.Equal(t, []string{"b/1"}, names(c))
	charge(2, 19)
}

// testBudgetUsed charges what runs report when they end, once, to each agent by itself; what was claimed before runs on. A pause lasts
// beyond the period.
func testBudgetUsed(t *testing.T, b *bench) {
	b.with(Options{})
	about := bound.BudgetTarget{LimitTarget: bound.LimitTarget{Each: bound.EachAgent}, Unit: "tokens", Per: bound.PerDay}
	set := b.budget(about, 10, bound.ThenPause)
	for i := range 4 {
		for _, agent := range []string{"a", "b"} {
			b.submit(task(agent, fmt.Sprint(i)))
			b.clock.Advance(time.Millisecond) // in turns
		}
	}
	c := b.expecting(4, 1)
	spend := func(run store.Claimed, tokens float64) store.Settlement {
		s := complete(run)
		s.Spent = &store.Spent{Used: []bound.Used{{Unit: "tokens", Amount: bound.AmountOf(tokens)}, {Unit: "usd", Amount: 1}}}
		return s
	}
	of := map[string][]store.Claimed{}
	for _, run := range c.Tasks {
		of[run.Agent] = append(of[run.Agent], run)
	}
	b.settle(spend(of["a"][0], 9.5))
	b.settle(spend(of["a"][0], 9.5)) // its answer was lost
	settled, err := b.store.Settle(t.Context(), []store.Settlement{spend(of["b"][0], 1), spend(of["a"][1], 0.75)})
	require.NoError(t, err)
	assert.Nil(t, settled[0].Crossed)
	require.NotNil(t, settled[1].Crossed)
	assert.Equal(t, []bound.Crossing{{About: about, Of: "a", Ends: set.Ends}}, settled[1].Crossed.Budgets)
	use := b.used()[0]
	assert.Equal(t, []bound.BudgetShare{{Of: "a", Used: bound.AmountOf(10.25)}, {Of: "b", Used: bound.AmountOf(1)}}, use.Shares)
	for _, run := range b.claim(10).Tasks {
		assert.Equal(t, "b", run.Agent)
	}
	b.clock.Advance(24 * time.Hour)
	for _, run := range b.claim(10).Tasks {
		assert.Equal(t, "b", run.Agent, "a pause is ended by somebody")
	}
	held := b.one("a", "2")
	require.Len(t, held.Holds, 1)
	assert.Equal(t, "a|b", string(held.Holds[0].Note))
	_, err = b.store.Unhold(t.Context(), []store.Target{{Agent: "a"}})
	require.NoError(t, err)
	b.settle(spend(b.take("a/2").Tasks[0], 1)) // which may have used nearly all
	b.take("a/3")
}

// testAdaptive starts with one run, lets one more run whenever all are in use, and holds all when one is told to come back later; then one
// asks first.
func testAdaptive(t *testing.T, b *bench) {
	b.with(Options{})
	_, err := b.store.Limit(t.Context(), []bound.LimitChange{{Limit: bound.Limit{About: bound.LimitTarget{Key: "p*", Each: bound.EachKey}, Adaptive: true, Concurrency: 3}}})
	require.NoError(t, err)
	for i := range 12 {
		b.submit(keyedTask(fmt.Sprint("a", i), "1", "p"))
	}
	now := b.now()
	c := b.claim(10)
	for _, want := range []int{1, 2} { // one more each time
		require.Len(t, c.Tasks, want)
		b.clock.Advance(time.Second)
		for _, run := range c.Tasks {
			b.settle(complete(run))
		}
		c = b.claim(10)
	}
	runs := len(c.Tasks)
	require.Positive(t, runs)
	refused := complete(c.Tasks[0])
	refused.Verb, refused.Record, refused.Due = store.VerbAgain, nil, moment.When{After: time.Hour}
	refused.Spent = &store.Spent{Busy: 8 * time.Second}
	b.settle(refused)
	for _, run := range c.Tasks[1:] { // they were under way
		b.settle(complete(run))
	}
	till := b.now().Add(8 * time.Second)
	b.quiet(till, "nothing starts before the time that was named")
	b.clock.Advance(8*time.Second - time.Millisecond)
	assert.Empty(t, b.claim(10).Tasks)
	b.clock.Advance(time.Millisecond)
	probe := b.claim(10)
	require.Len(t, probe.Tasks, 1, "one asks first")
	assert.Empty(t, b.claim(10).Tasks)
	idle := complete(probe.Tasks[0])
	idle.Verb, idle.Record, idle.Due, idle.Spent = store.VerbAgain, nil, moment.When{After: time.Hour}, &store.Spent{Idle: true}
	b.settle(idle)
	probe = b.claim(10)
	require.Len(t, probe.Tasks, 1, "another, as that one has asked nothing")
	b.settle(complete(probe.Tasks[0]))
	use, err := b.store.Limits(t.Context())
	require.NoError(t, err)
	require.Len(t, use[0].Learned, 1)
	learned := use[0].Learned[0]
	assert.Equal(t, "p", learned.Of)
	assert.False(t, learned.Probing)
	served := float64(3 + runs - 1)
	assert.InDelta(t, served/till.Sub(now).Minutes()/1.03, learned.PerMinute, 0.01)
}
