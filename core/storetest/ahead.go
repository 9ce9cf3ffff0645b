package storetest

// Claims that take tasks before they are due.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/storetest/given"
)

// ahead is a request that takes what falls due within a second besides ten that are due.
func ahead(b *bench) store.ClaimRequest {
	r := b.request(10)
	r.Ahead, r.AheadMost, r.AheadLease = time.Second, 10, 2*time.Second
	return r
}

// givenBack gives a run back that has not begun.
func givenBack(t store.Claimed) store.Settlement {
	return store.Settlement{Run: t.Run, Kind: t.Kind, Verb: store.VerbRelease, Unrun: true, Due: moment.When{At: t.Due}}
}

// testAhead claims what falls due within a moment, with what is due and under a short lease; its time is that of the task.
func testAhead(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"), within(task("b", "2"), 700*time.Millisecond), within(task("c", "3"), time.Second), within(task("d", "4"), time.Second+time.Millisecond))
	begun := b.now()
	c := b.claimWith(ahead(b))
	require.Equal(t, []string{"a/1", "b/2", "c/3"}, names(c))
	assert.Equal(t, begun.Add(time.Second), c.Ahead)
	assert.Equal(t, []moment.Millis{begun, begun.Add(700 * time.Millisecond), begun.Add(time.Second)}, []moment.Millis{c.Tasks[0].Due, c.Tasks[1].Due, c.Tasks[2].Due})
	assert.Equal(t, [2]moment.Millis{begun.Add(time.Second + time.Millisecond), begun.Add(2 * time.Second)}, [2]moment.Millis{c.NextDue, c.NextLease})
	assert.Empty(t, names(b.claimWith(ahead(b))), "they are leased")
	b.ended(givenBack(c.Tasks[1]))
	assert.Equal(t, begun.Add(700*time.Millisecond), b.one("b", "2").Due, "what is given back has its time")
	assert.Empty(t, names(b.claim(10)))

	noticing := func(most int) store.ClaimRequest {
		r := ahead(b)
		r.AheadMost, r.Notice = most, 10*time.Second
		return r
	}
	c = b.claimWith(noticing(1))
	require.Equal(t, []string{"b/2"}, names(c))
	b.clock.Advance(2*time.Second + 499*time.Millisecond)
	c = b.claimWith(noticing(1))
	assert.Equal(t, []string{"d/4"}, names(c), "the others are given notice")
	assert.Equal(t, b.now().Add(time.Second), c.NextLease, "half of the short lease")
	b.clock.Advance(time.Second)
	assert.Len(t, b.claimWith(noticing(1)).Tasks, 3)
	b.audited()
}

// testAheadLeaves leaves everything that is out of the ordinary until it is due.
func testAheadLeaves(t *testing.T, b *bench) {
	b.with(Options{})
	soon := 500 * time.Millisecond
	urgent := within(task("urgent", "1"), soon)
	urgent.Level = store.LevelHigh
	other := within(task("other", "1"), soon)
	other.Kind = "unknown"
	keyed := within(task("keyed", "1"), soon)
	keyed.Key = "x"
	b.submit(urgent, other, within(task("held", "1"), soon), within(task("held", "2"), soon), keyed)
	b.hold(store.Target{Agent: "held"}, moment.When{})
	b.hold(store.Target{Key: "x"}, moment.When{})
	_, err := b.store.Touch(b.Context(), []store.Touch{given.Touching(task("active", "1"), store.Pulse{Delay: soon})})
	require.NoError(t, err)
	b.clock.Advance(100 * time.Millisecond)
	assert.Empty(t, names(b.claimWith(ahead(b))))
	b.clock.Advance(soon)
	c := b.claim(10)
	assert.ElementsMatch(t, []string{"urgent/1", "active/1"}, names(c))
	b.audited()
}

// testAheadWithdrawn has commands come between a claim and the time of its task.
func testAheadWithdrawn(t *testing.T, b *bench) {
	b.with(Options{})
	woken, err := b.store.(store.Waker).Wakeups(b.Context())
	require.NoError(t, err)
	withdrawn := func() {
		b.Helper()
		for {
			select {
			case w := <-woken:
				if w.Withdrawn {
					assert.Zero(t, w.Due)
					return
				}
			case <-time.After(5 * time.Second):
				require.Fail(t, "nobody is asked for what was claimed ahead")
			}
		}
	}
	b.submit(within(task("a", "1"), 500*time.Millisecond))
	c := b.claimWith(ahead(b))
	require.Len(t, c.Tasks, 1)
	due := c.Tasks[0].Due
	assert.Equal(t, store.Effect{Code: store.EffectDone, Due: due}, b.held(store.Hold{Target: store.Target{Kind: "k"}}), "until then it may start")
	withdrawn()
	b.ended(givenBack(c.Tasks[0]))
	b.clock.Advance(time.Second)
	assert.Empty(t, names(b.claim(10)), "it is held")
	assert.Equal(t, store.Effect{Code: store.EffectDone}, b.held(store.Hold{Target: store.Target{Agent: "a"}}), "no task that was claimed ahead can start any more")
	b.unhold(store.Target{Kind: "k"})
	b.unhold(store.Target{Agent: "a"})
	c = b.claim(10)
	require.Len(t, c.Tasks, 1)
	b.ended(again(c.Tasks[0], 500*time.Millisecond))

	c = b.claimWith(ahead(b))
	require.Len(t, c.Tasks, 1)
	assert.Equal(t, store.EffectOrdered, b.cancelled(store.Cancellation{Agent: "a", ID: "1", Version: b.one("a", "1").Version, Order: []byte("why")}).Code)
	withdrawn()
	var ending *store.EndingError
	assert.ErrorAs(t, b.settle(givenBack(c.Tasks[0]))[0].Err, &ending)
}

