package booking

// The verbs of the store that make something due earlier, with an alarm booked for it.

import (
	"context"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Store wraps the store of a scheduler. It reads from the store's answers what has become due, so that one place covers all calls.
type Store struct {
	store.Store

	By *Booker
	// PullNow runs what is due of an agent, if its tasks may start here.
	PullNow func(agent string)
}

// bookNow books for something that may be due now, in tasks that the answer does not name, if anything was changed at all.
func (a *Store) bookNow(ctx context.Context, effects []store.Effect) {
	if slices.ContainsFunc(effects, func(e store.Effect) bool { return e.Code == store.EffectDone }) {
		a.By.MadeDue(ctx, DueNow)
	}
}

// Submit books for the earliest of the tasks.
func (a *Store) Submit(ctx context.Context, tasks []store.Submission) ([]store.Submitted, error) {
	placed, err := a.Store.Submit(ctx, tasks)
	var due moment.Millis
	for i := range placed {
		due = base.Earlier(due, placed[i].Due)
	}
	a.By.MadeDue(ctx, due)
	return placed, err
}

// Touch books for the earliest of the runs that were booked.
func (a *Store) Touch(ctx context.Context, touches []store.Touch) ([]store.Touched, error) {
	touched, err := a.Store.Touch(ctx, touches)
	var due moment.Millis
	for i := range touched {
		due = base.Earlier(due, touched[i].Due)
	}
	a.By.MadeDue(ctx, due)
	return touched, err
}

// Claim books for a new task that it was to start and has only stored.
func (a *Store) Claim(ctx context.Context, requests []store.ClaimRequest) ([]store.Claim, error) {
	claims, err := a.Store.Claim(ctx, requests)
	if a.By.Alarm == nil { // the clock has nothing to do with tasks that start here
		return claims, err
	}
	for i := range claims {
		if c := &claims[i]; c.Submitted != nil && len(c.Tasks) == 0 {
			a.By.MadeDue(ctx, c.Submitted.Due)
		}
	}
	return claims, err
}

// Settle books for tasks that are due again, and for those that have waited for the run.
func (a *Store) Settle(ctx context.Context, runs []store.Settlement) ([]store.Settled, error) {
	settled, err := a.Store.Settle(ctx, runs)
	a.settled(ctx, settled)
	return settled, err
}

// Turn is Settle and Claim in one.
func (a *Store) Turn(ctx context.Context, runs []store.Settlement, requests []store.ClaimRequest) ([]store.Settled, []store.Claim, error) {
	settled, claims, err := a.Store.Turn(ctx, runs, requests)
	a.settled(ctx, settled)
	return settled, claims, err
}

// settled books for what the ends of runs have made due. A process that runs tasks and has no clock is called by other means.
func (a *Store) settled(ctx context.Context, settled []store.Settled) {
	if a.By.Alarm == nil {
		return
	}
	var due moment.Millis
	for i := range settled {
		due = base.Earlier(due, settled[i].Due)
		if settled[i].Freed || len(settled[i].Opened) > 0 {
			due = base.Earlier(due, DueNow)
		}
	}
	a.By.MadeDue(ctx, due)
}

// Replay books for dead tasks that are live again.
func (a *Store) Replay(ctx context.Context, tasks []store.Replay) ([]store.Effect, error) {
	effects, err := a.Store.Replay(ctx, tasks)
	a.effects(ctx, effects)
	return effects, err
}

// RunNow books for tasks that are due now.
func (a *Store) RunNow(ctx context.Context, tasks []store.RunNow) ([]store.Effect, error) {
	effects, err := a.Store.RunNow(ctx, tasks)
	a.effects(ctx, effects)
	return effects, err
}

// effects books for the earliest of some tasks.
func (a *Store) effects(ctx context.Context, effects []store.Effect) {
	var due moment.Millis
	for i := range effects {
		due = base.Earlier(due, effects[i].Due)
	}
	a.By.MadeDue(ctx, due)
}

// Hold books for the ends of holds: the held tasks are due then. A hold that is given as a duration ends so long after the store has received
// it, and no sooner than counted from before.
func (a *Store) Hold(ctx context.Context, holds []store.Hold) ([]store.Effect, error) {
	var due moment.Millis
	for i := range holds {
		until := holds[i].Until
		if until.After != 0 && (a.By.Alarm != nil || a.By.Asks(a.By.Base.Config.Clock.Now())) {
			now, err := a.By.Base.AskedNow(ctx)
			if err != nil {
				return nil, err
			}
			// guard: alarm-of-a-pause
			until.At = now.Add(until.After)
		}
		due = base.Earlier(due, until.At)
	}
	effects, err := a.Store.Hold(ctx, holds)
	if err != nil {
		return nil, err
	}
	a.By.MadeDue(ctx, due)
	return effects, nil
}

// Unhold books for the tasks that were held.
func (a *Store) Unhold(ctx context.Context, targets []store.Target) ([]store.Effect, error) {
	effects, err := a.Store.Unhold(ctx, targets)
	a.bookNow(ctx, effects)
	return effects, err
}

// Replan books for the earliest of the tasks.
func (a *Store) Replan(ctx context.Context, tasks []store.Replan) ([]store.Effect, error) {
	effects, err := a.Store.Replan(ctx, tasks)
	if err != nil {
		return nil, err
	}
	var due moment.Millis
	for i := range tasks {
		due = base.Earlier(due, tasks[i].Due)
	}
	a.By.MadeDue(ctx, due)
	return effects, nil
}

// Limit books for tasks that a limit no longer keeps back.
func (a *Store) Limit(ctx context.Context, changes []bound.LimitChange) ([]store.Effect, error) {
	effects, err := a.Store.Limit(ctx, changes)
	a.bookNow(ctx, effects)
	return effects, err
}

// Budget books for tasks that a budget no longer keeps back.
func (a *Store) Budget(ctx context.Context, changes []bound.BudgetChange) ([]store.Effect, error) {
	effects, err := a.Store.Budget(ctx, changes)
	a.bookNow(ctx, effects)
	return effects, err
}

// Signal books for tasks that received the signal.
func (a *Store) Signal(ctx context.Context, signals []store.Signal) ([]store.Signalled, error) {
	out, err := a.Store.Signal(ctx, signals)
	if slices.ContainsFunc(out, func(n store.Signalled) bool { return n.Resumed > 0 }) {
		if a.By.Alarm != nil { // which would call in a second at the soonest
			a.PullNow(signals[0].Agent)
		}
		a.By.MadeDue(ctx, DueNow)
	}
	return out, err
}
