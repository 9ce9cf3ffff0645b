package storetest

// Claims that pass over much of what is due.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/storetest/given"
)

// ofKind is a task of a kind that is due at once.
func ofKind(agent, id, kind string) store.Submission {
	s := task(agent, id)
	s.Kind = kind
	return s
}

// A kind that is bounded gives no more than its bound, from agents with one task and from those with several alike.
// The bound is that of free slots, so what is over is not left: it waits for the next claim.
func testMost(_ *testing.T, b *bench) {
	b.with(Options{})
	for i := range 3 {
		b.submit(ofKind(fmt.Sprint("single", i), "1", "k"), ofKind("several", fmt.Sprint("k", i), "k"), ofKind("several", fmt.Sprint("other", i), "other"))
	}
	r := b.request(10)
	r.Kinds, r.Most = []string{"k", "other"}, map[string]int{"k": 2}
	c := b.claimWith(r)
	kinds := map[string]int{}
	for _, t := range c.Tasks {
		kinds[t.Kind]++
	}
	assert.Equal(b, map[string]int{"k": 2, "other": 3}, kinds)
	assert.Zero(b, c.Left, "they are not left for good")
	r = b.request(10)
	r.Kinds, r.Most = []string{"k", "other"}, map[string]int{"k": 0}
	assert.Empty(b, b.claimWith(r).Tasks)
	assert.Len(b, b.claim(10).Tasks, 4, "the rest is where it was")
}

// What is left stands in the way neither of other agents nor of tasks behind it.
// A kind may be left by thousands of tasks while the process has time for others.
func testLeaveHidesNothing(_ *testing.T, b *bench) {
	b.with(Options{})
	for i := range 60 {
		b.submit(ofKind(fmt.Sprintf("slow%02d", i), "1", "slow"))
	}
	for i := range 10 {
		b.submit(ofKind("both", fmt.Sprint(i), "slow"))
		// One agent with both kinds: the first tasks of its queue are left,
		// and the one behind them is taken.
	}
	b.submit(ofKind("both", "fast", "fast"))
	b.clock.Advance(time.Millisecond)
	b.submit(ofKind("last", "fast", "fast"))
	r := b.request(2)
	r.Kinds, r.Leave = []string{"fast"}, []string{"slow"}
	c := b.claimWith(r)
	assert.ElementsMatch(b, []string{"both/fast", "last/fast"}, names(c))
	assert.Equal(b, 70, c.Left)
	assert.Zero(b, c.Passed)
}

// A search is bounded, and the next one continues where it stopped, also between agents that are due at the same time, as many are at nine.
// Otherwise one claim could take as long as there are tasks to pass over.
func testPassed(t *testing.T, b *bench) {
	for name, apart := range map[string]time.Duration{"one after the other": time.Millisecond, "together": 0} {
		b.with(Options{})
		const agents = 450
		for i := range agents {
			b.submit(ofKind(fmt.Sprintf("slow%03d", i/2), fmt.Sprintf("|%d-2|\n%%", i), "slow")) // no id ends the name of a place
			b.clock.Advance(apart)
		}
		b.submit(ofKind("z", "fast", "fast"))
		var c store.Claim
		searches := 0
		for ; len(c.Tasks) == 0 && searches < 10; searches++ {
			r := b.request(1)
			r.Kinds, r.Leave, r.After, r.AfterName = []string{"fast"}, []string{"slow"}, c.Passed, c.PassedName
			c = b.claimWith(r)
			require.LessOrEqual(t, c.Left, 200)
			require.True(t, len(c.Tasks) > 0 || c.Passed > r.After || c.Passed == r.After && c.PassedName > r.AfterName, "it goes on: %s", name)
		}
		assert.Equal(t, []string{"z/fast"}, names(c), name)
		assert.Equal(t, 3, searches, "two hundred agents are looked at in each")
		all := b.request(50)
		all.Kinds = []string{"slow"}
		assert.Equal(t, "slow000", b.claimWith(all).Tasks[0].Agent, "nobody lost his place")
	}
}

// testPassedIsGone goes on with all of a time if the last one that was passed over is no longer there, and for some agents as for any.
func testPassedIsGone(t *testing.T, b *bench) {
	b.with(Options{})
	var all []string
	for i := range 9 {
		all = append(all, fmt.Sprint("a", i))
		b.submit(ofKind(all[i], "1", "k"))
	}
	since := b.now()
	b.clock.Advance(time.Millisecond)
	for _, asked := range [][]string{nil, all} {
		left := func(since moment.Millis, name string) int {
			r := b.request(9)
			r.Kinds, r.Leave, r.After, r.AfterName, r.Agents = []string{"other"}, []string{"k"}, since, name, asked
			return b.claimWith(r).Left
		}
		assert.Equal(t, 3, left(since, "a5"), "those behind it")
		assert.Equal(t, 9, left(since, "a55"), "it has been served meanwhile")
		assert.Zero(t, left(since, ""))
		assert.Equal(t, 9, left(since-1, "a5"))
		assert.Zero(t, left(since+1, "a5"))
	}
}

