package core

// Budgets: what runs use of anything, how that is bounded, and what is told of it.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Usage is what a run has used, by units: tokens, money, or whatever a budget is to bound. An amount counts to the millionth.
type Usage map[string]float64

// Bounds of a usage.
const (
	maxUnits   = 16
	maxUnitLen = 32 // bytes
)

// Use adds to what the run has used. It is charged to budgets when the run ends, however it ends, and kept in the task's history; a run
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
		if err := validUnit("used", unit); err != nil {
			return err
		}
		if unit == store.UnitRuns {
			return invalid("used", "has the unit runs, which are counted by themselves")
		}
		sum[unit] += amount
		// The comparison is false for what is not a number.
		if !(amount >= 0 && sum[unit] <= float64(store.MostAmount/store.AmountOne)) {
			return invalid("used", "must be between 0 and %s of %s, not %v", store.MostAmount, unit, amount)
		}
	}
	if len(sum) > maxUnits {
		return invalid("used", "has %d units: the limit is %d", len(sum), maxUnits)
	}
	r.used = sum
	return nil
}

// Used returns what the run has used so far, as [RunInfo.Use] was told.
func (t *RunInfo) Used() Usage {
	r := t.recorder()
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.used)
}

// ParseAmount is the amount of a number that somebody has written, which must be positive and not too large.
func ParseAmount(n float64) (Amount, error) {
	// The comparison is false for what is not a number.
	if !(n >= 1e-6 && n <= float64(store.MostAmount/store.AmountOne)) {
		return 0, invalid("amount", "must be between 0.000001 and %s, not %v", store.MostAmount, n)
	}
	return store.AmountOf(n), nil
}

// validUnit refuses what cannot be a unit.
func validUnit(field, unit string) error {
	if unit == "" || len(unit) > maxUnitLen {
		return invalid(field, "has a unit of %d bytes: it must have 1 to %d", len(unit), maxUnitLen)
	}
	for _, c := range []byte(unit) {
		if c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return invalid(field, "has the unit %q: letters, digits and _ are allowed", unit)
		}
	}
	return nil
}

// validate refuses a usage that nothing can have, as KindConfig.Expect.
func (u Usage) validate() *ConfigError {
	for unit, amount := range u {
		if wrong, ok := errors.AsType[*InvalidError](validUnit("Expect", unit)); ok {
			return &ConfigError{Field: wrong.Field, Value: unit, Reason: wrong.Reason}
		}
		// The comparison is false for what is not a number.
		if unit == store.UnitRuns || !(amount >= 0 && amount <= float64(store.MostAmount/store.AmountOne)) {
			return misconfigured("Expect", amount, "must be between 0 and %s of %s, and not of runs, not %v", store.MostAmount, unit, amount)
		}
	}
	if len(u) > maxUnits {
		return misconfigured("Expect", len(u), "must have at most %d units, not %d", maxUnits, len(u))
	}
	return nil
}

// expected is what runs of all kinds are expected to use.
func (c Config) expected() (all []store.Expected) {
	for _, kind := range slices.Sorted(maps.Keys(c.Kinds)) {
		own := c.Kinds[kind].or(c.Default)
		for _, unit := range slices.Sorted(maps.Keys(own.Expect)) {
			all = append(all, store.Expected{Kind: kind, Used: store.Used{Unit: unit, Amount: store.AmountOf(own.Expect[unit])}})
		}
	}
	return all
}

// amounts are what was used, in the order of the units.
func (u Usage) amounts() []store.Used {
	if len(u) == 0 { // nearly all
		return nil
	}
	out := make([]store.Used, 0, len(u))
	for _, unit := range slices.Sorted(maps.Keys(u)) {
		if a := store.AmountOf(u[unit]); a > 0 {
			out = append(out, store.Used{Unit: unit, Amount: a})
		}
	}
	return out
}

// stored is what was used as a record has it.
func (u Usage) stored() string {
	if len(u) == 0 {
		return ""
	}
	var b strings.Builder
	for i, one := range u.amounts() {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%s=%d", one.Unit, one.Amount)
	}
	return b.String()
}

// readUsage reads what stored writes.
func readUsage(text string) Usage {
	var u Usage
	for one := range strings.FieldsSeq(text) {
		unit, amount, _ := strings.Cut(one, "=")
		n, err := strconv.ParseInt(amount, 10, 64)
		if err != nil {
			continue
		}
		if u == nil {
			u = Usage{}
		}
		u[unit] = float64(n) / float64(store.AmountOne)
	}
	return u
}

