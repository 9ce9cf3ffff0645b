package bounding

// Budgets: their checks, amounts and units.

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// Bounds of a usage.
const (
	MaxUnits   = 16
	maxUnitLen = 32 // bytes
)

// ParseAmount is the amount of a number from input, which must be positive and not too large.
func ParseAmount(n float64) (bound.Amount, error) {
	// The comparison is false for NaN.
	if !(n >= 1e-6 && n <= float64(bound.MostAmount/bound.AmountOne)) {
		return 0, check.Invalid("amount", "must be between 0.000001 and %s, not %v", bound.MostAmount, n)
	}
	return bound.AmountOf(n), nil
}

// ValidUnit refuses an invalid unit.
func ValidUnit(field, unit string) error {
	if unit == "" || len(unit) > maxUnitLen {
		return check.Invalid(field, "has a unit of %d bytes: it must have 1 to %d", len(unit), maxUnitLen)
	}
	for _, c := range []byte(unit) {
		if c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return check.Invalid(field, "has the unit %q: letters, digits and _ are allowed", unit)
		}
	}
	return nil
}

// WholeBudget checks a budget, and fills in what is left out.
func WholeBudget(b bound.Budget, zone string, now time.Time) (bound.Budget, error) {
	if err := CheckBudgetTarget(b.About); err != nil {
		return b, err
	}
	if b.Then == "" {
		b.Then = bound.ThenHold
	}
	if b.Zone == "" {
		b.Zone = zone
	}
	if b.Zone == "" {
		b.Zone = "UTC"
	}
	location, err := schedule.LoadZone(b.Zone)
	switch {
	case err != nil:
		return b, check.Invalid("zone", "%s", strings.TrimPrefix(err.Error(), "zone "))
	case b.Amount < 1 || b.Amount > bound.MostAmount:
		return b, check.Invalid("amount", "must be between 0.000001 and %s, not %s", bound.MostAmount, b.Amount)
	case b.About.Unit == bound.UnitRuns && b.Amount%bound.AmountOne != 0:
		return b, check.Invalid("amount", "of runs must be whole, not %s", b.Amount)
	case !store.Among(b.Then, []bound.Then{bound.ThenHold, bound.ThenPause, bound.ThenNotify}):
		return b, check.Invalid("then", "must be hold, pause or notify, not %q", b.Then)
	case b.Then == bound.ThenPause && !pausable(b.About.LimitTarget):
		return b, check.Invalid("then", "can be pause if the budget is about each task, each agent, each key, a kind, a key, or everything, and not "+
			"about two of them at once: nothing less can be paused; leave the others out, or let it be hold")
	}
	b.Clock = bound.ClockOf(location, now)
	if b.Note = nil; b.Then == bound.ThenPause {
		b.Note = (&record.Hold{By: check.ByDuly, Reason: fmt.Sprintf("the budget of %s %s is used up", b.Amount, b.About)}).Encode()
	}
	return b, nil
}

// pausable reports whether a pause can have exactly the target of a budget.
func pausable(t bound.LimitTarget) bool {
	if t.Agent != "" {
		return t.Kind == "" && t.Key == ""
	}
	switch t.Each {
	case bound.EachTask:
		return true
	case bound.EachAgent:
		return t.Kind == "" && t.Key == ""
	case bound.EachKey:
		return t.Kind == ""
	default:
		return (t.Kind == "" || t.Key == "") && !strings.HasSuffix(t.Key, "*")
	}
}

// CheckBudgetTarget refuses an invalid target of a budget.
func CheckBudgetTarget(t bound.BudgetTarget) error {
	about := t.LimitTarget
	about.Agent = ""
	if about.Each == bound.EachTask {
		about.Each = ""
	} else if about.Each != "" && about.Each != bound.EachAgent && about.Each != bound.EachKey {
		return check.Invalid("each", "must be agent, key or task, not %q", about.Each)
	}
	if err := CheckLimitTarget(about); err != nil {
		return err
	}
	if t.Unit == "" {
		return check.Invalid("unit", "is required: runs, or what runs report, such as tokens or usd")
	}
	if err := ValidUnit("unit", t.Unit); err != nil {
		return err
	}
	if !store.Among(t.Per, []bound.Period{bound.PerHour, bound.PerDay, bound.PerMonth}) {
		return check.Invalid("per", "must be hour, day or month, not %q", t.Per)
	}
	return nil
}

// ValidBudgets refuses budgets of the configuration that are invalid, alone or together.
func ValidBudgets(budgets []bound.Budget, limits int, zone string) error {
	if n := len(budgets) + limits; n > bound.MostLimits {
		return check.Misconfigured("Budgets", len(budgets), "and limits must be at most %d, not %d", bound.MostLimits, n)
	}
	for i, b := range budgets {
		if _, err := WholeBudget(b, zone, time.Unix(0, 0)); err != nil {
			invalid, _ := errors.AsType[*store.InvalidError](err)
			return &store.ConfigError{Field: fmt.Sprintf("Budgets[%d].%s", i, invalid.Field), Value: b.About, Reason: invalid.Reason}
		}
		if slices.ContainsFunc(budgets[:i], func(other bound.Budget) bool { return other.About == b.About }) {
			return check.Misconfigured(fmt.Sprintf("Budgets[%d]", i), b.About, "is about %s, which another budget above is about too: join them into one", b.About)
		}
	}
	return nil
}
