package memstore

// Budgets: how they count. Also the reference for spend in spend.lua.

import (
	"context"
	"maps"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// budgetName orders and names budgets as the fields of Redis are.
func budgetName(t bound.BudgetTarget) string {
	per := map[bound.Period]string{bound.PerHour: "h", bound.PerDay: "d", bound.PerMonth: "m"}[t.Per]
	return limitName(t.LimitTarget) + "$" + t.Unit + "$" + per
}

// Budget sets and lifts budgets; see [store.Bounds].
func (s *Store) Budget(ctx context.Context, changes []bound.BudgetChange) ([]store.Effect, error) {
	bounds := make([]setting, len(changes))
	for i := range changes {
		b := changes[i].Budget
		b.Clock, b.Note = slices.Clone(b.Clock), slices.Clone(b.Note)
		bounds[i] = setting{rule{name: budgetName(b.About), budget: &b}, changes[i].Lift}
	}
	return s.bound(ctx, bounds)
}

// spentAt is how much has been spent in the period of a time.
func (b *bucket) spentAt(now moment.Millis) bound.Amount {
	if b.ends <= now {
		return 0
	}
	return b.spent
}

// mostSpent is the most that a counter holds.
const mostSpent = 9e18

// spend charges a bucket of a budget, and returns it if it is used up by this. A task that has ended is not paused.
func (p *partition) spend(b *bucket, amount bound.Amount, t *task, now moment.Millis) []bound.Crossing {
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
	if s := pausedBy(budget, b.of, t); budget.Then == bound.ThenPause && (budget.About.Each != bound.EachTask || p.task(t.Agent, t.ID) == t) {
		p.holdNow(s, budget.Note, now)
	}
	c := bound.Crossing{About: budget.About, Of: b.of, Ends: b.ends}
	if budget.About.Each == bound.EachTask {
		c.Of, c.Task = t.Agent, t.ID
	}
	return []bound.Crossing{c}
}

// pausedBy is the scope that a budget pauses once it is used up.
func pausedBy(b *bound.Budget, of string, t *task) scope {
	switch about := &b.About; {
	case about.Each == bound.EachAgent, about.Agent != "":
		return scope{kind: 'a', name: of}
	case about.Each == bound.EachTask:
		return scope{kind: 't', name: t.Agent, id: t.ID}
	case about.Each == bound.EachKey:
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
func chargeUsed(p *partition, t *task, spent []bound.Used, now moment.Millis) (crossed []bound.Crossing, over bool) {
	before := maps.Clone(t.charged)
	for _, b := range t.uses {
		p.refresh(b)
		budget := b.rule.budget
		if budget == nil || budget.About.Unit == bound.UnitRuns {
			continue
		}
		at := slices.IndexFunc(spent, func(x bound.Used) bool { return x.Unit == budget.About.Unit })
		if at < 0 {
			continue
		}
		// guard: charged
		more := max(spent[at].Amount-before[budget.About.Unit], 0)
		crossed = append(crossed, p.spend(b, more, t, now)...)
		t.unreserve(b, more)
		over = over || budget.Then != bound.ThenNotify && b.spentAt(now) >= budget.Amount
		if t.charged == nil {
			t.charged = map[string]bound.Amount{}
		}
		t.charged[budget.About.Unit] = max(spent[at].Amount, before[budget.About.Unit])
	}
	return crossed, over
}

// afterRun charges the use of a run, and notes how it was answered.
func (p *partition) afterRun(had []used, t *task, r *store.Settlement, now moment.Millis) (crossed []bound.Crossing) {
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
		case budget != nil && budget.About.Unit != bound.UnitRuns:
			at := slices.IndexFunc(spent.Used, func(x bound.Used) bool { return x.Unit == budget.About.Unit })
			if at >= 0 {
				// guard: budget-spent
				crossed = append(crossed, p.spend(u.bucket, max(spent.Used[at].Amount-charged[budget.About.Unit], 0), t, now)...)
			}
		case budget != nil && r.Verb == store.VerbRelease && r.Unrun:
			u.unspend(moment.Millis(r.Fence/clockUnit), now)
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

// unspend gives a run back that a budget of runs has counted when it was claimed, and that has not begun, if that was in the period that is now.
func (b *bucket) unspend(claimed, now moment.Millis) {
	// guard: budget-given-back
	if b.ends > now && b.rule.budget.Clock.End(b.rule.budget.About.Per, claimed) == b.ends {
		b.spent = max(b.spent-bound.AmountOne, 0)
	}
}

// budgetLine is the line behind a budget.
func (b *bucket) budgetLine(now moment.Millis) store.Line {
	use := &bound.BudgetUse{Budget: bound.Budget{About: b.about}, Waiting: int64(b.line.tasks), Reserved: b.reserved + bound.Amount(b.untried)}
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
func (s *Store) Budgets(ctx context.Context) ([]bound.BudgetUse, error) {
	if err := ctx.Err(); err != nil {
		return nil, &store.Error{Verb: "read", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	var out []bound.BudgetUse
	for _, r := range s.parts[0].limits {
		b := r.budget
		if b == nil {
			continue
		}
		use := bound.BudgetUse{Budget: *b, Ends: b.Clock.End(b.About.Per, now)}
		for bucket := range s.bucketsOf(r.name) {
			use.Waiting += int64(bucket.line.tasks)
			if bucket.ends > now {
				use.Add(bound.BudgetShare{Of: bucket.of, Used: bucket.spent})
			}
		}
		out = append(out, use)
	}
	bound.SortBudgets(out)
	return out, nil
}

// areSet reports whether all of some budgets, or, without a unit, limits are among those in force.
func areSet(inForce []rule, all []bound.BudgetTarget) bool {
	return !slices.ContainsFunc(all, func(t bound.BudgetTarget) bool {
		name := limitName(t.LimitTarget)
		if t.Unit != "" {
			name = budgetName(t)
		}
		return !slices.ContainsFunc(inForce, func(r rule) bool { return r.name == name })
	})
}
