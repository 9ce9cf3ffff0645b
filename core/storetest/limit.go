package storetest

// Limits: how many run, how many start, and who waits for whom.

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/storetest/whole"
)

// limit sets a limit.
func (b *desk) limit(about bound.LimitTarget, runs int, rate ...any) store.EffectCode {
	b.Helper()
	l := bound.Limit{About: about, Concurrency: runs}
	if len(rate) > 0 {
		l.Rate, l.Per, l.Burst = rate[0].(int), rate[1].(time.Duration), rate[2].(int)
	}
	return b.effect(b.store.Limit(b.Context(), []bound.LimitChange{{Limit: l}})).Code
}

func (b *desk) lift(about bound.LimitTarget) store.EffectCode {
	b.Helper()
	return b.effect(b.store.Limit(b.Context(), []bound.LimitChange{{Limit: bound.Limit{About: about}, Lift: true}})).Code
}

// keyedTask is a task of an agent with a limit key.
func keyedTask(agent, id, key string) store.Submission {
	s := task(agent, id)
	s.Key = key
	return s
}

// testLimitRuns lets so many run at once, and the next one when one of them ends, in whatever way.
func testLimitRuns(t *testing.T, b *bench) {
	b.with(Options{})
	about := bound.LimitTarget{Kind: "k"}
	assert.Equal(t, store.EffectDone, b.limit(about, 2))
	assert.Equal(t, store.EffectNone, b.limit(about, 2), "it is so already")
	for i := range 6 {
		b.submit(task(fmt.Sprint("a", i), "1"))
	}
	first := b.take("a0/1", "a1/1")
	b.quiet(b.now().Add(lease), "nothing is due until a lease ends")
	use, err := b.store.Limits(t.Context())
	require.NoError(t, err)
	assert.Equal(t, []bound.LimitUse{{Limit: bound.Limit{About: about, Concurrency: 2}, Running: 2, Waiting: 4}}, use)
	assert.Equal(t, [2]int64{4, 0}, [2]int64{b.stats().Waiting, b.stats().Parked + b.stats().Held}, "who waits in line is not paused")
	waits := b.one("a2", "1")
	assert.Equal(t, store.StatusWaiting, waits.Status)
	assert.Equal(t, store.Line{Limit: use[0]}, waits.Line)

	b.settle(complete(first.Tasks[0]))
	assert.LessOrEqual(t, b.look(), b.now(), "there is room")
	second := b.take("a2/1")
	b.ended(store.Settlement{Run: second.Tasks[0].Run, Verb: store.VerbRelease, Kind: "k", Due: moment.When{At: second.Tasks[0].Due}})
	third := b.take("a3/1")
	assert.Equal(t, store.EffectDone, b.delete(store.Submission{Agent: "a3", ID: "1"}).Code, "while it runs")
	fourth := b.take("a4/1")
	b.clock.Advance(lease) // all that run are lost
	_ = third
	next := b.claim(10)
	assert.Len(t, next.Tasks, 2, "the dead give back what they had")
	assert.NotContains(t, names(next), "a4/1", "it has had its turn: %v", fourth.Fence)
}

// testLimitEach bounds each agent, each agent of a kind, each key, and all keys that begin so.
func testLimitEach(t *testing.T, b *bench) {
	for name, c := range map[string]struct {
		about bound.LimitTarget
		want  []string
	}{
		"each agent":           {bound.LimitTarget{Each: bound.EachAgent}, []string{"a/1", "b/1", "c/1"}},
		"each agent of a kind": {bound.LimitTarget{Kind: "k", Each: bound.EachAgent}, []string{"a/1", "a/3", "b/1", "c/1"}},
		"a key":                {bound.LimitTarget{Key: "p:x"}, []string{"a/1", "a/3", "b/1", "b/2", "c/1"}},
		"keys":                 {bound.LimitTarget{Key: "p:*"}, []string{"a/1", "a/3", "c/1"}},
		"each key":             {bound.LimitTarget{Key: "*", Each: bound.EachKey}, []string{"a/1", "a/3", "b/1", "c/1"}},
		"everything":           {bound.LimitTarget{}, []string{"a/1"}},
	} {
		b.with(Options{})
		b.limit(c.about, 1)
		other := task("a", "3")
		other.Kind = "other"
		for _, s := range []store.Submission{
			keyedTask("a", "1", "p:x"), keyedTask("a", "2", "p:x"), other, keyedTask("b", "1", "p:y"), keyedTask("b", "2", "p:y"), task("c", "1"),
		} {
			b.submit(s)
		}
		r := b.request(10)
		r.Kinds = []string{"k", "other"}
		got := names(b.claimWith(r))
		assert.ElementsMatch(t, c.want, got, name)
	}
}

