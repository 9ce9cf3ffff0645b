package console

// The page of kinds: their figures and settings, the limits and the budgets.

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
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
	bound.LimitUse

	Bound string
	About string
}

// budgetRow is a budget, and how much of it is used.
type budgetRow struct {
	bound.BudgetUse

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
		p.Budgets = append(p.Budgets, budgetRowOf(f.Budgets[i]))
	}
	if f.Windows {
		if err := drawDay(v, p.Kinds); err != nil {
			return nil, err
		}
	}
	v.now = f.Stats.Now
	return &page{name: "kinds", title: "Kinds and limits", body: p}, nil
}

// budgetRowOf is a budget, and how much of it is used: of one that counts each by itself, by the one that has used most.
func budgetRowOf(b bound.BudgetUse) budgetRow {
	row := budgetRow{BudgetUse: b, Text: b.Amount.String() + " " + b.About.String(), Percent: int(100 * b.Share()), State: badge{"good", "in force"}}
	if b.UsedUp > 0 {
		row.State = badge{"bad", "used up"}
	}
	return row
}

// drawDay draws what ran of each kind within a day.
func drawDay(v *visit, kinds []kindRow) error {
	day := periods[1]
	trend, err := v.scheduler.Trend(v.r.Context(), day.of, day.steps)
	if err != nil {
		return err
	}
	for i := range kinds {
		kinds[i].Spark = day.curve(kinds[i].Kind, trend.Of(kinds[i].Kind)).Spark
	}
	return nil
}

// boundOf is what a limit allows, in words.
func boundOf(l *bound.LimitUse) string {
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
	about := core.LimitTarget{Kind: form.Get("kind"), Key: form.Get("key"), Each: bound.Each(form.Get("each"))}
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
