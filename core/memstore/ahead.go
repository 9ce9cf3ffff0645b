package memstore

// Ahead: tasks that a claim takes shortly before they are due.

import (
	"slices"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// goAhead takes what falls due within the next moment, if the request asks for that and nothing about this claim is out of the ordinary.
// It returns until when it has looked; zero if it has not.
func (c *claiming) goAhead(recovered int) moment.Millis {
	if c.r.Ahead <= 0 || c.r.AheadMost <= 0 || recovered > 0 || !c.ordinary() {
		return 0
	}
	until, most := c.now.Add(c.r.Ahead), min(c.r.AheadMost, store.MaxClaim-len(c.taken))
	if c.room <= 0 || slices.ContainsFunc(c.taken, func(t *task) bool { return t.agent.many }) {
		most = 0 // more is due, or may be
	}
	soon := c.p.agenda.first(c.r.Limit+most, func(s *entry) bool { return s.visit <= until })
	for _, s := range soon {
		if most == 0 {
			break
		}
		if s.visit <= c.now {
			continue // it was seen to already
		}
		most--
		if s.agent.many || !c.mayGoAhead(s.task) {
			continue
		}
		s.agent.levels[s.task.Level-1].remove(s.task)
		// guard: ahead-in-line
		c.take(s.task)
		c.p.agenda.remove(s)
	}
	return until
}

// ordinary reports whether the claim is one that takes all that is due: nothing is put back or left, and nothing that it has taken was ordered to run.
func (c *claiming) ordinary() bool {
	p, r := c.p, c.r
	if r.Agents != nil || r.Urgent || r.Serial || r.After != 0 || r.PerAgent > 0 || len(r.Most)+len(r.Leave) > 0 {
		return false
	}
	if c.parked+c.left+c.held+c.noticed+len(p.suspects)+len(p.open) > 0 || p.isParked(r.Kinds) || len(c.lined) > 0 {
		return false
	}
	return !slices.ContainsFunc(c.taken, func(t *task) bool { return t.order != nil })
}

// mayGoAhead reports whether nothing about a task is out of the ordinary, and nothing but a command can change when it is due.
func (c *claiming) mayGoAhead(t *task) bool {
	if _, held := c.p.keptBy(t, c.now); held {
		return false
	}
	// guard: ahead-of-urgent
	return t.Level != store.LevelHigh && t.order == nil && t.pulse == nil && t.awaits == "" && slices.Contains(c.r.Kinds, t.Kind) && !c.heldApart(t.Kind) &&
		!slices.ContainsFunc(c.p.bucketsOf(t), func(b *bucket) bool { return !b.roomy(c, t) })
}

// roomy reports whether half of what a bucket allows stays free if it takes a task that is not due yet, so that what falls due meanwhile finds room.
// Where one run may go at a time, it may be this one.
func (b *bucket) roomy(c *claiming, t *task) bool {
	limit := &b.rule.limit
	if k := b.learned(); limit.Adaptive && (k == nil || k.probe != 0 || k.till > c.now || b.gap() > 0 || !half(b.runs, int(k.allow))) {
		return false
	}
	// guard: ahead-of-limit
	if b.line.tasks > 0 || limit.Concurrency > 0 && !half(b.runs, limit.Concurrency) {
		return false
	}
	gap, due := b.gap(), float64(t.due)
	if gap > 0 && max(b.empty, due)+gap-due > max(gap*float64(limit.Burst)/2, gap) {
		return false
	}
	budget := b.rule.budget
	if budget == nil {
		return true
	}
	if budget.About.Unit == bound.UnitRuns {
		return t.due < budget.Clock.End(budget.About.Per, c.now) && 2*(b.spentAt(c.now)+bound.AmountOne) <= budget.Amount
	}
	usual, _, known := c.p.usually(t.Kind, budget.About.Unit, nil)
	return known && b.untried == 0 && 2*(b.spentAt(c.now)+b.reserved+usual) <= budget.Amount
}

// half reports whether half of what may run is used at most with another run, or one run if one may.
func half(runs, most int) bool { return runs+1 <= max(most/2, 1) }
