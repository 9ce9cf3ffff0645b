package world

// The row of batches with settings: how many tasks share a call, by which labels, and how long it waits for more.

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

var batchOfOne = invariant("batch-of-one-agent", "design 3", "One call has runs of one agent, with the same labels where these tell batches apart, and no more than its kind says.")

var batches = &feature{
	name:   "batches",
	fields: []string{"Labels"},
	holds:  []held{{batchOfOne, "batch-of-many"}},
	plan:   planBatches,
	config: func(w *World, _ *process, c *core.Config) {
		if n := w.plan.Settings.Batch; n > 0 {
			c.Kinds["batch"] = core.KindConfig{Batch: n, BatchWait: w.plan.Settings.BatchWait, BatchBy: []string{core.BatchByAgent, batchLabel}}
		}
	},
	watch: func(a *auditor, _ *storeModel) watcher {
		return watcher{step: func() {
			if a.w.plan.Settings.Batch > 0 {
				a.batched()
			}
		}}
	},
}

const batchLabel = "part"

// planBatches draws many tasks of the kind of batches, of several agents at once.
func planBatches(g *draw.Generator) {
	p := g.Plan
	if g.In(80) {
		return
	}
	p.Settings.Batch, p.Settings.BatchWait = 1+g.IntN(3), draw.One(g.Dice, 0, 50*time.Millisecond, 500*time.Millisecond)
	for range 2 + g.IntN(3) {
		at := g.Span(0, p.Horizon)
		for range 1 + g.IntN(3) {
			r := draw.Request{At: at, Process: g.IntN(4), Kind: draw.AskSubmit, Agent: g.Agent()}
			for i := range 1 + g.IntN(4) {
				def := g.Definition(r.Agent, "t"+string(rune('0'+i)), false)
				def.Kind = "batch"
				if g.In(60) {
					def.Labels = map[string]string{batchLabel: draw.One(g.Dice, "", "x", "y")}
				}
				r.Tasks = append(r.Tasks, def)
			}
			p.Requests = append(p.Requests, r)
		}
	}
}

// callOf is what a handler was called with.
type callOf struct {
	p     *process
	tasks []*core.RunInfo
}

// batched holds what the calls since the last step have had.
func (a *auditor) batched() {
	w := a.w
	w.mu.Lock()
	all := w.batches
	w.batches = nil
	w.mu.Unlock()
	slices.SortFunc(all, func(x, y callOf) int {
		return cmp.Or(cmp.Compare(x.p.index, y.p.index), cmp.Compare(x.tasks[0].Agent, y.tasks[0].Agent), cmp.Compare(x.tasks[0].ID, y.tasks[0].ID))
	})
	for _, c := range all {
		first := c.tasks[0]
		label, has := first.Labels[batchLabel]
		for _, t := range c.tasks {
			other, also := t.Labels[batchLabel]
			a.must(batchOfOne, t.Agent == first.Agent && other == label && also == has, "%s/%s in a call with %s/%s on %s", t.Agent, t.ID, first.Agent, first.ID, c.p.name)
		}
		a.must(batchOfOne, len(c.tasks) <= w.plan.Settings.Batch, "%d tasks in a call on %s, and %d are allowed", len(c.tasks), c.p.name, w.plan.Settings.Batch)
	}
}
