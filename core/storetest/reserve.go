package storetest

// The contract of what budgets keep for runs under way.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// ofTokens is a budget of all tokens a day.
var ofTokens = bound.BudgetTarget{Unit: "tokens", Per: bound.PerDay}

// uses completes a run that has used tokens.
func uses(run store.Claimed, tokens float64) store.Settlement {
	s := complete(run)
	if tokens > 0 {
		s.Spent = &store.Spent{Used: []bound.Used{{Unit: "tokens", Amount: bound.AmountOf(tokens)}}}
	}
	return s
}

// expecting claims with what a run is expected to use.
func (b *bench) expecting(n int, tokens float64) store.Claim {
	b.Helper()
	r := b.request(n)
	if tokens > 0 {
		r.Expect = []bound.Expected{{Kind: "k", Used: bound.Used{Unit: "tokens", Amount: bound.AmountOf(tokens)}}, {Kind: "other", Used: bound.Used{Unit: "tokens", Amount: 1}}}
	}
	return b.claimWith(r)
}

// drain runs everything that may start, as many at once as there is room for, each run with its use; it returns how many ran, and the most at once.
func (b *bench) drain(expect float64, use func(n int) float64) (ran, most int) {
	b.Helper()
	for {
		c := b.expecting(store.MaxClaim, expect)
		if len(c.Tasks) == 0 {
			return ran, most
		}
		most = max(most, len(c.Tasks))
		for _, run := range c.Tasks {
			b.settle(uses(run, use(ran)))
			ran++
		}
	}
}

// testReserve starts runs of equal use until the budget is used up, and not one more, however many may run at once: with what the caller
// expects, and without, where the first one goes alone.
func testReserve(t *testing.T, b *bench) {
	for _, expect := range []float64{0, 10} {
		b.with(Options{})
		b.budget(ofTokens, 200, bound.ThenHold)
		for i := range 60 {
			b.submit(task(fmt.Sprint("a", i%30), fmt.Sprint(i)))
		}
		ran, most := b.drain(expect, func(int) float64 { return 10 })
		assert.Equal(t, 20, ran)
		assert.Equal(t, bound.AmountOf(200), b.used()[0].Used)
		if expect > 0 {
			assert.Equal(t, 20, most, "all at once")
		} else {
			assert.Equal(t, 19, most, "all others at once")
		}
		b.audited()
	}
}

// testReserveUnequal exceeds a budget by no more than what one run uses beyond what runs of its kind usually do.
func testReserveUnequal(t *testing.T, b *bench) {
	b.with(Options{})
	b.budget(ofTokens, 1000, bound.ThenHold)
	for i := range 300 {
		b.submit(task(fmt.Sprint("a", i%30), fmt.Sprint(i)))
	}
	use := func(n int) float64 {
		if n%10 == 7 {
			return 50
		}
		return float64(8 + n%5)
	}
	b.drain(0, use)
	spent := b.used()[0].Used
	assert.GreaterOrEqual(t, spent, bound.AmountOf(1000), "it is used up")
	assert.LessOrEqual(t, spent, bound.AmountOf(1000+50-12), "by one run's error at most")

	b.with(Options{})
	b.budget(ofTokens, 280, bound.ThenHold)
	for i := range 40 {
		b.submit(task(fmt.Sprint("a", i), "1"))
	}
	for i := range 20 { // 280 in all
		b.settle(uses(b.expecting(1, 10).Tasks[0], []float64{10, 50}[i/18]))
	}
	assert.Empty(t, names(b.expecting(10, 10)))
	b.budget(ofTokens, 280+120, bound.ThenHold)
	assert.Len(t, b.expecting(20, 10).Tasks, 3, "each under way may use 50, and the last one usually uses 10")
}

// testReserveUnused lets runs that use nothing of a unit pass, and those whose use is smaller than was kept make room as they end.
func testReserveUnused(t *testing.T, b *bench) {
	b.with(Options{})
	b.budget(ofTokens, 20, bound.ThenHold)
	for i := range 6 {
		b.submit(task(fmt.Sprint("a", i), "1"))
	}
	c := b.expecting(10, 10)
	assert.Equal(t, []string{"a0/1", "a1/1"}, names(c))
	waits := b.one("a2", "1")
	assert.Equal(t, bound.AmountOf(20), waits.Line.Budget.Reserved)
	assert.Empty(t, names(b.expecting(10, 10)))
	b.quiet(b.now().Add(lease), "nobody is called for a line that waits for a run")
	b.settle(uses(c.Tasks[0], 4))
	next := b.expecting(10, 10)
	assert.Equal(t, []string{"a2/1"}, names(next), "4 were used, 10 are kept, and one more fits that uses 4")
	b.settle(uses(c.Tasks[1], 0))
	b.settle(uses(next.Tasks[0], 0))
	c = b.expecting(10, 10)
	assert.Len(t, c.Tasks, 3, "they have used nothing")
	b.submit(task("b", "1"))

	b.clock.Advance(lease + time.Millisecond) // their process dies
	c = b.expecting(10, 10)
	assert.NotEmpty(t, c.Tasks)
	for _, run := range c.Tasks {
		b.settle(uses(run, 20))
	}
	assert.Empty(t, names(b.expecting(10, 10)), "used up")
}

// testReserveEach keeps for each agent by itself, and lets kinds of which something is known start beside the first of another.
func testReserveEach(t *testing.T, b *bench) {
	b.with(Options{})
	b.budget(bound.BudgetTarget{LimitTarget: bound.LimitTarget{Each: bound.EachAgent}, Unit: "tokens", Per: bound.PerDay}, 20, bound.ThenHold)
	for i := range 4 {
		for _, agent := range []string{"a", "b"} {
			b.submit(task(agent, fmt.Sprint(i)))
		}
	}
	c := b.expecting(10, 10)
	assert.Len(t, c.Tasks, 4, "two of each agent")
	unknown := task("a", "new")
	unknown.Kind = "new"
	b.submit(unknown)
	for _, run := range c.Tasks {
		b.settle(uses(run, 9))
	}
	c = b.expecting(10, 10) // 18 of 20 are used: a run of 9 goes alone
	assert.Len(t, c.Tasks, 2)
	for _, run := range c.Tasks {
		b.settle(uses(run, 9))
	}
	assert.Empty(t, names(b.expecting(10, 10)))
}
