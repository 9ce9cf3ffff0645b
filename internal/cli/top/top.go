// Package top ranks agents: by what they have under way, how many runs they end in a minute, how long they wait, and how many tasks they have. It works on
// what others have read, and counts the runs whose ends it is given.
package top

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// The orders of a list.
const (
	ByShare   = "share"   // of what is under way
	ByRuns    = "runs"    // that ended lately
	ByOverdue = "overdue" // those that wait longest
	ByWaiting = "waiting" // those with the most live tasks
)

// Orders are all of them, the default first.
var Orders = []string{ByShare, ByRuns, ByOverdue, ByWaiting}

// Row is one agent.
type Row struct {
	Agent   string   `json:"agent_id"`
	Running int      `json:"running"`
	Share   float64  `json:"share"`                     // of the slots that are known, or of what is under way if no process has any
	Rate    *float64 `json:"runs_per_minute,omitempty"` // left out if it was not measured
	Live    int64    `json:"live"`
	Overdue float64  `json:"overdue_seconds"`
	Paused  bool     `json:"is_paused"`
}

// Top is what agents do at a time.
type Top struct {
	Now      time.Time `json:"now"`
	Slots    int       `json:"slots"` // of all processes that have reported
	InUse    int       `json:"in_use"`
	Most     *Most     `json:"most,omitempty"` // left out if no agent has more than half
	Measured float64   `json:"measured_seconds"`
	Agents   []Row     `json:"agents"`
	Partly   bool      `json:"partly,omitempty"` // there are more agents than were read
}

// Most is the agent that has more than half of what is under way.
type Most struct {
	Agent   string `json:"agent_id"`
	Running int    `json:"running"`
	Of      int    `json:"of"`
	Overdue int    `json:"others_overdue"` // other agents that are overdue
}

// Text is that in words.
func (m *Most) Text() string {
	text := fmt.Sprintf("agent %s has %d of the %d runs under way, more than half", m.Agent, m.Running, m.Of)
	switch m.Overdue {
	case 0:
		return text + "; no other agent is overdue"
	case 1:
		return text + ", and 1 other agent is overdue"
	default:
		return text + fmt.Sprintf(", and %d other agents are overdue", m.Overdue)
	}
}

// Bounds of what is worth naming: fewer runs than this say nothing about shares, and work that has been due for less is about to be claimed.
const (
	fewestRunning = 4
	overdueAfter  = time.Second
)

// Input is what a store has said.
type Input struct {
	Now       time.Time // by its clock
	Agents    []model.AgentStats
	Partly    bool            // there are more
	Running   []core.TaskInfo // tasks that run
	Processes []model.Process
}

// Of ranks the agents of an input, and returns so many of them. rates are their runs a minute, by what c has counted; nil for unknown.
func Of(in *Input, c *Counter, by string, most int) Top {
	t := Top{Now: in.Now, InUse: len(in.Running), Agents: []Row{}, Partly: in.Partly}
	for i := range in.Processes {
		t.Slots += in.Processes[i].Slots
	}
	running := map[string]int{}
	for i := range in.Running {
		running[in.Running[i].Agent]++
	}
	rates, measured := c.Rates()
	t.Measured = measured.Seconds()
	seen := map[string]bool{}
	add := func(r Row) {
		if seen[r.Agent] {
			return
		}
		seen[r.Agent] = true
		r.Running = running[r.Agent]
		if of := max(t.Slots, len(in.Running)); of > 0 {
			r.Share = float64(r.Running) / float64(of)
		}
		if measured > 0 {
			rate := rates[r.Agent]
			r.Rate = &rate
		}
		t.Agents = append(t.Agents, r)
	}
	for i := range in.Agents {
		a := &in.Agents[i]
		add(Row{Agent: a.Agent, Live: a.Live, Paused: a.Paused, Overdue: overdue(a, in.Now).Seconds()})
	}
	for agent := range running {
		add(Row{Agent: agent})
	}
	for agent := range rates {
		add(Row{Agent: agent})
	}
	t.Most = mostOf(t.Agents, len(in.Running))
	slices.SortFunc(t.Agents, func(a, b Row) int { return cmp.Or(order(&a, &b, by), cmp.Compare(a.Agent, b.Agent)) })
	t.Agents = t.Agents[:min(len(t.Agents), most)]
	return t
}

// overdue is for how long the next task of an agent has been due, which is a moment where processes claim; a pause of the agent explains it.
func overdue(a *model.AgentStats, now time.Time) time.Duration {
	if a.Due.IsZero() || a.Paused {
		return 0
	}
	return max(now.Sub(a.Due), 0)
}

// mostOf is the agent that has more than half of all runs; nil if none has, or if there are too few.
func mostOf(rows []Row, all int) *Most {
	if all < fewestRunning {
		return nil
	}
	at := slices.IndexFunc(rows, func(r Row) bool { return 2*r.Running > all })
	if at < 0 {
		return nil
	}
	m := &Most{Agent: rows[at].Agent, Running: rows[at].Running, Of: all}
	for i := range rows {
		if i != at && rows[i].Overdue >= overdueAfter.Seconds() {
			m.Overdue++
		}
	}
	return m
}

// order compares two agents: what counts least decides last.
func order(a, b *Row, by string) int {
	rate := func(r *Row) float64 {
		if r.Rate == nil {
			return 0
		}
		return *r.Rate
	}
	share, runs := cmp.Compare(b.Running, a.Running), cmp.Compare(rate(b), rate(a))
	late, live := cmp.Compare(b.Overdue, a.Overdue), cmp.Compare(b.Live, a.Live)
	switch by {
	case ByRuns:
		return cmp.Or(runs, share, late, live)
	case ByOverdue:
		return cmp.Or(late, share, runs, live)
	case ByWaiting:
		return cmp.Or(live, share, runs, late)
	default:
		return cmp.Or(share, runs, late, live)
	}
}

// window is how long a run counts, and leastMeasured how long has to be counted before that says anything.
const (
	window        = time.Minute
	leastMeasured = time.Second
)

// Counter counts the runs of agents. It is safe for concurrent use; a nil one has counted nothing.
type Counter struct {
	Now func() time.Time

	mu    sync.Mutex
	begun time.Time
	ends  []end // oldest first
}

// end is the end of a run.
type end struct {
	at    time.Time
	agent string
}

// Begin begins to count, unless it has begun.
func (c *Counter) Begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun.IsZero() {
		c.begun = c.Now()
	}
}

// Add counts the end of a run.
func (c *Counter) Add(agent string) {
	c.Begin()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends = append(c.ends, end{c.Now(), agent})
}

// Rates are the runs of each agent in a minute, and over what time that was measured; zero if it was not yet.
func (c *Counter) Rates() (map[string]float64, time.Duration) {
	if c == nil {
		return nil, 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.Now()
	over := min(now.Sub(c.begun), window)
	if c.begun.IsZero() || over < leastMeasured {
		return nil, 0
	}
	from, _ := slices.BinarySearchFunc(c.ends, now.Add(-window), func(e end, t time.Time) int { return e.at.Compare(t) })
	c.ends = slices.Clone(c.ends[from:])
	rates := map[string]float64{}
	for _, e := range c.ends {
		rates[e.agent] += float64(time.Minute) / float64(over)
	}
	return rates, over
}
