package world

// The row of limits: which tasks wait in line, and that no task passes them. audit_limit.go checks how many run and start.

import (
	"maps"

	"github.com/seed-6f6f2c11/duly/core/store"
)

var lineIsKept = invariant("line-is-kept", "34", "Nothing that a limit counts starts without having waited in its line while somebody waits there.")

var lines = &feature{
	name:  "limits",
	verbs: []string{"Limit"},
	holds: []held{{lineIsKept, "limit-line-passed"}},
	watch: func(a *auditor, _ *storeModel) watcher {
		in := map[ref]store.Line{}
		return watcher{claimed: func(c *store.Claim) {
			if len(a.w.plan.Settings.Limits) > 0 && a.w.plan.Settings.Partitions == 1 {
				a.passed(in, c)
			}
		}}
	},
}

// passed looks for tasks that were claimed past those that wait in line for the same, and notes who waits from now on.
func (a *auditor) passed(in map[ref]store.Line, c *store.Claim) {
	now := map[ref]store.Line{}
	for _, t := range a.model.sorted() {
		if t.phase != waiting || !a.model.limited(t) {
			continue
		}
		found, err := a.w.store.Get(a.w.ctx, store.Get{Agent: t.agent, IDs: []string{t.id}, Explain: true})
		if err == nil && found.Tasks[0].Line.Limit.Concurrency+found.Tasks[0].Line.Limit.Rate > 0 {
			now[t.ref] = found.Tasks[0].Line
		}
	}
	for i := range c.Tasks {
		t := a.model.live(ref{c.Tasks[i].Agent, c.Tasks[i].ID})
		if t == nil || c.Tasks[i].Lined || t.stirred {
			continue
		}
		for other, line := range now {
			was, before := in[other]
			if !before || a.model.tasks[other].stirred || was.Limit.About != line.Limit.About || was.Of != line.Of {
				continue
			}
			l := line.Limit.Limit
			bucket, is := counts(&l, t)
			a.must(lineIsKept, !is || bucket != line.Of, "%s is claimed, and %s waits in line for %s", t.ref, other, l.About)
		}
	}
	for r := range now { // it waits in line again
		a.model.tasks[r].stirred = false
	}
	for i := range c.Tasks {
		if t := a.model.live(ref{c.Tasks[i].Agent, c.Tasks[i].ID}); t != nil {
			t.stirred = false
		}
	}
	clear(in)
	maps.Copy(in, now)
}