// A claim for urgent tasks finds those of level 1 behind any number of others, and takes nothing else.
// An urgent claim is how slots that are reserved for level 1 are filled.
func testUrgent(_ *testing.T, b *bench) {
	b.with(Options{})
	at := func(agent, id string, level store.Level) store.Submission {
		s := task(agent, id)
		s.Level = level
		return s
	}
	for i := range 30 {
		b.submit(at(fmt.Sprint("single", i), "1", store.LevelLow), at("several", fmt.Sprint("low", i), store.LevelMedium))
	}
	// A task that has waited for long counts as level 1 in order, but is not urgent.
	b.clock.Advance(2 * store.RaiseAfter) // what has waited for long is not urgent
	b.submit(at("several", "urgent", store.LevelHigh), at("idle", "urgent", store.LevelHigh))
	later := at("several", "later", store.LevelHigh)
	later.Due.After = time.Hour
	b.submit(later)
	r := b.request(10)
	r.Urgent = true
	c := b.claimWith(r)
	assert.ElementsMatch(b, []string{"several/urgent", "idle/urgent"}, names(c))
	r = b.request(10)
	r.Urgent = true
	assert.Empty(b, b.claimWith(r).Tasks)
	total := 0
	for c := b.claim(50); len(c.Tasks) > 0; c = b.claim(50) {
		total += len(c.Tasks)
	}
	assert.Equal(b, 60, total)
}

// An agent whose urgent task is taken keeps its turn among the others.
// Urgent tasks are served beside the turns, not instead of them.
func testUrgentTurns(_ *testing.T, b *bench) {
	b.with(Options{})
	urgent := task("first", "urgent")
	urgent.Level = store.LevelHigh
	b.submit(urgent, task("first", "1"))
	b.clock.Advance(time.Millisecond)
	b.submit(task("second", "1"), task("second", "2"))
	b.clock.Advance(time.Millisecond)
	r := b.request(1)
	r.Urgent = true
	require.Equal(b, []string{"first/urgent"}, names(b.claimWith(r)))
	assert.Equal(b, []string{"first/1"}, names(b.claim(1)))
}

// A look for some agents says when each is due, and takes nothing.
// It is what a pull for named agents asks before it claims.
func testLookAgents(_ *testing.T, b *bench) {
	b.with(Options{})
	later := task("later", "1")
	later.Due.After = time.Minute
	b.submit(task("now", "1"), later, ofKind("parked", "1", "unknown"))
	look := func(kinds []string, agents ...string) store.Look {
		return b.lookWith(store.LookRequest{Kinds: kinds, Agents: agents})
	}
	c := look([]string{"k"}, "nobody", "later", "now")
	assert.Equal(b, []moment.Millis{0, b.now().Add(time.Minute), b.now()}, c.AgentsDue)
	assert.Equal(b, b.now(), c.NextDue)
	c = look([]string{"k"}, "later")
	assert.Equal(b, b.now().Add(time.Minute), c.NextDue, "of these agents")
	require.Equal(b, []string{"now/1"}, names(b.claim(5)))
	assert.NotZero(b, look([]string{"k"}, "now").NextLease, "which may have to be taken back")
	assert.Zero(b, look([]string{"k"}, "parked").NextDue)
	// A look cannot know whose the parked tasks are, and says that they may be.
	assert.Equal(b, b.now(), look([]string{"unknown"}, "parked").NextDue, "what is parked may be its")
	r := b.request(5)
	r.Agents = []string{"now", "later"}
	assert.Equal(b, []moment.Millis{0, b.now().Add(time.Minute)}, b.claimWith(r).AgentsDue, "a claim says so too")
}

// A run that is released may leave a state behind; it clears no crashes, as it has shown nothing.
// Progress before a release is kept, so that the next run can continue from there.
func testReleaseState(_ *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"))
	b.claim(1)
	b.clock.Advance(lease + time.Millisecond)
	c := b.claim(1)
	require.Equal(b, 1, c.Tasks[0].Crashes)
	s := store.Settlement{Run: c.Tasks[0].Run, Kind: "k", Verb: store.VerbRelease, Due: moment.When{At: c.Tasks[0].Due}, State: []byte("cut off")}
	require.NoError(b, b.settle(s)[0].Err)
	c = b.claim(1)
	require.Len(b, c.Tasks, 1)
	assert.Equal(b, "cut off", string(c.Tasks[0].State))
	assert.Equal(b, 1, c.Tasks[0].Crashes)
}

// serial is a request that takes one task of an agent, and none while another of its runs.
func (b *bench) serial(limit int) store.ClaimRequest {
	r := b.request(limit)
	r.Serial = true
	return r
}

