package memstore

// Budgets: how they count. Also the reference for spend in spend.lua.

import (
	"context"
	"maps"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// budgetName orders and names budgets as the fields of Redis are.
func budgetName(t store.BudgetTarget) string {
	per := map[store.Period]string{store.PerHour: "h", store.PerDay: "d", store.PerMonth: "m"}[t.Per]
	return limitName(t.LimitTarget) + "$" + t.Unit + "$" + per
}

// Budget sets and lifts budgets; see [store.Bounds].
func (s *Store) Budget(ctx context.Context, changes []store.BudgetChange) ([]store.Effect, error) {
	bounds := make([]bound, len(changes))
	for i := range changes {
		b := changes[i].Budget
		b.Clock, b.Note = slices.Clone(b.Clock), slices.Clone(b.Note)
		bounds[i] = bound{rule{name: budgetName(b.About), budget: &b}, changes[i].Lift}
	}
	return s.bound(ctx, bounds)
}

// spentAt is how much has been spent in the period of a time.
func (b *bucket) spentAt(now moment.Millis) store.Amount {
	if b.ends <= now {
		return 0
	}
	return b.spent
}

// mostSpent is the most that a counter holds.
const mostSpent = 9e18

// spend charges a bucket of a budget, and returns it if it is used up by this. A task that has ended is not paused.
func (p *partition) spend(b *bucket, amount store.Amount, t *task, now moment.Millis) []store.Crossing {
	budget, before := b.rule.budget, b.spentAt(now)
	if b.ends <= now {
		// guard: budget-period
		b.spent, b.ends = 0, budget.Clock.End(budget.About.Per, now)
	}
	if float64(before) < mostSpent {
		b.spent += amount
	}
	if before >= budget.Amount || before+amount < budget.Amount {
		return nil
	}
	if s := pausedBy(budget, b.of, t); budget.Then == store.ThenPause && (budget.About.Each != store.EachTask || p.task(t.Agent, t.ID) == t) {
		p.holdNow(s, budget.Note, now)
	}
	c := store.Crossing{About: budget.About, Of: b.of, Ends: b.ends}
	if budget.About.Each == store.EachTask {
		c.Of, c.Task = t.Agent, t.ID
	}
	return []store.Crossing{c}
}

// pausedBy is the scope that a budget pauses once it is used up.
func pausedBy(b *store.Budget, of string, t *task) scope {
	switch about := &b.About; {
	case about.Each == store.EachAgent, about.Agent != "":
		return scope{kind: 'a', name: of}
	case about.Each == store.EachTask:
		return scope{kind: 't', name: t.Agent, id: t.ID}
	case about.Each == store.EachKey:
		return scope{kind: 's', name: of}
	case about.Key != "":
		return scope{kind: 's', name: about.Key}
	case about.Kind != "":
		return scope{kind: 'k', name: about.Kind}
	default:
		return scope{kind: '*'}
	}
}

// holdNow pauses a scope until it is resumed. A hold without an end that it has already stays.
func (p *partition) holdNow(s scope, note []byte, now moment.Millis) {
	if !p.held(s, now) || p.holds[s].term != nil {
		p.hold(s, hold{since: p.begun(now), note: slices.Clone(note)}, now, true)
	}
}

// chargeUsed charges what a run that goes on has used so far, but for what it was charged before. It reports whether a budget that the run counts in is
// used up.
func chargeUsed(p *partition, t *task, spent []store.Used, now moment.Millis) (crossed []store.Crossing, over bool) {
	before := maps.Clone(t.charged)
	for _, b := range t.uses {
		p.refresh(b)
		budget := b.rule.budget
		if budget == nil || budget.About.Unit == store.UnitRuns {
			continue
		}
		at := slices.IndexFunc(spent, func(x store.Used) bool { return x.Unit == budget.About.Unit })
		if at < 0 {
			continue
		}
		// guard: charged
		more := max(spent[at].Amount-before[budget.About.Unit], 0)
		crossed = append(crossed, p.spend(b, more, t, now)...)
		t.unreserve(b, more)
		over = over || budget.Then != store.ThenNotify && b.spentAt(now) >= budget.Amount
		if t.charged == nil {
			t.charged = map[string]store.Amount{}
		}
		t.charged[budget.About.Unit] = max(spent[at].Amount, before[budget.About.Unit])
	}
	return crossed, over
}

// afterRun charges the use of a run, and notes how it was answered.
func (p *partition) afterRun(had []used, t *task, r *store.Settlement, now moment.Millis) (crossed []store.Crossing) {
	spent, charged := r.Spent, t.charged
	t.charged = nil
	if spent == nil {
		spent = &store.Spent{}
	}
	idle := spent.Idle && spent.Busy == 0 || r.Verb == store.VerbRelease
	if !idle {
		p.noteUses(had, r.Kind, spent.Used)
	}
	for i := range had {
		u := &had[i]
		p.refresh(u.bucket)
		switch budget := u.rule.budget; {
		case budget != nil && budget.About.Unit != store.UnitRuns:
			at := slices.IndexFunc(spent.Used, func(x store.Used) bool { return x.Unit == budget.About.Unit })
			if at >= 0 {
				// guard: budget-spent
				crossed = append(crossed, p.spend(u.bucket, max(spent.Used[at].Amount-charged[budget.About.Unit], 0), t, now)...)
			}
		case budget != nil || !u.rule.limit.Adaptive:
		case idle:
			u.unprobed()
		case spent.Busy > 0:
			u.learn(float64(max(spent.Busy.Milliseconds(), 1)), now)
		default:
			u.learn(0, now)
		}
	}
	return crossed
}

// budgetLine is the line behind a budget.
func (b *bucket) budgetLine(now moment.Millis) store.Line {
	use := &store.BudgetUse{Budget: store.Budget{About: b.about}, Waiting: int64(b.line.tasks), Reserved: b.reserved + store.Amount(b.untried)}
	if b.rule.budget != nil {
		use.Budget = *b.rule.budget
	}
	line := store.Line{Budget: use, Of: b.of}
	if b.ends > now {
		use.Used, use.Ends, line.StartAt = b.spent, b.ends, b.ends
	}
	return line
}

// Budgets are the budgets in force; see [store.Bounds].
func (s *Store) Budgets(ctx context.Context) ([]store.BudgetUse, error) {
	if err := ctx.Err(); err != nil {
		return nil, &store.Error{Verb: "read", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var out []store.BudgetUse
	for _, r := range s.parts[0].limits {
		b := r.budget
		if b == nil {
			continue
		}
		use := store.BudgetUse{Budget: *b, Ends: b.Clock.End(b.About.Per, now)}
		for bucket := range s.bucketsOf(r.name) {
			use.Waiting += int64(bucket.line.tasks)
			if bucket.ends > now {
				use.Add(store.BudgetShare{Of: bucket.of, Used: bucket.spent})
			}
		}
		out = append(out, use)
	}
	store.SortBudgets(out)
	return out, nil
}
