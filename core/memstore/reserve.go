package memstore

// The reserves of budgets for runs under way, by the usual use of their kinds. Also the reference for own.usual in limits.lua.

import (
	"slices"

	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// useOf is a kind and a unit that its runs use.
type useOf struct{ kind, unit string }

// kept is the amount that a budget reserves for a run.
type kept struct {
	*bucket

	amount  bound.Amount
	untried bool // nothing is known of its kind
}

// reserves reports whether a budget reserves anything for its runs: their use is known when they end, and it holds the others back.
func (b *bucket) reserves() bool {
	return b.rule.budget != nil && b.rule.budget.About.Unit != bound.UnitRuns
}

// usually is the most that nine in ten of the last runs of a kind have used of a unit, and the most that one of them has; otherwise the use that
// the caller expects; false if nothing is known.
func (p *partition) usually(kind, unit string, expect []bound.Expected) (usual, most bound.Amount, known bool) {
	if last := slices.Sorted(slices.Values(p.usual[useOf{kind, unit}])); len(last) > 0 {
		return last[(len(last)*9+9)/10-1], last[len(last)-1], true
	}
	for _, e := range expect {
		if e.Kind == kind && e.Unit == unit {
			return e.Amount, e.Amount, true
		}
	}
	return 0, 0, false
}

// tight reports whether a budget has no room for a run of a kind beside those under way: the most that each of these may use, and the usual use of
// this one, have to fit. Of the first runs of their kinds, whose use is not known, one at a time. A run that is alone fits.
func (p *partition) tight(b *bucket, kind string, expect []bound.Expected, now moment.Millis) bool {
	if !b.reserves() || b.rule.budget.Then == bound.ThenNotify || b.reserved+bound.Amount(b.untried) == 0 {
		return false
	}
	usual, _, known := p.usually(kind, b.rule.budget.About.Unit, expect)
	if !known {
		return b.untried > 0
	}
	return b.spentAt(now)+b.reserved+usual > b.rule.budget.Amount
}

// reserve keeps that for a run.
func (p *partition) reserve(b *bucket, t *task, expect []bound.Expected) {
	if !b.reserves() {
		return
	}
	_, most, known := p.usually(t.Kind, b.rule.budget.About.Unit, expect)
	switch {
	case !known:
		b.untried++
	case most == 0:
		return
	default:
		// guard: reserve
		b.reserved += most
	}
	t.kept = append(t.kept, kept{b, most, !known})
}

// unreserve gives back what a bucket has kept for the run, up to what it was charged.
func (t *task) unreserve(b *bucket, amount bound.Amount) {
	for i := range t.kept {
		if k := &t.kept[i]; k.bucket == b && !k.untried {
			less := min(k.amount, amount)
			k.amount -= less
			b.reserved = max(b.reserved-less, 0)
		}
	}
}

// noteUses keeps the use of a run, once for each unit that a budget bounds, for the runs to come.
func (p *partition) noteUses(had []used, kind string, spent []bound.Used) {
	var noted []string
	for i := range had {
		unit := had[i].about.Unit
		if unit == "" || unit == bound.UnitRuns || slices.Contains(noted, unit) {
			continue
		}
		noted = append(noted, unit)
		amount := bound.Amount(0)
		if at := slices.IndexFunc(spent, func(x bound.Used) bool { return x.Unit == unit }); at >= 0 {
			amount = spent[at].Amount
		}
		all := append(p.usual[useOf{kind, unit}], amount)
		p.usual[useOf{kind, unit}] = all[max(0, len(all)-bound.UsualOf):]
	}
}