// testLimitRate spreads starts, lets a few more start at once after a pause, and wakes in time.
func testLimitRate(t *testing.T, b *bench) {
	b.with(Options{})
	const starts, burst = 4, 2
	b.limit(bound.LimitTarget{Key: "p"}, 0, starts, time.Second, burst)
	for i := range 30 {
		b.submit(keyedTask("a", fmt.Sprintf("%02d", i), "p"))
	}
	var at []moment.Millis
	for len(at) < 30 {
		c := b.claim(10)
		for range c.Tasks {
			at = append(at, b.now())
		}
		b.complete(c)
		if len(c.Tasks) == 0 && c.Parked == 0 {
			next := b.look()
			require.Greater(t, next, b.now(), "it is not due before there is room")
			assert.Equal(t, next, b.one("a", fmt.Sprintf("%02d", len(at))).Line.StartAt)
			b.clock.Advance(time.Duration(next-b.now()) * time.Millisecond)
		}
	}
	for i := starts + burst; i < len(at); i++ {
		assert.GreaterOrEqual(t, at[i]-at[i-starts-burst], moment.Millis(1000), "at most so many in any second: the %dth", i)
	}
	assert.Equal(t, moment.Millis(27*250), at[29]-at[0], "and no fewer: three at once, then one each quarter of a second")
}

// testLimitTurns lets agents behind one limit go in turn: whoever has many waits no less than the others.
func testLimitTurns(t *testing.T, b *bench) {
	b.with(Options{})
	b.limit(bound.LimitTarget{Key: "p"}, 1)
	for i := range 20 {
		b.submit(keyedTask("flood", fmt.Sprintf("%02d", i), "p"))
	}
	running := b.take("flood/00")
	for b.claim(10).Parked > 0 { // until all of the flood is in line
	}
	b.submit(keyedTask("quiet", "1", "p"))
	b.submit(keyedTask("other", "1", ""))
	b.take("other/1")
	var order []string
	for range 4 {
		b.complete(running)
		running = b.claim(10)
		order = append(order, names(running)...)
	}
	assert.Equal(t, []string{"flood/01", "quiet/1", "flood/02", "flood/03"}, order)
}

// testLimitChanges changes and lifts limits while tasks wait: it counts from the next claim on.
func testLimitChanges(t *testing.T, b *bench) {
	b.with(Options{})
	about := bound.LimitTarget{Kind: "k"}
	b.limit(about, 1)
	for i := range 5 {
		b.submit(task(fmt.Sprint("a", i), "1"))
	}
	first := b.take("a0/1")
	assert.Equal(t, store.EffectDone, b.limit(about, 3))
	b.take("a1/1", "a2/1")
	b.limit(about, 1)
	b.complete(first)
	b.quiet(b.now().Add(lease), "two run still")
	assert.Equal(t, store.EffectDone, b.lift(about))
	assert.Equal(t, store.EffectNone, b.lift(about))
	b.take("a3/1", "a4/1")
	use, err := b.store.Limits(t.Context())
	require.NoError(t, err)
	assert.Empty(t, use)
}

