package equal

// Limits.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// limit sets or lifts a limit or a budget, and compares all.
func (d *driver) limit() {
	switch d.pick(6) {
	case 0, 1, 2:
		d.budget()
		return
	case 3:
		d.stamps()
		return
	default:
	}
	c := bound.LimitChange{Lift: d.pick(3) == 0, Limit: d.someLimit()}
	ra, ea := d.a.Limit(d.Context(), []bound.LimitChange{c})
	rb, eb := d.b.Limit(d.Context(), []bound.LimitChange{c})
	d.same("limit", ea, eb, ra, rb)
	d.limits()
}

// someLimit is one of any sort.
func (d *draw) someLimit() (c bound.Limit) {
	if d.pick(2) == 0 {
		c.About.Kind = kinds[d.pick(len(kinds))]
	}
	c.About.Key = []string{"", "", "key", "k*"}[d.pick(4)]
	c.About.Each = []bound.Each{"", "", bound.EachAgent, bound.EachKey}[d.pick(4)]
	if d.partitions > 1 { // no store in memory has others then
		c.About.Each = bound.EachAgent
	}
	if d.pick(3) > 0 {
		c.Concurrency = 1 + d.pick(4)
	}
	c.Adaptive = d.pick(2) == 0
	if !c.Adaptive && c.Concurrency == 0 || !c.Adaptive && d.pick(3) == 0 {
		c.Rate, c.Per, c.Burst = 1+d.pick(6), time.Duration(1+d.pick(20))*50*time.Millisecond, d.pick(3)
	}
	return c
}

// limits compares all limits, and how much of them is used.
func (d *driver) limits() {
	la, ea := d.a.Limits(d.Context())
	lb, eb := d.b.Limits(d.Context())
	d.same("limits", ea, eb, la, lb)
	ba, ea := d.a.Budgets(d.Context())
	bb, eb := d.b.Budgets(d.Context())
	d.same("budgets", ea, eb, ba, bb)
}

// budget sets or lifts a budget, and compares all.
func (d *driver) budget() {
	c := bound.BudgetChange{Lift: d.pick(3) == 0, Budget: d.someBudget()}
	ra, ea := d.a.Budget(d.Context(), []bound.BudgetChange{c})
	rb, eb := d.b.Budget(d.Context(), []bound.BudgetChange{c})
	d.same("budget", ea, eb, ra, rb)
	d.limits()
}

// someBudget is one of any sort, whose period ends soon.
func (d *draw) someBudget() (c bound.Budget) {
	if d.pick(3) == 0 {
		c.About.Kind = kinds[d.pick(len(kinds))]
	}
	c.About.Key = []string{"", "", "key", "k*"}[d.pick(4)]
	c.About.Each = []bound.Each{"", bound.EachTask, bound.EachAgent, bound.EachKey}[d.pick(4)]
	if d.partitions > 1 {
		c.About.Each = []bound.Each{bound.EachTask, bound.EachAgent}[d.pick(2)]
	}
	c.About.Unit = []string{bound.UnitRuns, "tokens", "tokens", "usd"}[d.pick(4)]
	c.About.Per = []bound.Period{bound.PerHour, bound.PerDay, bound.PerMonth}[d.pick(3)]
	if c.Amount = bound.Amount(1+d.pick(40)) * bound.AmountOne / 4; c.About.Unit == bound.UnitRuns {
		c.Amount = bound.Amount(1+d.pick(8)) * bound.AmountOne
	}
	c.Then, c.Note = []bound.Then{bound.ThenHold, bound.ThenHold, bound.ThenNotify, bound.ThenPause}[d.pick(4)], []byte("used|up")
	now := d.clock.Now().UTC()
	soon := now.Add(time.Duration(d.pick(20)) * time.Second).Truncate(time.Second)
	month := time.Date(now.Year(), now.Month()+1, 1, 0, 0, 0, 0, time.UTC)
	c.Zone, c.Clock = "Somewhere", bound.Clock{{By: month.Sub(soon)}} // midnight at the first of a month is near
	if d.pick(2) == 0 {
		change := bound.Ahead{Since: moment.Of(soon.Add(time.Duration(d.pick(4)-2) * time.Second)), By: c.Clock[0].By}
		change.By += time.Duration(d.pick(3)-1) * 30 * time.Minute
		c.Clock = append(c.Clock, change, bound.Ahead{Since: change.Since.Add(time.Minute), By: c.Clock[0].By})
	}
	return c
}