// spent is what a settlement says of what its run has used and heard, to be added to.
func (v *verdict) spent() *store.Spent {
	if v.settlement.Spent == nil {
		v.settlement.Spent = &store.Spent{}
	}
	return v.settlement.Spent
}

// account adds what a run has used to its settlement, and whether it has asked anything: what did not run has not, nor has what was
// skipped or put off by itself.
func (d *decision) account(v *verdict) {
	if len(d.used) > 0 {
		v.spent().Used = d.used.amounts()
	}
	busy := v.settlement.Spent != nil && v.settlement.Spent.Busy > 0
	if !d.ran || !busy && (v.outcome == OutcomeSkipped || v.outcome == OutcomeSnoozed) || d.body.overlap().spawns() {
		v.spent().Idle = true
	}
}

// SetBudgets sets budgets for all processes of the store, whatever they were before: they count from the next claim on. Then is
// ThenHold if it is empty, and Zone that of the configuration, or UTC. Config.Budgets are set when a process first pulls. Fails with
// an *[InvalidError] for a budget that makes no sense, and where there would be more than [store.MostLimits] limits and budgets.
func (s *Scheduler) SetBudgets(ctx context.Context, budgets ...Budget) error {
	changes := make([]store.BudgetChange, len(budgets))
	for i := range budgets {
		b, err := wholeBudget(budgets[i], s.config.Zone, s.storeNow().Time())
		if err == nil {
			err = ofNoAgent(b.About.LimitTarget)
		}
		if err != nil {
			return err
		}
		changes[i] = store.BudgetChange{Budget: b}
	}
	if len(changes) == 0 {
		return nil
	}
	_, err := s.store.Budget(ctx, changes)
	return err
}

// LiftBudget lifts a budget. Fails with ErrNotFound if there is none about just that.
func (s *Scheduler) LiftBudget(ctx context.Context, about BudgetTarget) error {
	if err := checkBudgetTarget(about); err != nil {
		return err
	}
	effects, err := s.store.Budget(ctx, []store.BudgetChange{{Budget: Budget{About: about}, Lift: true}})
	if err == nil && effects[0].Code == store.EffectNone {
		err = ErrNotFound
	}
	return err
}

// Budgets are the budgets in force, and how much of each is used.
func (s *Scheduler) Budgets(ctx context.Context) ([]BudgetUse, error) { return s.store.Budgets(ctx) }

// BudgetOn is the budget about just that, and how much of it is used. Fails with ErrNotFound if there is none.
func (s *Scheduler) BudgetOn(ctx context.Context, about BudgetTarget) (BudgetUse, error) {
	all, err := s.Budgets(ctx)
	if err != nil {
		return BudgetUse{}, err
	}
	for i := range all {
		if all[i].About == about {
			return all[i], nil
		}
	}
	return BudgetUse{}, ErrNotFound
}

// wholeBudget checks a budget, and fills in what is left out.
func wholeBudget(b Budget, zone string, now time.Time) (Budget, error) {
	if err := checkBudgetTarget(b.About); err != nil {
		return b, err
	}
	if b.Then == "" {
		b.Then = store.ThenHold
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
		return b, invalid("zone", "%s", strings.TrimPrefix(err.Error(), "zone "))
	case b.Amount < 1 || b.Amount > store.MostAmount:
		return b, invalid("amount", "must be between 0.000001 and %s, not %s", store.MostAmount, b.Amount)
	case b.About.Unit == store.UnitRuns && b.Amount%store.AmountOne != 0:
		return b, invalid("amount", "of runs must be whole, not %s", b.Amount)
	case !store.Among(b.Then, []store.Then{store.ThenHold, store.ThenPause, store.ThenNotify}):
		return b, invalid("then", "must be hold, pause or notify, not %q", b.Then)
	case b.Then == store.ThenPause && !pausable(b.About.LimitTarget):
		return b, invalid("then", "can be pause if the budget is about each task, each agent, each key, a kind, a key, or everything, and not "+
			"about two of them at once: nothing less can be paused; leave the others out, or let it be hold")
	}
	b.Clock = store.ClockOf(location, now)
	if b.Note = nil; b.Then == store.ThenPause {
		b.Note = (&record.Hold{By: byDuly, Reason: fmt.Sprintf("the budget of %s %s is used up", b.Amount, b.About)}).Encode()
	}
	return b, nil
}

