package storetest

// Profiles of agents, and waiting tasks that get other due times.

import (
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

// profile sets the profile of an agent, as one that was seen as it was.
func (b *desk) profile(agent, was, now string) store.EffectCode {
	b.Helper()
	return b.effect(b.store.Profile(b.Context(), []store.ProfileChange{{Agent: agent, Was: []byte(was), Now: []byte(now)}})).Code
}

// profileOf is the profile of an agent.
func (b *sight) profileOf(agent string) string {
	b.Helper()
	p, err := b.store.ProfileOf(b.Context(), agent)
	require.NoError(b, err)
	return string(p)
}

// testProfile changes profiles: each only as it was seen.
func testProfile(t *testing.T, b *bench) {
	b.with(Options{})
	const hostile = "a:{b}*\xc3\xa9"
	assert.Empty(t, b.profileOf(hostile))
	assert.Equal(t, store.EffectDone, b.profile(hostile, "", "one\x00"))
	assert.Equal(t, store.EffectDone, b.profile(hostile, "", "one\x00"), "the same call again")
	assert.Equal(t, "one\x00", b.profileOf(hostile))
	assert.Equal(t, store.EffectChanged, b.profile(hostile, "", "two"), "another has set one")
	assert.Equal(t, store.EffectChanged, b.profile(hostile, "zero", ""))
	assert.Equal(t, store.EffectDone, b.profile(hostile, "one\x00", "two"))
	assert.Equal(t, store.EffectDone, b.profile(hostile, "two", ""))
	assert.Equal(t, store.EffectDone, b.profile(hostile, "two", ""), "the same call again")
	assert.Empty(t, b.profileOf(hostile))
	var want []store.Profiled
	for i := range 20 {
		agent := fmt.Sprintf("a%02d", i)
		want = append(want, store.Profiled{Agent: agent, Profile: []byte(agent)})
		require.Equal(t, store.EffectDone, b.profile(agent, "", agent))
	}
	assert.Equal(t, want, whole.Profiles(t, b.store, 3))
	_, err := b.store.Profiles(t.Context(), store.PageOf{Limit: 5})
	require.NoError(t, err)
}

// testBoundsOfAProfile bounds one agent by what its profile says, whatever bounds all.
func testBoundsOfAProfile(t *testing.T, b *bench) {
	b.with(Options{})
	b.limit(bound.LimitTarget{Each: bound.EachAgent}, 3)
	of := bound.LimitTarget{Agent: "a:b", Kind: "k"}
	month := bound.BudgetTarget{LimitTarget: bound.LimitTarget{Agent: "a:b"}, Unit: bound.UnitRuns, Per: bound.PerMonth}
	change := func(was, now string, runs int) {
		c := store.ProfileChange{Agent: "a:b", Was: []byte(was), Now: []byte(now)}
		if runs > 0 {
			c.Limits = []bound.Limit{{About: of, Concurrency: runs}}
			c.Budgets = []bound.Budget{{About: month, Amount: 3 * bound.AmountOne, Then: bound.ThenHold, Zone: "UTC", Clock: bound.Clock{{}}, Note: []byte("1:x\ty\n")}}
		}
		require.Equal(t, store.EffectDone, b.effect(b.store.Profile(t.Context(), []store.ProfileChange{c})).Code)
	}
	change("", "one", 1)
	for i := range 5 {
		b.submit(task("a:b", fmt.Sprint(i)), task("c", fmt.Sprint(i)))
	}
	first := b.take("a:b/0", "c/0", "c/1", "c/2")
	line := b.one("a:b", "1").Line
	assert.Equal(t, store.Line{Of: "a:b", Limit: bound.LimitUse{Limit: bound.Limit{About: of, Concurrency: 1}, Running: 1, Waiting: 4}}, line)
	use, err := b.store.Limits(t.Context())
	require.NoError(t, err)
	require.Len(t, use, 1, "those of profiles are not among those of all")

	change("one", "two", 2)
	assert.LessOrEqual(t, b.look(), b.now(), "there is room")
	second := b.take("a:b/1")
	b.settle(complete(first.Tasks[0]))
	b.settle(complete(second.Tasks[0]))
	third := b.take("a:b/2")
	b.settle(complete(third.Tasks[0]))
	b.quiet(b.now().Add(lease), "its budget is used up")
	held := b.one("a:b", "3").Line
	require.NotNil(t, held.Budget)
	assert.Equal(t, month, held.Budget.About)
	assert.Equal(t, 3*bound.AmountOne, held.Budget.Used)
	assert.Equal(t, 3*bound.AmountOne, held.Budget.Amount)

	change("two", "", 0)
	b.take("a:b/3", "a:b/4")
}

// testProfileIsReturned gives each claim, and each submit that changes something, the profile that the agent has then.
func testProfileIsReturned(t *testing.T, b *bench) {
	b.with(Options{})
	submitted := func(s ...store.Submission) []string {
		t.Helper()
		out, err := b.store.Submit(t.Context(), s)
		require.NoError(t, err)
		var profiles []string
		for i := range out {
			profiles = append(profiles, string(out[i].Profile))
		}
		return profiles
	}
	assert.Equal(t, []string{""}, submitted(task("a", "1")))
	require.Equal(t, store.EffectDone, b.profile("a", "", "pa"))
	require.Equal(t, store.EffectDone, b.profile("c", "", "pc"))
	grouped := task("c", "1")
	grouped.Group = "g" // a plain script does not take it
	assert.Equal(t, []string{"pa", "", "pa"}, submitted(task("a", "2"), task("b", "1"), task("a", "3")))
	assert.Equal(t, []string{"", "pc"}, submitted(task("b", "2"), grouped))
	assert.Equal(t, []string{""}, submitted(task("a", "2")), "nothing was changed")
	again := task("a", "2")
	again.Conflict, again.Version, again.Level = store.ConflictReplace, b.one("a", "2").Version, store.LevelHigh
	assert.Equal(t, []string{"pa"}, submitted(again))
	require.Equal(t, store.EffectDone, b.profile("a", "pa", "pb"))

	var first store.ClaimRequest
	for _, picky := range []bool{false, true} { // with and without what only the full script knows
		r := b.request(3)
		r.Urgent = false
		if picky {
			r.PerAgent = 50
		} else {
			first = r
		}
		c := b.claimWith(r)
		require.Len(t, c.Tasks, 3)
		for i := range c.Tasks {
			assert.Equal(t, map[string]string{"a": "pb", "b": "", "c": "pc"}[c.Tasks[i].Agent], string(c.Tasks[i].Profile), names(c))
		}
	}
	require.Equal(t, store.EffectDone, b.profile("a", "pb", ""))
	repeated := b.claimWith(first)
	require.Len(t, repeated.Tasks, 3)
	for i := range repeated.Tasks {
		assert.NotEqual(t, "pb", string(repeated.Tasks[i].Profile), "it has none any more")
	}
}

// testReplan gives a task that does not run another time, wherever it is, and its state.
func testReplan(t *testing.T, b *bench) {
	for _, p := range places() {
		b.Run(p.name, func(*testing.T) {
			b.stand(p)
			was := b.one("a", "1")
			replan := store.Replan{
				Agent: "a", ID: "1", Version: was.Version, Was: was.Due, Due: b.now().Add(30 * time.Minute), State: []byte("later"),
			}
			if was.Parked {
				require.Equal(t, p.parked, was.Parked)
			}
			done := store.Effect{Code: store.EffectDone, Due: replan.Due}
			assert.Equal(t, done, b.effect(b.store.Replan(t.Context(), []store.Replan{replan})))
			is := b.one("a", "1")
			assert.Equal(t, replan.Due, is.Due)
			assert.Equal(t, "later", string(is.State))
			assert.NotEqual(t, was.Version, is.Version)
			assert.Equal(t, store.EffectChanged, b.effect(b.store.Replan(t.Context(), []store.Replan{replan})).Code, "it is not as it was seen")
			assert.Empty(t, names(b.claim(10)))
			for _, target := range []store.Target{{Agent: "a", ID: "1"}, {Key: "key"}} {
				b.unhold(target)
			}
			b.clock.Advance(30 * time.Minute)
			c := b.take("a/1")
			assert.Equal(t, "later", string(c.Tasks[0].State))
			assert.Equal(t, replan.Due, c.Tasks[0].Due)
		})
	}
}

// testReplanSooner makes tasks due sooner, keeps their crashes, and leaves alone what runs, what has an order and what does not exist.
func testReplanSooner(t *testing.T, b *bench) {
	b.with(Options{})
	replan := func(id string, due moment.Millis) store.EffectCode {
		t.Helper()
		is := b.one("a", id)
		r := store.Replan{Agent: "a", ID: id, Version: is.Version, Was: is.Due, Due: due}
		return b.effect(b.store.Replan(t.Context(), []store.Replan{r})).Code
	}
	assert.Equal(t, store.EffectNone, replan("none", 1))
	b.submit(within(task("a", "1"), time.Hour), within(task("a", "2"), 2*time.Hour), within(task("a", "3"), 3*time.Hour))
	assert.Equal(t, store.EffectDone, replan("3", b.now())) // the last one comes first
	b.take("a/3")
	assert.Equal(t, store.EffectRunning, replan("3", b.now()))
	b.clock.Advance(lease) // its process is dead
	looks := b.request(1)
	looks.Kinds, looks.Leave = nil, []string{"k"}
	require.Equal(t, 1, b.claimWith(looks).Recovered)
	assert.Equal(t, store.EffectDone, replan("3", b.now().Add(time.Minute)))
	assert.Equal(t, 1, b.one("a", "3").Crashes)
	b.hold(store.Target{Agent: "a"}, moment.When{})
	assert.Equal(t, store.EffectDone, b.effect(b.store.RunNow(t.Context(), []store.RunNow{{Agent: "a", ID: "2"}})).Code)
	assert.Equal(t, store.EffectRunning, replan("2", b.now().Add(time.Hour)), "somebody wants it to run now")
	assert.Equal(t, 3, whole.Audit(t, b.store))
}

// testRemains drops the groups of an agent that have no live task, and the ids of its tasks whose records were dropped; those of others
// stay.
func testRemains(t *testing.T, b *bench) {
	b.with(Options{Kept: 1})
	var others []store.Submission
	for _, agent := range []string{"a", "b:*"} {
		for _, id := range []string{"1", "2", "3"} {
			s := task(agent, id)
			s.Group = "g"
			others = append(others, s)
			b.submit(s)
			c := b.claim(1)
			done := complete(c.Tasks[0])
			done.Group = "g"
			b.settle(done)
			b.clock.Advance(time.Second)
		}
	}
	live := task("a", "live")
	live.Group = "h"
	b.submit(live)
	require.Len(t, others, 6)
	require.Equal(t, store.StatusCompleted, b.one("a", "1").Status, "its record was dropped")
	require.True(t, b.one("a", "1").Dropped)
	forget := func(groups ...string) {
		t.Helper()
		whole.EachPage(t, func(after string) (string, error) {
			return b.store.Forget(t.Context(), store.Remains{Agent: "a", Groups: groups, Cursor: after})
		})
	}
	forget("h", "none")
	assert.EqualValues(t, 1, b.group("h").Live, "it has a live task")
	assert.EqualValues(t, 3, b.group("g").Completed, "it was not named")
	assert.Empty(t, b.one("a", "1").Status)
	assert.Equal(t, store.StatusCompleted, b.one("a", "3").Status, "its record is there")
	forget("g")
	assert.Zero(t, b.group("g"))
	assert.True(t, b.one("b:*", "1").Dropped, "of another agent")
	counts, err := b.store.Group(t.Context(), "b:*", "g")
	require.NoError(t, err)
	assert.EqualValues(t, 3, counts.Completed)
	assert.Equal(t, 1, whole.Audit(t, b.store))
}
