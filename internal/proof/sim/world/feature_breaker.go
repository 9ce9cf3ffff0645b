package world

// The row of the breaker: runs that submit tasks whose runs submit tasks.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

var (
	breakerOfDepth = invariant("breaker-of-depth", "37", "What the runs of tasks submit is at most so deep below the task that no run has submitted.")
	breakerOfMany  = invariant("breaker-of-many", "37", "No hour has more tasks below one such task than allowed, in each partition, and each counts once.")
)

var breaker = &feature{
	name:   "breaker",
	fields: []string{"Submission.Root"},
	holds:  []held{{breakerOfDepth, "breaker-one-deeper"}, {breakerOfMany, "breaker-one-more"}},
	plan:   planBreaker,
	config: func(w *World, _ *process, c *core.Config) {
		if o := &w.plan.Settings; o.Depth > 0 {
			c.MaxDepth, c.MaxSpawned = o.Depth, o.Spawned
		}
	},
	watch: watchBreaker,
}

// planBreaker draws a task whose runs submit tasks, down to more than is allowed.
func planBreaker(g *draw.Generator) {
	p := g.Plan
	if g.In(80) {
		return
	}
	p.Settings.Depth, p.Settings.Spawned = 1+g.IntN(2), 1+g.IntN(4)
	for range 1 + g.IntN(2) {
		r := draw.Request{At: g.Span(0, p.Horizon/2), Process: g.IntN(4), Kind: draw.AskSubmit, Agent: g.Agent()}
		r.Tasks = []*draw.Definition{family(g, r.Agent, 3)}
		p.Requests = append(p.Requests, r)
	}
}

// family is a task whose first runs submit one each, with families of their own. Those of one agent count in one partition.
func family(g *draw.Generator, agent string, generations int) *draw.Definition {
	def := g.Definition(agent, g.ID()+string(rune('a'+generations)), false)
	def.Scripts = nil
	if generations == 0 {
		return def
	}
	for range 1 + g.IntN(3) {
		of := agent
		if g.In(30) {
			of = g.Agent()
		}
		def.Scripts = append(def.Scripts, draw.Script{Work: g.Span(0, time.Second), Heed: true, Then: draw.One(g.Dice, draw.Fail, draw.Snooze, draw.Yield), Submits: family(g, of, generations-1)})
	}
	return def
}

// rootIn is a root, as each partition counts it.
type rootIn struct {
	ref
	partition int
}

func watchBreaker(a *auditor, m *storeModel) watcher {
	o, below := &a.w.plan.Settings, map[rootIn]int{}
	depth := map[int]int{}
	for i := range a.w.plan.Requests {
		for _, def := range a.w.plan.Requests[i].Tasks {
			depths(def, depth, 0)
		}
	}
	return watcher{submitted: func(sub *store.Submission, placed *store.Submitted) {
		if o.Depth == 0 || sub.Root == nil || !placed.Created {
			return
		}
		a.must(breakerOfDepth, depth[numberOf(sub.Body)] <= o.Depth, "%s/%s is %d below its root", sub.Agent, sub.ID, depth[numberOf(sub.Body)])
		root := rootIn{ref{sub.Root.Agent, sub.Root.ID}, m.partition(sub.Agent)}
		below[root]++
		a.must(breakerOfMany, below[root] <= o.Spawned, "%d tasks were submitted below %s, and %d are allowed", below[root], root.ref, o.Spawned)
	}}
}

// depths records how deep a definition is below the task that a client submits.
func depths(d *draw.Definition, all map[int]int, depth int) {
	all[d.Number] = depth
	for i := range d.Scripts {
		if child := d.Scripts[i].Submits; child != nil {
			depths(child, all, depth+1)
		}
	}
}
