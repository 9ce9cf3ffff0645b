package top_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/cli/top"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// input has an agent that floods, one that waits behind it, one that is paused and one that idles.
func input() *top.Input {
	in := &top.Input{
		Now: now,
		Agents: []model.AgentStats{
			{Agent: "idle", Live: 900, Due: now.Add(time.Hour)},
			{Agent: "flood", Live: 50, Due: now.Add(-time.Second)},
			{Agent: "starved", Live: 2, Due: now.Add(-time.Minute)},
			{Agent: "paused", Live: 1, Due: now.Add(-time.Hour), Paused: true},
		},
		Processes: []model.Process{{Slots: 6}, {Slots: 4}},
	}
	for _, agent := range []string{"flood", "flood", "flood", "flood", "gone"} {
		in.Running = append(in.Running, core.TaskInfo{Agent: agent})
	}
	return in
}

// names are the agents in their order.
func names(t *top.Top) (all []string) {
	for _, r := range t.Agents {
		all = append(all, r.Agent)
	}
	return all
}

func TestAgentsAreRanked(t *testing.T) {
	t.Parallel()
	clock := now
	c := &top.Counter{Now: func() time.Time { return clock }}
	c.Begin()
	for range 3 {
		c.Add("idle")
	}
	c.Add("ended")
	clock = clock.Add(30 * time.Second)
	for by, want := range map[string][]string{
		top.ByShare:   {"flood", "gone", "idle", "ended", "starved", "paused"},
		top.ByRuns:    {"idle", "ended", "flood", "gone", "starved", "paused"},
		top.ByOverdue: {"starved", "flood", "gone", "idle", "ended", "paused"},
		top.ByWaiting: {"idle", "flood", "starved", "paused", "gone", "ended"},
	} {
		got := top.Of(input(), c, by, 10)
		assert.Equal(t, want, names(&got), by)
		assert.Equal(t, 10, got.Slots)
		assert.Equal(t, 5, got.InUse)
		assert.InDelta(t, 30, got.Measured, 0.001)
	}
	got := top.Of(input(), c, top.ByShare, 3)
	require.Len(t, got.Agents, 3)
	assert.InDelta(t, 0.4, got.Agents[0].Share, 0.001, "of the slots")
	assert.InDelta(t, 6, *got.Agents[2].Rate, 0.001)
	assert.Equal(t, &top.Most{Agent: "flood", Running: 4, Of: 5, Overdue: 1}, got.Most)
	assert.Equal(t, "agent flood has 4 of the 5 runs under way, more than half, and 1 other agent is overdue", got.Most.Text())
}

// Runs that ended a minute ago do not count any more, and nothing is said before something was measured.
func TestRatesAreOfTheLastMinute(t *testing.T) {
	t.Parallel()
	clock := now
	c := &top.Counter{Now: func() time.Time { return clock }}
	c.Add("a")
	rates, over := c.Rates()
	assert.Empty(t, rates)
	assert.Zero(t, over)
	got := top.Of(input(), c, top.ByShare, 1)
	assert.Nil(t, got.Agents[0].Rate)
	clock = clock.Add(50 * time.Second)
	c.Add("b")
	clock = clock.Add(20 * time.Second)
	rates, over = c.Rates()
	assert.Equal(t, map[string]float64{"b": 1}, rates)
	assert.Equal(t, time.Minute, over)
	var none *top.Counter
	rates, over = none.Rates()
	assert.Empty(t, rates)
	assert.Zero(t, over)
}

// Nobody floods who has half, or who is one of a few.
func TestNoAgentIsNamedForLittle(t *testing.T) {
	t.Parallel()
	in := input()
	in.Running = in.Running[:3]
	few := top.Of(in, nil, top.ByShare, 10)
	assert.Nil(t, few.Most)
	in = input()
	in.Running[0].Agent, in.Running[1].Agent = "gone", "starved"
	half := top.Of(in, nil, top.ByShare, 10)
	assert.Nil(t, half.Most)
	in = input()
	in.Agents[2].Due = now.Add(time.Second)
	in.Processes = nil
	alone := top.Of(in, nil, top.ByShare, 10)
	assert.Equal(t, "agent flood has 4 of the 5 runs under way, more than half; no other agent is overdue", alone.Most.Text())
	assert.InDelta(t, 0.8, alone.Agents[0].Share, 0.001, "of what is under way, as no process says what it has")
}