// testAheadOfBounds takes tasks ahead of their time as long as half of what bounds them stays free for what falls due meanwhile, and gives back what they
// had of it, but for the starts of rates.
func testAheadOfBounds(t *testing.T, b *bench) {
	for _, c := range boundsAhead(b) {
		b.with(Options{})
		c.set()
		for i := range c.ran {
			b.submit(task(fmt.Sprint("before", i), "1"))
			b.settle(uses(b.claim(1).Tasks[0], 10))
		}
		for range 8 { // what a new limit lets go is looked for once
			b.claim(10)
		}
		b.submit(c.all...)
		for again := range 2 {
			early := b.claimWith(ahead(b))
			if again > 0 && strings.Contains(c.name, "rate") { // a start is not given back
				c.want = 0
			}
			require.Len(t, early.Tasks, c.want, c.name)
			for _, run := range early.Tasks {
				b.ended(givenBack(run))
			}
		}
		b.clock.Advance(time.Second)
		assert.Len(t, b.claim(10).Tasks, c.due, c.name)
		b.audited()
	}
}

// boundedAhead is a bound, the tasks that fall due within a moment, and how many of them come ahead of their time.
type boundedAhead struct {
	name string
	set  func()
	ran  int // before, and have used 10 tokens
	all  []store.Submission
	want int
	due  int // come once they are due
}

func boundsAhead(b *bench) []boundedAhead {
	agents := func(n int) (all []store.Submission) {
		for i := range n {
			all = append(all, within(keyedTask(fmt.Sprint("a", i), "1", "x"), 500*time.Millisecond))
		}
		return all
	}
	limit := func(l bound.Limit) func() {
		return func() { b.effect(b.store.Limit(b.Context(), []bound.LimitChange{{Limit: l}})) }
	}
	budget := func(unit string, each bound.Each) func() {
		return func() {
			b.budget(bound.BudgetTarget{LimitTarget: bound.LimitTarget{Each: each}, Unit: unit, Per: bound.PerDay}, 100, bound.ThenHold)
		}
	}
	profile := func() {
		bounds := []bound.Limit{{About: bound.LimitTarget{Agent: "a0", Kind: "k"}, Concurrency: 2}}
		b.effect(b.store.Profile(b.Context(), []store.ProfileChange{{Agent: "a0", Now: []byte("a"), Limits: bounds}}))
	}
	twice := append(agents(2), within(task("a1", "2"), 500*time.Millisecond))
	return []boundedAhead{
		{"half of a limit", limit(bound.Limit{About: bound.LimitTarget{Kind: "k"}, Concurrency: 9}), 0, agents(6), 4, 6},
		{"one of an agent", limit(bound.Limit{About: bound.LimitTarget{Each: bound.EachAgent}, Concurrency: 1}), 0, twice, 2, 2},
		{"one of a key", limit(bound.Limit{About: bound.LimitTarget{Each: bound.EachKey}, Concurrency: 3}), 0, agents(6), 1, 3},
		{"a limit of others", limit(bound.Limit{About: bound.LimitTarget{Kind: "other"}, Concurrency: 1}), 0, agents(6), 6, 6},
		{"half of the burst of a rate", limit(bound.Limit{Rate: 1, Per: time.Second, Burst: 9}), 0, agents(6), 4, 6},
		{"a rate without a burst", limit(bound.Limit{Rate: 100, Per: time.Second}), 0, agents(6), 1, 1},
		{"an adaptive limit that knows nothing", limit(bound.Limit{About: bound.LimitTarget{Each: bound.EachKey}, Adaptive: true, Concurrency: 50}), 0, agents(6), 0, 1},
		{"an adaptive limit", limit(bound.Limit{Adaptive: true, Concurrency: 50}), 1, agents(6), 1, 2},
		{"a budget of runs", budget(bound.UnitRuns, ""), 46, agents(6), 4, 6},
		{"a budget whose use is not known", budget("tokens", ""), 0, agents(6), 0, 1},
		{"half of a budget", budget("tokens", ""), 1, agents(6), 4, 6},
		{"a budget of each agent", budget("tokens", bound.EachAgent), 1, agents(6), 6, 6},
		{"what an agent has set for itself", profile, 0, append(agents(5), within(task("a0", "2"), 500*time.Millisecond)), 5, 6},
	}
}

// testAheadUnderRate counts a start that was claimed ahead of its time when it comes, so that the next one keeps its distance from it.
func testAheadUnderRate(t *testing.T, b *bench) {
	b.with(Options{})
	b.limit(bound.LimitTarget{Kind: "k"}, 0, 2, time.Second, 0)
	for range 8 { // what a new limit lets go is looked for once
		b.claim(10)
	}
	b.submit(within(task("a", "1"), 400*time.Millisecond))
	require.Len(t, b.claimWith(ahead(b)).Tasks, 1)
	b.clock.Advance(600 * time.Millisecond)
	b.submit(task("b", "1"))
	assert.Empty(t, b.claim(10).Tasks, "the other one started 200 ms ago, and the distance is 500 ms")
	b.clock.Advance(300 * time.Millisecond)
	assert.Len(t, b.claim(10).Tasks, 1)

	b.clock.Advance(time.Second)
	b.submit(task("c", "1"), within(task("d", "1"), 700*time.Millisecond))
	assert.Equal(t, []string{"c/1", "d/1"}, names(b.claimWith(ahead(b))), "the rate lets nothing go now, and will when it is due: in line it would start at once then, before its time")
	b.clock.Advance(500 * time.Millisecond)
	assert.Empty(t, names(b.claim(10)))
	b.audited()
}
