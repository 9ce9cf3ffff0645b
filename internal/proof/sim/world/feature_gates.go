package world

// The row of gates: tasks that are asked about before they run, less and less often while there is nothing to do.

import (
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

var (
	gateIsAsked = invariant("gate-is-asked", "design 3", "No run starts that its gate has not let through.")
	gateBacks   = invariant("gate-backs-off", "design 5", "A recurring task whose gate says no is skipped, uncharged, and asked about less and less often, at most to the longest pause; a run that is let through resets it.")
)

// The agent and the kind of tasks with a gate.
const (
	gateAgent = "gil"
	gateKind  = "gated"
	gateMost  = 20 * time.Second
)

var gates = &feature{
	name:  "gates",
	holds: []held{{gateIsAsked, "gate-not-heeded"}, {gateBacks, "gate-never-tires"}},
	plan: func(g *draw.Generator) {
		if g.In(80) {
			return
		}
		g.Plan.Settings.Gates = true
		for range 1 + g.IntN(4) {
			r := draw.Request{At: g.Span(0, g.Plan.Horizon/2), Process: g.IntN(4), Kind: draw.AskSubmit, Agent: gateAgent}
			def := g.Definition(gateAgent, g.ID(), false)
			def.NewTask = core.NewTask{
				Agent: gateAgent, ID: def.ID, Kind: gateKind, Payload: def.Payload, Every: g.Span(time.Second, 6*time.Second), OnConflict: def.OnConflict, Misfire: core.MisfireAll,
			}
			def.Closed, r.Tasks = g.Uint64(), []*draw.Definition{def}
			g.Plan.Requests = append(g.Plan.Requests, r)
		}
	},
	config: func(w *World, _ *process, c *core.Config) {
		if w.plan.Settings.Gates {
			c.Kinds[gateKind] = core.KindConfig{IdleBackoff: core.IdleBackoff{Factor: 2, Max: gateMost}}
		}
	},
	ready: func(p *process) {
		if p.w.plan.Settings.Gates {
			p.handle(gateKind)
			core.Gate(p.s, gateKind, p.ask)
		}
	},
	watch: func(a *auditor, _ *storeModel) watcher {
		return watcher{began: a.letThrough, decided: a.turnedAway}
	},
}

// ask is the gate: it is closed as the definition says for the first questions, one after the other, and open from then on.
func (p *process) ask(_ context.Context, t *core.RunInfo) (bool, error) {
	w := p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	def, n := w.defs[w.numbers[ref{t.Agent, t.ID}]], w.questions[ref{t.Agent, t.ID}]
	w.questions[ref{t.Agent, t.ID}]++
	open := def == nil || n >= 64 || def.Closed>>n&1 == 0 || w.kind
	w.answers[asked{ref{t.Agent, t.ID}, t.Fence}] = open
	return open, nil
}

// asked is a run that a gate was asked about.
type asked struct {
	ref
	fence store.Fence
}

// letThrough holds that a run was let through.
func (a *auditor) letThrough(r *run) {
	if r.info.Kind != gateKind {
		return
	}
	a.w.mu.Lock()
	open := a.w.answers[asked{ref{r.info.Agent, r.info.ID}, r.info.Fence}]
	a.w.mu.Unlock()
	a.must(gateIsAsked, open, "%s/%s runs under %s", r.info.Agent, r.info.ID, a.w.fence(r.info.Fence))
}

// turnedAway checks the outcome of a task that its gate has turned away.
func (a *auditor) turnedAway(o *outcome) bool {
	t := o.t
	if t.kind != gateKind || o.ending || o.t.renewed != nil {
		return false
	}
	if o.run != nil {
		if o.s.Verb != store.VerbRelease && !o.cutOff() {
			t.history.idle = 0
		}
		return false
	}
	a.w.mu.Lock()
	open, was := a.w.answers[asked{t.ref, o.lease.fence}]
	a.w.mu.Unlock()
	if !was || open || o.s.Verb != store.VerbAgain || a.w.restored || o.after.SkipCount != o.before.SkipCount+1 {
		return !was
	}
	t.history.idle++
	t.history.last = 0
	b, c := &o.before, &o.after
	a.must(gateBacks, c.Attempt == 1 && c.ConsecutiveFailures == b.ConsecutiveFailures, "%s: attempt %d, %d failures", t.ref, c.Attempt, c.ConsecutiveFailures)
	base := max(t.every(), a.w.plan.Settings.Backoff)
	wait := base
	for range t.history.idle {
		wait = min(2*wait, max(base, gateMost))
	}
	a.must(gateBacks, o.s.Due.After == wait, "%s is asked about in %s, not %s, after %d times", t.ref, o.s.Due.After, wait, t.history.idle)
	return true
}
