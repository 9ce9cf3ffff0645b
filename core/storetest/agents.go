package storetest

// Pages of agents.

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/storetest/whole"
)

// agents are all agents, read a page at a time, by name.
// A page may repeat an agent that an earlier one had, as the store may change
// while it is read; none may be left out.
func (b *sight) agents(limit int) []store.AgentStats {
	b.Helper()
	out := whole.Agents(b.T, b.store, limit)
	slices.SortFunc(out, func(a, b store.AgentStats) int { return strings.Compare(a.Agent, b.Agent) })
	return slices.Compact(out)
}

// testAgentPages reads hundreds of agents in pages of any size: each agent once,
// with names that need escaping among them.
func testAgentPages(t *testing.T, b *bench) {
	b.with(Options{Partitions: 4})
	assert.Empty(t, b.agents(10))
	// Per cent, colon and braces mean something in the keys of redisstore.
	want := []string{"%", "a:b", "{}", "é"}
	for i := range 700 {
		want = append(want, fmt.Sprintf("agent%03d", i))
	}
	var subs []store.Submission
	for _, agent := range want {
		// With one task each, as an agent with one and an agent with
		// several are stored in different ways.
		subs = append(subs, task(agent, "1"))
	}
	b.submit(subs...)
	slices.Sort(want)
	for _, limit := range []int{1, 10, 500, 10_000} {
		var got []string
		for _, a := range b.agents(limit) {
			got = append(got, a.Agent)
			assert.Equal(t, store.AgentStats{Agent: a.Agent, Live: 1, Due: b.now()}, a)
		}
		assert.Equal(t, want, got, limit)
	}
}

// testAgentStats has agents in every state: waiting, running, with several tasks, finished and held.
func testAgentStats(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(within(task("later", "1"), time.Hour), task("runs", "1"), task("several", "1"), within(task("several", "2"), time.Minute),
		task("gone", "1"), within(task("held", "1"), time.Hour))
	for _, task := range b.claim(10).Tasks {
		if task.Agent == "gone" {
			b.ended(complete(task))
		}
	}
	b.hold(store.Target{Agent: "held"}, moment.When{After: time.Second})
	b.hold(store.Target{Agent: "later", ID: "1"}, moment.When{}) // not the agent
	// An agent whose only task has ended is not listed, and one whose only task runs is due never.
	want := []store.AgentStats{
		{Agent: "held", Live: 1, Due: b.now().Add(time.Hour), Held: true},
		{Agent: "later", Live: 1, Due: b.now().Add(time.Hour)},
		{Agent: "runs", Live: 1},
		{Agent: "several", Live: 2, Due: b.now().Add(time.Minute)},
	}
	for _, limit := range []int{1, 2, 10} {
		assert.Equal(t, want, b.agents(limit), limit)
	}
	b.clock.Advance(time.Second)
	want[0].Held = false
	assert.Equal(t, want, b.agents(10), "a hold that is over is none")
}

// testExplain has agents in a queue: a waiting task says how many agents come before
// its own, and a running one who has it.
func testExplain(t *testing.T, b *bench) {
	b.with(Options{})
	for _, agent := range []string{"a", "b", "c"} {
		b.submit(task(agent, "1"), within(task(agent, "2"), time.Hour))
		b.clock.Advance(time.Second)
	}
	b.submit(within(task("d", "1"), time.Hour))
	b.hold(store.Target{Kind: "other"}, moment.When{})
	ahead := func() (out []int64) {
		for _, agent := range []string{"a", "b", "c", "d"} {
			out = append(out, b.one(agent, "1").Ahead)
		}
		return out
	}
	// The agents come in the order in which they have waited.
	assert.Equal(t, []int64{0, 1, 2, 6}, ahead())
	first, second := b.claim(1), b.claim(1)
	require.Equal(t, []string{"a/1", "b/1"}, append(names(first), names(second)...))
	b.clock.Advance(time.Second)
	b.extend(second.Fence)
	// The holder of a lease is read only with Explain, as reading it costs a store more.
	for agent, want := range map[string]store.Stored{
		"a": {Lease: first.Now.Add(lease), Fence: first.Fence}, "b": {Lease: b.now().Add(lease), Fence: second.Fence},
		"c": {}, "nobody": {},
	} {
		got := b.one(agent, "1")
		assert.Equal(t, want, store.Stored{Lease: got.Lease, Fence: got.Fence, Ahead: got.Ahead}, agent)
	}
	plain := b.read("a", "1")[0]
	assert.Equal(t, [2]int64{0, 0}, [2]int64{int64(plain.Lease), int64(plain.Fence)}, "only when it is asked for")
	assert.Zero(t, b.read("d", "1")[0].Ahead)
	b.complete(first)
	got := b.one("a", "1")
	assert.Equal(t, [3]int64{}, [3]int64{int64(got.Lease), int64(got.Fence), got.Ahead}, "finished")
}

// testVersions has a task change in every way that an operator can see: its
// version differs each time, and only then.
func testVersions(t *testing.T, b *bench) {
	b.with(Options{})
	b.submit(keyed(), task("a", "2"))
	seen := map[string]string{}
	differs := func(what string) {
		t.Helper()
		v := b.one("a", "1").Version
		require.NotEmpty(t, v)
		require.Empty(t, seen[v], what)
		seen[v] = what
		// Reading it changes nothing.
		assert.Equal(t, v, b.one("a", "1").Version)
	}
	differs("submitted")
	assert.NotEqual(t, b.one("a", "1").Version, b.one("a", "2").Version)
	c := b.claim(2)
	b.extend(c.Fence, store.Progress{Run: c.Tasks[0].Run, State: []byte("half")})
	differs("progress")
	s := again(c.Tasks[0], 0)
	s.State = []byte("whole")
	b.ended(s)
	differs("settled")
	b.complete(b.take("a/1"))
	differs("ended")
	assert.Empty(t, b.one("a", "3").Version)
}
