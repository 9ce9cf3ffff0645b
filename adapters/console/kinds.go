package console

// The page of kinds: their figures and settings, the limits and the budgets.

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// kindsPage is the page of kinds, limits and budgets.
type kindsPage struct {
	Kinds   []kindRow
	Limits  []limitRow
	Budgets []budgetRow
	Steers  bool
	Cut     bool // not all pauses were looked through
}

// limitRow is a limit, and how much of it is used.
type limitRow struct {
	store.LimitUse

	Bound string
	About string
}

// budgetRow is a budget, and how much of it is used.
type budgetRow struct {
	store.BudgetUse

	Text    string
	Percent int
	State   badge
}

// kinds is the page of kinds, limits and budgets.
func (c *console) kinds(v *visit) (*page, error) {
	if err := v.may(model.ActionRead, ""); err != nil {
		return nil, err
	}
	f, err := c.read(v)
	if err != nil {
		return nil, err
	}
	p := kindsPage{Kinds: f.rows(), Cut: f.Kinds.Cut, Steers: v.steers("")}
	for i := range f.Limits {
		l := f.Limits[i]
		p.Limits = append(p.Limits, limitRow{LimitUse: l, Bound: boundOf(&l), About: l.About.String()})
	}
	for i := range f.Budgets {
		b := f.Budgets[i]
		row := budgetRow{BudgetUse: b, Text: b.Amount.String() + " " + b.About.String(), Percent: int(100 * float64(b.Used) / float64(b.Amount)), State: badge{"good", "in force"}}
		if b.About.Each != "" {
			row.Percent = 0
			if len(b.Shares) > 0 {
				row.Percent = int(100 * float64(b.Shares[0].Used) / float64(b.Amount))
			}
		}
		if b.UsedUp > 0 {
			row.State = badge{"bad", "used up"}
		}
		p.Budgets = append(p.Budgets, row)
	}
	v.now = f.Stats.Now
	return &page{name: "kinds", title: "Kinds and limits", body: p}, nil
}

// boundOf is what a limit allows, in words.
func boundOf(l *store.LimitUse) string {
	var parts []string
	if l.Concurrency > 0 {
		parts = append(parts, counted(l.Concurrency, "run")+" at once")
	}
	if l.Rate > 0 {
		parts = append(parts, l.RateText())
	}
	if l.Adaptive {
		parts = append(parts, "adaptive")
	}
	for _, learned := range l.Learned {
		if l.Adaptive && learned.Of == "" {
			parts = append(parts, fmt.Sprintf("now %s at once", counted(learned.Runs, "run")))
		}
	}
	return strings.Join(parts, ", ")
}

// setLimit sets a limit, or lifts it: as the form says.
func (c *console) setLimit(v *visit) (*page, error) {
	if v.options.ReadOnly {
		return nil, errReadOnly
	}
	if err := v.may(model.ActionControl, ""); err != nil {
		return nil, err
	}
	form := v.r.PostForm
	about := core.LimitTarget{Kind: form.Get("kind"), Key: form.Get("key"), Each: store.Each(form.Get("each"))}
	ctx := v.r.Context()
	if form.Get("lift") != "" {
		if err := c.scheduler.LiftLimit(ctx, about); err != nil {
			return nil, err
		}
		return &page{to: Path + "/kinds?said=lifted"}, nil
	}
	l := core.Limit{About: about}
	if text := strings.TrimSpace(form.Get("concurrency")); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return nil, &core.InvalidError{Field: "concurrency", Reason: "must be a whole number"}
		}
		l.Concurrency = n
	}
	if text := strings.TrimSpace(form.Get("rate")); text != "" {
		var err error
		if l.Rate, l.Per, err = core.ParseRate(text); err != nil {
			return nil, err
		}
	}
	if err := c.scheduler.SetLimits(ctx, l); err != nil {
		return nil, err
	}
	return &page{to: Path + "/kinds?said=limited"}, nil
}
