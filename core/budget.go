package core

// The use that runs report, and budgets that they have used up.

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/internal/bound"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Use adds to the use of the run. It is charged to budgets with [RunInfo.Save] and when the run ends, with any outcome, and kept in the task's history; a run
// that loses its lease is not charged. It fails with an *[InvalidError], and adds nothing, if a unit is not of letters, digits and _, or is
// "runs", which are counted by themselves, or if an amount is negative or too large; and once the run has ended.
func (t *RunInfo) Use(used Usage) error {
	r := t.recorder()
	if r == nil {
		return errNoRunInfo
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return errors.New("use: the run has ended")
	}
	sum := maps.Clone(r.used)
	if sum == nil {
		sum = make(Usage, len(used))
	}
	for unit, amount := range used {
		if err := bound.ValidUnit("used", unit); err != nil {
			return err
		}
		if unit == store.UnitRuns {
			return check.Invalid("used", "has the unit runs, which are counted by themselves")
		}
		sum[unit] += amount
		// The comparison is false for NaN.
		if !(amount >= 0 && sum[unit] <= float64(store.MostAmount/store.AmountOne)) {
			return check.Invalid("used", "must be between 0 and %s of %s, not %v", store.MostAmount, unit, amount)
		}
	}
	if len(sum) > bound.MaxUnits {
		return check.Invalid("used", "has %d units: the limit is %d", len(sum), bound.MaxUnits)
	}
	r.used = sum
	if t.run == nil && t.made.news != nil {
		t.made.news()
	}
	return nil
}

// Used returns what the run has used so far, as reported to [RunInfo.Use].
func (t *RunInfo) Used() Usage {
	r := t.recorder()
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.used)
}

// expected is what runs of all kinds are expected to use.
func (c Config) expected() (all []store.Expected) {
	for _, kind := range slices.Sorted(maps.Keys(c.Kinds)) {
		own := c.Kinds[kind].Or(c.Default)
		for _, unit := range slices.Sorted(maps.Keys(own.Expect)) {
			all = append(all, store.Expected{Kind: kind, Used: store.Used{Unit: unit, Amount: store.AmountOf(own.Expect[unit])}})
		}
	}
	return all
}

// crossed reports that budgets are used up, once for each period.
func (s *Scheduler) crossed(all []store.Crossing) {
	for _, c := range all {
		about, of := c.About, ""
		e := Event{Type: model.EventBudget, Kind: about.Kind, Key: about.Key, By: check.ByDuly, Next: c.Ends.Time()}
		switch about.Each {
		case store.EachAgent:
			e.Agent, of = c.Of, fmt.Sprintf(" for agent %q", c.Of)
		case store.EachKey:
			e.Key, of = c.Of, fmt.Sprintf(" for limit key %q", c.Of)
		case store.EachTask:
			e.Agent, e.ID, of = c.Of, c.Task, fmt.Sprintf(" for task %q of agent %q", c.Task, c.Of)
		}
		if about.Agent != "" {
			e.Agent = about.Agent
		}
		e.Reason = fmt.Sprintf("the budget of %s is used up%s, until %s", about, of, inspect.ClockTime(e.Next))
		s.config.Logger.Warn("a budget is used up", slog.String("budget", about.String()), slog.String("of", c.Of), slog.String("task", c.Task), slog.String("until", inspect.ClockTime(e.Next)))
		if s.base.HasListeners() {
			s.base.Emit(e)
		}
	}
}