// pausable reports whether a pause can be about just what a budget is about.
func pausable(t LimitTarget) bool {
	if t.Agent != "" {
		return t.Kind == "" && t.Key == ""
	}
	switch t.Each {
	case store.EachTask:
		return true
	case store.EachAgent:
		return t.Kind == "" && t.Key == ""
	case store.EachKey:
		return t.Kind == ""
	default:
		return (t.Kind == "" || t.Key == "") && !strings.HasSuffix(t.Key, "*")
	}
}

// checkBudgetTarget refuses what cannot have a budget.
func checkBudgetTarget(t BudgetTarget) error {
	about := t.LimitTarget
	about.Agent = ""
	if about.Each == store.EachTask {
		about.Each = ""
	} else if about.Each != "" && about.Each != store.EachAgent && about.Each != store.EachKey {
		return invalid("each", "must be agent, key or task, not %q", about.Each)
	}
	if err := checkLimitTarget(about); err != nil {
		return err
	}
	if t.Unit == "" {
		return invalid("unit", "is required: runs, or what runs report, such as tokens or usd")
	}
	if err := validUnit("unit", t.Unit); err != nil {
		return err
	}
	if !store.Among(t.Per, []store.Period{store.PerHour, store.PerDay, store.PerMonth}) {
		return invalid("per", "must be hour, day or month, not %q", t.Per)
	}
	return nil
}

// validBudgets refuses budgets of the configuration that make no sense, alone or together.
func validBudgets(budgets []Budget, limits int, zone string) error {
	if n := len(budgets) + limits; n > store.MostLimits {
		return misconfigured("Budgets", len(budgets), "and limits must be at most %d, not %d", store.MostLimits, n)
	}
	for i, b := range budgets {
		if _, err := wholeBudget(b, zone, time.Unix(0, 0)); err != nil {
			invalid, _ := errors.AsType[*InvalidError](err)
			return &ConfigError{Field: fmt.Sprintf("Budgets[%d].%s", i, invalid.Field), Value: b.About, Reason: invalid.Reason}
		}
		if slices.ContainsFunc(budgets[:i], func(other Budget) bool { return other.About == b.About }) {
			return misconfigured(fmt.Sprintf("Budgets[%d]", i), b.About, "is about %s, which another budget above is about too: join them into one", b.About)
		}
	}
	return nil
}

// crossed tells that budgets are used up, once for each period.
func (s *Scheduler) crossed(all []store.Crossing) {
	for _, c := range all {
		about, of := c.About, ""
		e := Event{Type: EventBudget, Kind: about.Kind, Key: about.Key, By: byDuly, Next: c.Ends.Time()}
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
		e.Reason = fmt.Sprintf("the budget of %s is used up%s, until %s", about, of, clockTime(e.Next))
		s.config.Logger.Warn("a budget is used up", slog.String("budget", about.String()), slog.String("of", c.Of), slog.String("task", c.Task), slog.String("until", clockTime(e.Next)))
		if s.tells() {
			s.emit(e)
		}
	}
}

// budget says which budget a task waits for. One that was lifted has no amount, and its line is gone with the next claim.
func (e *Explanation) budget(t *store.Stored) {
	b := t.Line.Budget
	of := b.About.LimitTarget.String()
	switch b.About.Each {
	case store.EachAgent:
		of = fmt.Sprintf("agent %q", t.Line.Of)
	case store.EachKey:
		of = fmt.Sprintf("limit key %q", t.Line.Of)
	case store.EachTask:
		of = "this task"
	}
	if kind := b.About.Kind; kind != "" && b.About.Each != "" {
		of += fmt.Sprintf(" in kind %q", kind)
	}
	switch {
	case b.Amount == 0:
		e.because(BecauseBudget, 0, "it waited for a budget of %s, which has been lifted: the next claim takes it", of)
	case b.Used < b.Amount && b.Reserved > 0:
		e.because(BecauseBudget, 0, "the budget of %s %s %s of %s has no room for it beside the runs under way (%s used, %s kept for them): it starts when one of them has ended, if there is room then",
			b.Amount, b.About.Unit, b.About.Per.Text(), of, b.Used, b.Reserved)
	case b.Used < b.Amount || b.Ends <= e.now():
		e.because(BecauseBudget, 0, "it waited for the budget of %s %s %s of %s, which has room again: the next claim takes it",
			b.Amount, b.About.Unit, b.About.Per.Text(), of)
	default:
		e.because(BecauseBudget, b.Ends, "the budget of %s %s %s of %s is used up (%s used); runs again at %s, when its %s in %s is over, or once the budget is raised",
			b.Amount, b.About.Unit, b.About.Per.Text(), of, b.Used, clockTime(b.Ends.Time()), b.About.Per, b.Zone)
	}
}
