package world

// The table of features: what a history tries beside plain tasks. The next feature is another row.

import (
	"context"
	"reflect"
	"slices"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

// feature is a row of the world: how something is generated, what is asserted of it, and the faults that only these assertions find.
type feature struct {
	name   string
	fields []string // of core.NewTask, and of store.Submission as Submission.Name, that it generates
	verbs  []string // of the store that it leads to
	holds  []held
	// plan adds to a plan what the feature needs. Its dice are its own, so that a row changes no draw of another.
	plan func(g *draw.Generator)
	// config changes the configuration of a process, and ready what its scheduler handles.
	config func(w *World, p *process, c *core.Config)
	ready  func(p *process)
	// asks are the requests that are its own, and returns what its handlers return.
	asks    map[draw.RequestKind]asking
	returns map[draw.Outcome]func(r *run) error
	// watch makes what watches it in a model. A world that is restored makes another one.
	watch func(a *auditor, m *storeModel) watcher
}

// held is an invariant with the sown fault that only it finds: its name in internal/proof/sow/faults.
type held struct {
	*Invariant

	fault string
}

// asking makes a request, and returns what is to be checked of its answer; see [World.make].
type asking func(ctx context.Context, w *World, p *process, r *draw.Request) (check func(), err error)

// watcher is what a feature sees of a history: each field is nil or is called by the auditor, in the order of the table.
type watcher struct {
	submitted func(sub *store.Submission, placed *store.Submitted)
	refused   func(tasks []store.Submission, limit *store.LimitError) // by the quota of an agent
	claimed   func(c *store.Claim)                                    // when the model knows of it
	chose     func(r *store.ClaimRequest, c *store.Claim)             // before the model knows of it; of claims that have taken something
	took      func(t *task, c *store.Claimed)
	began     func(r *run)
	settled   func(s *store.Settlement, t *task, answer *store.Settled) // before the model knows of it
	decided   func(o *outcome) bool                                     // true if the feature alone says what is right
	called    func(c *call, request, answer any)                        // a verb of the feature's own
	ended     func(t *task)
	step      func() // something has happened
	kind      func() // the world has become kind, and at first what can end has
	rest      func() // the history is over
}

// The table. The rows of plain tasks come first: they are generated and asserted in files of their own, and have been before there was a
// table.
var features = slices.Concat(plainFeatures, []*feature{signals, callbacks, alarms, quiet, budgets, batches, breaker, tallies, gates, lines, marks, approvals, ahead, saves, tells, lent, hooked, quotas, lateness, outputs, tenants, urgent, room})

// Feature is a row, for tests that compare the table with something else.
type Feature struct {
	Name          string
	Fields, Verbs []string
	Faults        map[string]string // the invariant of each fault that only it finds
}

// Features are the rows of the table.
func Features() []Feature {
	out := make([]Feature, 0, len(features))
	for _, f := range features {
		row := Feature{Name: f.name, Fields: f.fields, Verbs: f.verbs, Faults: map[string]string{}}
		for _, h := range f.holds {
			row.Faults[h.fault] = h.Name
		}
		out = append(out, row)
	}
	return out
}

// PlanOf is the history of a seed, with what each row adds to it.
func PlanOf(seed uint64) *draw.Plan {
	rows := make([]func(g *draw.Generator), len(features))
	for i, f := range features {
		rows[i] = f.plan
	}
	return draw.Of(seed, rows...)
}

// everybody are the agents of plain tasks, and those that a feature has for itself.
var everybody = append(slices.Clone(draw.Agents), crowdAgent, quietAgent, gateAgent)

// each calls a function of all rows that watch.
func (m *storeModel) each(do func(w *watcher)) {
	for i := range m.watchers {
		do(&m.watchers[i])
	}
}

// over tells the rows that a task has ended, and what the tracker says of it.
func (m *storeModel) over(t *task) {
	m.each(func(w *watcher) {
		if w.ended != nil {
			w.ended(t)
		}
	})
}

// watch gives a model what its features watch with.
func (a *auditor) watch(m *storeModel) *storeModel {
	for _, f := range a.w.features {
		if f.watch != nil {
			m.watchers = append(m.watchers, f.watch(a, m))
		}
	}
	return m
}

// called tells the rows of a verb that is none of the plain ones.
func (a *auditor) called(request, answer any) {
	a.model.each(func(w *watcher) {
		if w.called != nil {
			w.called(a.w.making, request, answer)
		}
	})
}

// uses notes which fields of submissions are not empty.
func (w *World) uses(tasks []store.Submission) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range tasks {
		v := reflect.ValueOf(&tasks[i]).Elem()
		for k := range v.NumField() {
			if name := "Submission." + v.Type().Field(k).Name; !w.called[name] && !v.Field(k).IsZero() {
				w.called[name] = true
			}
		}
	}
}

// askRow makes a request of a row.
func (w *World) askRow(ctx context.Context, p *process, r *draw.Request) (func(), error) {
	for _, f := range w.features {
		if ask := f.asks[r.Kind]; ask != nil {
			return ask(ctx, w, p, r)
		}
	}
	return func() {}, nil
}

// returned is what a handler returns with an outcome of a row.
func (r *run) returned() error {
	for _, f := range r.p.w.features {
		if end := f.returns[r.outcome]; end != nil {
			return end(r)
		}
	}
	return nil
}