// testLimitOperators cancels, deletes, holds, replaces and lists what waits in line.
func testLimitOperators(t *testing.T, b *bench) {
	b.with(Options{})
	b.limit(bound.LimitTarget{Key: "p"}, 1)
	for i := range 6 {
		b.submit(keyedTask("a", fmt.Sprint(i), "p"))
	}
	first := b.take("a/0")
	b.quiet(b.now().Add(lease), "five wait")
	page, err := b.store.List(t.Context(), store.List{Agent: "a", Limit: 100})
	require.NoError(t, err)
	assert.Len(t, page.Tasks, 6, "each is listed once")

	assert.Equal(t, store.EffectDone, b.delete(about("1")).Code)
	assert.Equal(t, store.EffectDone, b.cancelled(store.Cancellation{Agent: "a", ID: "2", Version: b.one("a", "2").Version}).Code)
	b.hold(store.Target{Agent: "a", ID: "3"}, moment.When{})
	b.complete(first)
	second := b.take("a/4")
	assert.True(t, b.one("a", "3").Parked, "it was its turn, and it is held")
	assert.Equal(t, store.EffectDone, b.unhold(store.Target{Agent: "a", ID: "3"}))
	b.quiet(b.now().Add(lease), "one runs")
	b.complete(second)
	c := b.claim(10)
	assert.Len(t, c.Tasks, 1)
	assert.Equal(t, 2, whole.Audit(t, b.store), "and nothing is wrong")
}

// testLimitsAreBounded refuses one more than each claim can read, and changes one of them.
func testLimitsAreBounded(t *testing.T, b *bench) {
	b.with(Options{})
	for i := range bound.MostLimits {
		b.limit(bound.LimitTarget{Kind: fmt.Sprint("k", i)}, 1)
	}
	l := bound.LimitChange{Limit: bound.Limit{About: bound.LimitTarget{Kind: "k"}, Concurrency: 1}}
	_, err := b.store.Limit(t.Context(), []bound.LimitChange{l})
	_, refused := errors.AsType[*store.InvalidError](err)
	assert.True(t, refused, "%v", err)
	assert.Equal(t, store.EffectDone, b.limit(bound.LimitTarget{Kind: "k7"}, 2), "one that exists may change")
}

// testLimitsOfPartitions are those of agents, each of whom is in one.
func testLimitsOfPartitions(t *testing.T, b *bench) {
	b.with(Options{Partitions: 4})
	b.limit(bound.LimitTarget{Each: bound.EachAgent}, 2)
	const agents = 12
	for i := range agents {
		for k := range 3 {
			b.submit(task(fmt.Sprint("a", i), fmt.Sprint(k)))
		}
	}
	running := 0
	for p := range 4 {
		r := b.request(store.MaxClaim)
		r.Partition = p
		running += len(b.claimWith(r).Tasks)
	}
	assert.Equal(t, 2*agents, running)
	use, err := b.store.Limits(t.Context())
	require.NoError(t, err)
	assert.Equal(t, int64(2*agents), use[0].Running)
	assert.Equal(t, int64(agents), use[0].Waiting)
}

// testLimitsOfTheNamed serves those of some agents that are asked for, whoever stands before them.
func testLimitsOfTheNamed(t *testing.T, b *bench) {
	b.with(Options{})
	b.limit(bound.LimitTarget{Key: "p"}, 1)
	for i := range 60 {
		b.submit(keyedTask(fmt.Sprintf("a%02d", i), "1", "p"))
	}
	running := b.claim(1)
	for b.claim(10).Parked > 0 { // until all wait in line
	}
	b.complete(running)
	r := b.request(10)
	r.Agents = []string{"a58", "a57", "none"}
	assert.Equal(t, []string{"a57/1"}, names(b.claimWith(r)))
}

// testLinesOfTwoLimits lets a task start that two limits have room for, though others wait in the lines of both that nobody asks for: one that
// has waited in a line has been through those before it.
func testLinesOfTwoLimits(t *testing.T, b *bench) {
	b.with(Options{})
	b.limit(bound.LimitTarget{Kind: "k"}, 1)
	b.limit(bound.LimitTarget{Key: "p"}, 1)
	request := func(agents ...string) store.ClaimRequest {
		r := b.request(10)
		r.Kinds, r.Agents = []string{"k", "other"}, agents
		return r
	}
	other := func(agent string) store.Submission {
		s := keyedTask(agent, "1", "p")
		s.Kind = "other"
		return s
	}
	b.submit(task("runs", "1"), other("runs2"))
	running := b.claimWith(request())
	require.Len(t, running.Tasks, 2)
	b.submit(task("bob", "1"), other("cy"), keyedTask("ann", "1", "p"))
	for b.claimWith(request()).Parked > 0 { // until all wait in line
	}
	b.complete(running)
	assert.Equal(t, []string{"ann/1"}, names(b.claimWith(request("ann"))))
}