// A claim that wants one run of an agent at a time waits for its end, whatever it is.
// The end may be any: each of them lets the next task of the agent start.
func testSerial(_ *testing.T, b *bench) {
	b.with(Options{})
	ends := map[string]func(t store.Claimed){
		"completed": func(t store.Claimed) { require.NoError(b, b.settle(complete(t))[0].Err) },
		"again": func(t store.Claimed) {
			s := store.Settlement{Run: t.Run, Kind: t.Kind, Verb: store.VerbAgain, Due: moment.When{After: time.Hour}}
			require.NoError(b, b.settle(s)[0].Err)
		},
		"released": func(t store.Claimed) {
			s := store.Settlement{Run: t.Run, Kind: t.Kind, Verb: store.VerbRelease, Due: moment.When{At: t.Due.Add(time.Minute)}}
			require.NoError(b, b.settle(s)[0].Err)
		},
		"deleted": func(t store.Claimed) {
			effects, err := b.store.Delete(b.Context(), []store.Deletion{given.Deletion(store.Submission{Agent: t.Agent, ID: t.ID})})
			require.NoError(b, err)
			require.Equal(b, store.EffectDone, effects[0].Code)
		},
	}
	for name := range ends {
		b.submit(task(name, "1"), task(name, "2"), task(name, "3"))
	}
	taken := map[string]store.Claimed{}
	for _, t := range b.claimWith(b.serial(50)).Tasks {
		require.NotContains(b, taken, t.Agent, "one task of an agent")
		taken[t.Agent] = t
	}
	require.Len(b, taken, len(ends))
	assert.Empty(b, b.claimWith(b.serial(50)).Tasks)
	// New tasks, however urgent, wait as well.
	for name := range ends {
		b.submit(task(name, "urgent"))
	}
	assert.Empty(b, b.claimWith(b.serial(50)).Tasks, "nor what is new")
	b.audited()
	for name, end := range ends {
		end(taken[name])
		next := b.claimWith(b.serial(50))
		require.Len(b, next.Tasks, 1, name)
		assert.Equal(b, name, next.Tasks[0].Agent)
	}
	b.audited()
}

// audited checks that an audit finds nothing.
// An audit of the only partition.
func (b *bench) audited() {
	b.Helper()
	effects, err := b.store.Audit(b.Context(), []audit.Page{{}})
	require.NoError(b, err)
	assert.Empty(b, effects[0].Faults)
}

// An agent whose only run has died can continue.
// A lease that ran out is an end too.
func testSerialCrash(_ *testing.T, b *bench) {
	b.with(Options{})
	b.submit(task("a", "1"), task("a", "2"))
	require.Len(b, b.claimWith(b.serial(5)).Tasks, 1)
	b.submit(task("a", "3"))
	assert.Empty(b, b.claimWith(b.serial(5)).Tasks)
	b.clock.Advance(lease + time.Second)
	c := b.claimWith(b.serial(5))
	require.Len(b, c.Tasks, 1)
	require.NoError(b, b.settle(complete(c.Tasks[0]))[0].Err)
	assert.Len(b, b.claimWith(b.serial(5)).Tasks, 1)
}

// An agent that has much to do goes behind those that wait already when a run of its ends.
// Otherwise an agent with a long queue would take the slot of its own last run each time.
func testSerialTurns(_ *testing.T, b *bench) {
	b.with(Options{})
	for i := range 5 {
		b.submit(task("busy", fmt.Sprint(i)))
	}
	b.clock.Advance(time.Second)
	first := b.claimWith(b.serial(1))
	require.Equal(b, []string{"busy/0"}, names(first))
	b.submit(task("other", "1"), task("other", "2"))
	b.clock.Advance(time.Second)
	b.complete(first)
	c := b.claimWith(b.serial(1))
	assert.Equal(b, []string{"other/1"}, names(c))
}

// What processes say of themselves is known until its time has passed, or they say more.
// It is optional for a store, and both have it.
func testPresence(_ *testing.T, b *bench) {
	b.with(Options{})
	st, ok := b.store.(store.Presence)
	require.True(b, ok)
	said := func() map[string][]byte {
		all, err := st.Processes(b.Context())
		require.NoError(b, err)
		return all
	}
	others := func(tag string, info []byte, ttl time.Duration) int {
		n, err := st.Announce(b.Context(), tag, info, ttl)
		require.NoError(b, err)
		return n
	}
	assert.Empty(b, said())
	assert.Equal(b, 0, others("a", []byte("first\x00"), time.Minute))
	assert.Equal(b, 1, others("-worker", []byte("w"), time.Minute))
	assert.Equal(b, 1, others("b", []byte("second"), time.Hour), "a worker that need not live is no other")
	assert.Equal(b, map[string][]byte{"a": []byte("first\x00"), "b": []byte("second"), "-worker": []byte("w")}, said())
	b.clock.Advance(time.Minute)
	assert.Equal(b, map[string][]byte{"b": []byte("second")}, said())
	assert.Equal(b, 0, others("b", []byte("more"), time.Second), "its time has passed")
	assert.Equal(b, map[string][]byte{"b": []byte("more")}, said())
	b.clock.Advance(time.Second)
	// More processes than are remembered: the others are not listed, and nothing fails.
	for i := range store.MaxProcesses + 10 {
		others(fmt.Sprint(i), nil, time.Hour)
	}
	assert.Len(b, said(), store.MaxProcesses)
}
