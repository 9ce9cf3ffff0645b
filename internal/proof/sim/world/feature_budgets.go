package world

// The row of budgets: how many runs start in a period, and what they have reported.

import (
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

var (
	budgetOfRuns  = invariant("budget-of-runs", "38", "No more runs start in a period than a budget of runs has, whatever answers are lost.")
	budgetIsSpent = invariant("budget-is-spent", "38", "What a budget says to be used is the sum of what the runs have reported that ended in its period.")
	budgetStarts  = invariant("budget-counts-starts", "38", "What a budget of runs says to be used is how many have started in its period, of all tasks and of each agent, key or task that it counts by itself.")
	budgetReports = invariant("budget-reports", "38", "What a handler says that it has used is stored with the end of its run, however that ends.")
)

// The tasks with this key have budgets: of runs, and of what they report.
const (
	spendKey = "spend"
	tokens   = "tokens"
)

var budgets = &feature{
	name:   "budgets",
	verbs:  []string{"Budget", "Budgets"},
	holds:  []held{{budgetOfRuns, "budget-one-more"}, {budgetIsSpent, "budget-half"}, {budgetIsSpent, "charged-twice"}, {budgetReports, "budget-of-failures"}},
	plan:   planBudgets,
	config: func(w *World, _ *process, c *core.Config) { c.Budgets = w.plan.Settings.Budgets },
	watch:  watchBudgets,
}

// planBudgets draws tasks that have a budget, whose first period ends in the middle of the history.
func planBudgets(g *draw.Generator) {
	p := g.Plan
	if p.Settings.Partitions != 1 || g.In(60) {
		return
	}
	p.Settings.Budget, p.Settings.Period = 2+g.IntN(5), g.Span(5*time.Second, 30*time.Second).Truncate(time.Second)
	about := core.LimitTarget{Key: spendKey}
	p.Settings.Budgets = []core.Budget{
		{About: core.BudgetTarget{LimitTarget: about, Unit: bound.UnitRuns, Per: core.PerHour}, Amount: bound.Amount(p.Settings.Budget) * bound.AmountOne, Then: core.ThenHold},
		{About: core.BudgetTarget{LimitTarget: about, Unit: tokens, Per: core.PerHour}, Amount: 5 * bound.AmountOne, Then: core.ThenNotify},
	}
	for range 4 + g.IntN(6) {
		r := draw.Request{At: g.Span(0, p.Horizon*2/3), Process: g.IntN(4), Kind: draw.AskSubmit, Agent: g.Agent(), ID: g.ID()}
		def := g.Definition(r.Agent, r.ID, false)
		def.LimitKey = spendKey
		for range 3 {
			s := g.Script(false)
			s.Tokens = float64(g.IntN(40)) / 10
			if g.In(40) { // what it has used is charged as it saves, and the rest at its end
				s.Saves = 1 + g.IntN(2)
			}
			def.Scripts = append(def.Scripts, s)
		}
		r.Tasks = []*draw.Definition{def}
		p.Requests = append(p.Requests, r)
	}
}

// ahead is the clock of the budgets: so far ahead that the full hour comes when the first period is to end.
func (w *World) ahead(changes []bound.BudgetChange) []bound.BudgetChange {
	for i := range changes {
		changes[i].Clock = bound.Clock{{By: time.Hour - w.plan.Settings.Period}}
	}
	return changes
}

// period is which period of the budgets it is by the store's clock: the first, or that which follows.
func (w *World) period() int {
	if w.clock.Now().Sub(draw.Begin) < w.plan.Settings.Period {
		return 0
	}
	return 1
}

// books are what was used by now: the runs that the tasks of the small budget have started in each period, and the shares of all budgets.
type books struct {
	starts [2]int
	spent  map[share]bound.Amount
}

// share is what a budget counts together in a period.
type share struct {
	inBucket

	period int
}

func watchBudgets(a *auditor, m *storeModel) watcher {
	b := &books{spent: map[share]bound.Amount{}}
	m.books = b
	return watcher{
		took: func(t *task, _ *store.Claimed) {
			b.opens(a.w, t)
			if a.w.plan.Settings.Budget == 0 || t.key != spendKey {
				return
			}
			n := &b.starts[a.w.period()]
			*n++
			a.must(budgetOfRuns, *n <= a.w.plan.Settings.Budget, "%s is the start %d of its period, and the budget is of %d", t.ref, *n, a.w.plan.Settings.Budget)
		},
		settled: func(s *store.Settlement, t *task, _ *store.Settled) {
			a.spends(b, s, t)
			if s.Verb == store.VerbRelease && s.Unrun {
				b.closes(a.w, t)
			}
		},
		step: func() {
			if a.w.steps%20 == 0 {
				a.balanceBudgets(b)
			}
		},
		kind: func() { a.balanceBudgets(b) },
		rest: func() { a.balanceBudgets(b) },
	}
}

// opens notes the budgets that a run counts in, and charges its start.
func (b *books) opens(w *World, t *task) {
	t.lease.period = w.period()
	for i := range w.plan.Settings.Budgets {
		about := &w.plan.Settings.Budgets[i].About
		of, is := counts(&about.LimitTarget, t)
		if !is {
			continue
		}
		t.lease.shares = append(t.lease.shares, inBucket{i, of})
		if about.Unit == bound.UnitRuns {
			b.spent[share{inBucket{i, of}, w.period()}] += bound.AmountOne
		}
	}
}

// closes takes the start of a run back that was given back and has not begun, if its period goes on.
func (b *books) closes(w *World, t *task) {
	if t.lease.period != w.period() {
		return
	}
	for _, in := range t.lease.shares {
		if w.plan.Settings.Budgets[in.limit].About.Unit == bound.UnitRuns {
			b.spent[share{in, t.lease.period}] -= bound.AmountOne
		}
	}
	if w.plan.Settings.Budget > 0 && t.key == spendKey {
		b.starts[t.lease.period]--
	}
}

// spends charges what a run has used when its end is stored.
func (a *auditor) spends(b *books, s *store.Settlement, t *task) {
	if len(t.lease.shares) == 0 {
		return
	}
	var used bound.Amount
	if s.Spent != nil {
		for _, u := range s.Spent.Used {
			if u.Unit == tokens {
				used += u.Amount
			}
		}
	}
	b.uses(a.w, t, used)
	if r := t.lease.began; r != nil && r.ended && !r.stuck && !a.w.restored {
		a.must(budgetReports, used == bound.AmountOf(r.spent), "%s has used %v, and its end says %s", t.ref, r.spent, used)
	}
}

// charges adds what a run has used that goes on.
func (b *books) charges(w *World, t *task, all []bound.Used) {
	for _, u := range all {
		if u.Unit == tokens {
			b.uses(w, t, u.Amount)
		}
	}
}

// uses charges what a run has used by now, but for what it was charged before.
func (b *books) uses(w *World, t *task, amount bound.Amount) {
	for _, in := range t.lease.shares {
		if w.plan.Settings.Budgets[in.limit].About.Unit == tokens {
			b.spent[share{in, w.period()}] += max(amount-t.lease.charged, 0)
		}
	}
	t.lease.charged = max(t.lease.charged, amount)
}

// balanceBudgets compares what the store says to be used, of each budget, and of each agent, key or task that it counts by itself.
func (a *auditor) balanceBudgets(b *books) {
	if len(a.w.plan.Settings.Budgets) == 0 || a.w.restored || a.w.over.Load() {
		return
	}
	all, err := a.w.store.Budgets(a.w.ctx)
	for i := range all {
		at := slices.IndexFunc(a.w.plan.Settings.Budgets, func(own core.Budget) bool { return own.About == all[i].About })
		if err != nil || at < 0 {
			continue
		}
		kept := budgetIsSpent
		if all[i].About.Unit == bound.UnitRuns {
			kept = budgetStarts
		}
		var want bound.Amount
		for of, amount := range b.spent {
			if of.limit == at && of.period == a.w.period() {
				want += amount
			}
		}
		a.must(kept, all[i].Used == want, "%s of %s are used, and runs have used %s", all[i].Used, all[i].About, want)
		for _, s := range all[i].Shares {
			want := b.spent[share{inBucket{at, s.Of}, a.w.period()}]
			a.must(kept, s.Used == want, "%s of %s are used by %s, and its runs have used %s", s.Used, all[i].About, s.Of, want)
		}
	}
}

// usedUp reports whether a task waits for another period.
func (m *storeModel) usedUp(t *task) bool {
	return m.w.plan.Settings.Budget > 0 && t.key == spendKey && m.books.starts[m.w.period()] >= m.w.plan.Settings.Budget
}
