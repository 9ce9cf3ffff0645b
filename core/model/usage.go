package model

// What a run has used.

import (
	"errors"
	"maps"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/internal/bounding"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// Usage is what a run has used, by units: tokens, money, or anything else that a budget bounds. An amount counts to the millionth.
type Usage map[string]float64

// validate refuses a usage that is not valid as KindConfig.Expect.
func (u Usage) validate() *store.ConfigError {
	for unit, amount := range u {
		if wrong, ok := errors.AsType[*store.InvalidError](bounding.ValidUnit("Expect", unit)); ok {
			return &store.ConfigError{Field: wrong.Field, Value: unit, Reason: wrong.Reason}
		}
		// The comparison is false for NaN.
		if unit == bound.UnitRuns || !(amount >= 0 && amount <= float64(bound.MostAmount/bound.AmountOne)) {
			return check.Misconfigured("Expect", amount, "must be between 0 and %s of %s, and not of runs, not %v", bound.MostAmount, unit, amount)
		}
	}
	if len(u) > bounding.MaxUnits {
		return check.Misconfigured("Expect", len(u), "must have at most %d units, not %d", bounding.MaxUnits, len(u))
	}
	return nil
}

// Amounts are what was used, in the order of the units.
func (u Usage) Amounts() []bound.Used {
	if len(u) == 0 { // nearly all runs
		return nil
	}
	out := make([]bound.Used, 0, len(u))
	for _, unit := range slices.Sorted(maps.Keys(u)) {
		if a := bound.AmountOf(u[unit]); a > 0 {
			out = append(out, bound.Used{Unit: unit, Amount: a})
		}
	}
	return out
}
