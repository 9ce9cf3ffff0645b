package memstore

// Limits: how they count, and the lines in which tasks wait for room. Also the reference for limits.lua.

import (
	"context"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// The bounds of limits.lua and claim.lua: agents of a line, and opened scopes, that one claim looks at.
const (
	lineAgents  = 50
	openedLooks = 9
)

// rule is a limit, or a budget.
type rule struct {
	name   string
	limit  bound.Limit
	budget *bound.Budget
}

// about returns which tasks a rule is about.
func (r *rule) about() *bound.LimitTarget {
	if r.budget != nil {
		return &r.budget.About.LimitTarget
	}
	return &r.limit.About
}

// same reports whether two rules of one name allow the same.
func (r *rule) same(o *rule) bool {
	if r.budget == nil || o.budget == nil {
		return r.limit == o.limit
	}
	x, y := r.budget, o.budget
	return x.Amount == y.Amount && x.Then == y.Then && x.Zone == y.Zone && slices.Equal(x.Clock, y.Clock) && string(x.Note) == string(y.Note)
}

// bucket is one count of a rule. It is known while something counts in it or waits for it, or while its rate is not over.
type bucket struct {
	name  string
	about bound.BudgetTarget // with a Unit if it is that of a budget
	of    string             // the agent, key or task that it counts; empty if it counts all together
	rule  rule               // one that allows everything if it was lifted
	runs  int
	empty float64 // ms: when it would be empty if each start took Per / Starts
	spent bound.Amount
	ends  moment.Millis // of the period in which that was spent
	// reserved is the amount kept for the runs under way of a budget that runs report to, and untried how many of them are the first of their
	// kind, whose use is not known.
	reserved bound.Amount
	untried  int
	knows    *knowledge // of an adaptive limit that has been used
	line     line
	term     *term // when there is room for another start; nil if no task waits for that
}

// limitName orders and names limits as the fields of Redis are.
func limitName(t bound.LimitTarget) string {
	each := map[bound.Each]string{"": "", bound.EachAgent: "a", bound.EachKey: "k", bound.EachTask: "t"}[t.Each]
	if t.Agent != "" {
		each = "o"
	}
	return t.Kind + "|" + t.Key + "|" + each
}

// gap is the time in ms between two starts; 0 if any number may start.
func (b *bucket) gap() float64 {
	l := &b.rule.limit
	switch {
	case b.learned() != nil && b.knows.gap > 0:
		return b.knows.gap
	case l.Rate == 0:
		return 0
	default:
		return float64(l.Per.Milliseconds()) / float64(l.Rate)
	}
}

// startAt is when there is room for another start, unless a run has to end first.
func (b *bucket) startAt(now moment.Millis) float64 {
	switch gap := b.gap(); {
	case b.rule.budget != nil:
		// guard: budget-hold
		if b.rule.budget.Then != bound.ThenNotify && b.spentAt(now) >= b.rule.budget.Amount {
			return float64(b.ends)
		}
		return 0
	case b.learned() != nil && gap > 0:
		return max(float64(b.knows.till), b.empty-float64(bound.MadeUp))
	case b.learned() != nil:
		return float64(b.knows.till)
	case gap == 0:
		return 0
	default:
		return b.empty - gap*float64(b.rule.limit.Burst)
	}
}

// full reports whether a run has to end first.
func (b *bucket) full() bool {
	// guard: adaptive-probe
	if k := b.learned(); k != nil && (k.probe == probeOut || k.probe == 0 && b.runs >= int(k.allow)) {
		return true
	}
	// guard: limit-memory
	return b.rule.limit.Concurrency > 0 && b.runs >= b.rule.limit.Concurrency
}

func (b *bucket) vacant(now moment.Millis) bool { return !b.full() && b.startAt(now) <= float64(now) }

// applies reports whether a task counts in a limit.
func applies(l *bound.LimitTarget, t *task) bool {
	prefix, open := strings.CutSuffix(l.Key, "*")
	keyed := l.Key == "" || l.Key == t.Key || open && t.Key != "" && strings.HasPrefix(t.Key, prefix)
	return (l.Kind == "" || l.Kind == t.Kind) && keyed && (l.Each != bound.EachKey || t.Key != "")
}

// bucketsOf are the buckets that a task counts in, in the order of their limits' names: those of all agents, then those of its own.
func (p *partition) bucketsOf(t *task) []*bucket {
	var out []*bucket
	rules := slices.Concat(p.limits, p.bounds[t.Agent])
	for i := range rules {
		r := &rules[i]
		if !applies(r.about(), t) {
			continue
		}
		of := map[bound.Each]string{bound.EachAgent: t.Agent, bound.EachKey: t.Key, bound.EachTask: t.Agent + ":" + t.ID}[r.about().Each]
		if r.about().Agent != "" {
			of = t.Agent
		}
		name := r.name + "|" + of
		b := p.buckets[name]
		if b == nil {
			b = &bucket{name: name, about: bound.BudgetTarget{LimitTarget: *r.about()}, of: of}
			if r.budget != nil {
				b.about = r.budget.About
			}
			p.buckets[name] = b
		}
		b.rule = *r
		out = append(out, b)
	}
	return out
}

// charge counts a task that is taken, and returns the budgets that are used up by that.
func (p *partition) charge(t *task, expect []bound.Expected, now moment.Millis) (crossed []bound.Crossing) {
	t.uses, t.kept = p.bucketsOf(t), nil
	for _, b := range t.uses {
		// guard: limit-counts
		b.runs++
		p.reserve(b, t, expect)
		gap := b.gap()
		if b.rule.limit.Adaptive {
			b.started(now)
		}
		if gap > 0 {
			// One that is not due yet starts at its time: so no window holds more starts than it may.
			// guard: ahead-rate-starts
			b.empty = math.Round((max(b.empty, float64(now), float64(t.due))+gap)*1000) / 1000
		}
		// guard: budget-starts
		if c := b.rule.budget; c != nil && c.About.Unit == bound.UnitRuns {
			crossed = append(crossed, p.spend(b, bound.AmountOne, t, now)...)
		}
	}
	return crossed
}

// used is a bucket that a run has counted in, and how many runs it had with that one.
type used struct {
	*bucket
	runs int
}

// unuse returns the share that the run of a task had of limits. It reports whether a task waits for it, and which buckets counted the run. A run that
// was not settled has found nothing out.
func (p *partition) unuse(t *task, now moment.Millis, settled bool) (had []used, wanted bool) {
	for _, b := range t.uses {
		had = append(had, used{b, b.runs})
		// guard: limit-returned
		if b.runs--; b.runs <= 0 {
			b.reserved, b.untried = 0, 0
		}
		if !settled {
			b.unprobed()
		}
		if b.line.tasks > 0 {
			p.reopen(b.scope(), now, false)
			p.store.wake(p, now)
			wanted = true
		}
	}
	for _, k := range t.kept {
		k.reserved = max(k.reserved-k.amount, 0)
		if k.untried {
			k.bucket.untried = max(k.bucket.untried-1, 0)
		}
	}
	t.uses, t.kept = nil, nil
	if !settled {
		t.charged = nil
	}
	return had, wanted
}

// refresh gives a bucket its current rule.
func (p *partition) refresh(b *bucket) {
	b.rule = rule{name: strings.TrimSuffix(b.name, "|"+b.of)}
	rules := p.limits
	if b.about.Agent != "" {
		rules = p.bounds[b.of]
	}
	for i := range rules {
		if rules[i].name == b.rule.name {
			b.rule = rules[i]
		}
	}
}

// setBounds gives an agent the limits and budgets of its profile, and lets claims look at the lines behind the earlier ones.
func (p *partition) setBounds(c *store.ProfileChange, now moment.Millis) {
	var next []rule
	for _, l := range c.Limits {
		next = append(next, rule{name: limitName(l.About), limit: l})
	}
	for _, b := range c.Budgets {
		b.Clock, b.Note = slices.Clone(b.Clock), slices.Clone(b.Note)
		next = append(next, rule{name: budgetName(b.About), budget: &b})
	}
	slices.SortFunc(next, func(a, b rule) int { return strings.Compare(a.name, b.name) })
	had := p.bounds[c.Agent]
	if slices.EqualFunc(had, next, func(a, b rule) bool { return a.name == b.name && a.same(&b) }) {
		return
	}
	p.bounds[c.Agent] = next
	if len(next) == 0 {
		delete(p.bounds, c.Agent)
	}
	for _, r := range had {
		if b := p.buckets[r.name+"|"+c.Agent]; b != nil && b.line.tasks > 0 {
			p.endTerm(b)
			p.reopen(b.scope(), now, false)
			p.store.wake(p, now)
		}
	}
}

// Limit sets and lifts limits; see [store.Bounds].
func (s *Store) Limit(ctx context.Context, changes []bound.LimitChange) ([]store.Effect, error) {
	bounds := make([]setting, len(changes))
	for i, c := range changes {
		bounds[i] = setting{rule{name: limitName(c.About), limit: c.Limit}, c.Lift}
	}
	return s.bound(ctx, bounds)
}

// setting sets a rule, or lifts it.
type setting struct {
	rule
	lift bool
}

// bound sets and lifts limits and budgets.
func (s *Store) bound(ctx context.Context, changes []setting) ([]store.Effect, error) {
	if len(s.parts) > 1 && slices.ContainsFunc(changes, func(c setting) bool { return !c.lift && !c.about().OfOneAgent() }) {
		return nil, &store.ConfigError{Field: "Partitions", Reason: "must be 1, as is usual in memory, for limits and budgets over agents"}
	}
	var full error
	out, err := operate(ctx, s, changes, func(c *setting, now moment.Millis) store.Effect {
		e := store.Effect{}
		for _, p := range s.parts {
			changed, ok := p.setBound(c, now)
			if changed {
				e.Code = store.EffectDone
			}
			if !ok && full == nil {
				full = &store.InvalidError{Field: "limits", Reason: "and budgets are 100 already: lift one before another is set"}
			}
		}
		return e
	})
	if full != nil {
		return nil, full
	}
	return out, err
}

// setBound changes one rule, and lets claims look at the lines behind it. It reports whether there was room for it too.
func (p *partition) setBound(c *setting, now moment.Millis) (changed, ok bool) {
	at := slices.IndexFunc(p.limits, func(r rule) bool { return r.name == c.name })
	switch {
	case c.lift && at < 0, !c.lift && at >= 0 && p.limits[at].same(&c.rule):
		return false, true
	case c.lift:
		p.limits = slices.Delete(p.limits, at, at+1)
	case at >= 0:
		p.limits[at] = c.rule
	case len(p.limits) >= bound.MostLimits:
		return false, false
	default:
		p.limits = append(p.limits, c.rule)
	}
	slices.SortFunc(p.limits, func(a, b rule) int { return strings.Compare(a.name, b.name) })
	for _, name := range slices.Sorted(maps.Keys(p.buckets)) {
		if b := p.buckets[name]; strings.HasPrefix(name, c.name+"|") && b.line.tasks > 0 {
			p.endTerm(b)
			p.reopen(b.scope(), now, false)
			p.store.wake(p, now)
		}
	}
	return true, true
}

// bucketsOf are the buckets of a rule, in all partitions.
func (s *Store) bucketsOf(rule string) iter.Seq[*bucket] {
	return func(yield func(*bucket) bool) {
		for _, p := range s.parts {
			for name, b := range p.buckets {
				if strings.HasPrefix(name, rule+"|") && !yield(b) {
					return
				}
			}
		}
	}
}

// Limits are the limits in force; see [store.Bounds].
func (s *Store) Limits(ctx context.Context) ([]bound.LimitUse, error) {
	if err := ctx.Err(); err != nil {
		return nil, &store.Error{Verb: "read", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []bound.LimitUse
	for _, r := range s.parts[0].limits {
		if r.budget != nil {
			continue
		}
		use := bound.LimitUse{Limit: r.limit}
		for b := range s.bucketsOf(r.name) {
			use.Running, use.Waiting = use.Running+int64(b.runs), use.Waiting+int64(b.line.tasks)
			if use.Adaptive && b.knows != nil {
				use.Learned = append(use.Learned, b.knows.learned(b.of))
			}
		}
		out = append(out, use)
	}
	bound.SortLimits(out)
	return out, nil
}
