package world

// The row of workers: runs that are lent, and that any server keeps and takes back.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

var (
	lentLossIsKnown = invariant("lent-loss-is-known", "47", "A worker whose run another has, or whose task is gone, hears so with its next sign of life.")
	lentEndIsTrue   = invariant("lent-end-is-true", "47", "A worker hears that its run has ended if its outcome is stored, and that it is lost if another has the task.")
)

var lent = &feature{
	name: "workers",
	holds: []held{
		{lentLossIsKnown, "lent-held-anyway"},
		{lentEndIsTrue, "lent-ends-anyway"},
		{lentEndIsTrue, "lent-unknown-is-lost"},
		{saveIsKept, "lent-end-undoes"},
		{startUnderLease, "lent-behind-its-lease"},
		{everyTaskEnds, "lent-lingers-on"},
	},
	plan: func(g *draw.Generator) {
		if g.In(60) {
			return
		}
		for range 1 + g.IntN(2) {
			p := draw.NewProcess(g.Dice)
			p.Worker, p.Kinds, p.Pulls = true, []string{"plain"}, []draw.Pull{{}}
			for _, kind := range []string{"timed", "batch", "rare"} {
				if g.In(60) {
					p.Kinds = append(p.Kinds, kind)
				}
			}
			if g.Plan.Settings.Alarm { // it is there from the begin, and sleeps until the clock outside calls it
				p.Deaf, p.Tick = true, 24*time.Hour
				g.Plan.Processes = append(g.Plan.Processes, p)
				return
			}
			g.Plan.Faults = append(g.Plan.Faults, draw.Fault{At: g.Span(0, g.Plan.Horizon/2), Kind: draw.FaultStart, Plan: &p})
		}
		for range g.IntN(3) { // it goes on behind its lease
			lease := g.Plan.Settings.Lease
			g.Plan.Faults = append(g.Plan.Faults, draw.Fault{At: g.Span(time.Second, g.Plan.Horizon), Kind: draw.FaultCut, Process: len(g.Plan.Processes) + g.IntN(2), For: lease + g.Span(lease/2, 3*lease)})
		}
	},
	watch: func(*auditor, *storeModel) watcher {
		return watcher{settled: func(_ *store.Settlement, t *task, _ *store.Settled) {
			if r := t.lease.began; r != nil { // also under another fence, if it was taken back
				r.stored = true
			}
		}}
	},
}

// isLost reports whether another has the task of a lent run, or may have it.
func (r *lentRun) isLost() bool {
	t := r.p.w.audit.model.live(r.name())
	return t == nil || t.phase != claimed || t.lease.fence != r.info.Fence
}

func (r *lentRun) name() ref { return ref{r.info.Agent, r.info.ID} }

// kept asserts the answer to a sign of life. It was lost before the call, or not.
func (r *lentRun) kept(k *core.Kept, lost bool) {
	w := r.p.w
	w.audit.must(lentLossIsKnown, k.Err != nil || !k.Held || !lost || w.restored, "%s/%s under %s", r.info.Agent, r.info.ID, w.fence(r.info.Fence))
}

// ended asserts the answer to its end.
func (r *lentRun) ended(as *core.ReturnedAs, lost bool) {
	w := r.p.w
	if as.Err != nil || w.restored {
		return
	}
	w.audit.must(lentEndIsTrue, as.Lost || r.stored, "%s under %s, of which nothing is stored: %+v", r.name(), w.fence(r.info.Fence), *as)
	t := w.audit.model.live(r.name())
	w.audit.must(lentEndIsTrue, !as.Lost || lost || r.isLost() || t.lease.end <= w.audit.now(), "%s under %s is lost, and it has the task", r.name(), w.fence(r.info.Fence))
}
