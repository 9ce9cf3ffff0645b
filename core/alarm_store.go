package core

// The verbs of the store that make something due earlier, with an alarm booked for it.

import (
	"context"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/booking"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// alarmStore wraps the store of a scheduler. It reads from the store's answers what has become due, so that one place covers all calls.
type alarmStore struct {
	Store

	s *Scheduler
}

// bookNow books for something that may be due now, in tasks that the answer does not name, if anything was changed at all.
func (a *alarmStore) bookNow(ctx context.Context, effects []store.Effect) {
	if slices.ContainsFunc(effects, func(e store.Effect) bool { return e.Code == store.EffectDone }) {
		a.s.madeDue(ctx, booking.DueNow)
	}
}

// Submit books for the earliest of the tasks.
func (a *alarmStore) Submit(ctx context.Context, tasks []store.Submission) ([]store.Submitted, error) {
	placed, err := a.Store.Submit(ctx, tasks)
	var due store.Millis
	for i := range placed {
		due = base.Earlier(due, placed[i].Due)
	}
	a.s.madeDue(ctx, due)
	return placed, err
}

// Touch books for the earliest of the runs that were booked.
func (a *alarmStore) Touch(ctx context.Context, touches []store.Touch) ([]store.Touched, error) {
	touched, err := a.Store.Touch(ctx, touches)
	var due store.Millis
	for i := range touched {
		due = base.Earlier(due, touched[i].Due)
	}
	a.s.madeDue(ctx, due)
	return touched, err
}

// Claim books for a new task that it was to start and has only stored.
func (a *alarmStore) Claim(ctx context.Context, requests []store.ClaimRequest) ([]store.Claim, error) {
	claims, err := a.Store.Claim(ctx, requests)
	if a.s.config.Alarm == nil { // the clock has nothing to do with tasks that start here
		return claims, err
	}
	for i := range claims {
		if c := &claims[i]; c.Submitted != nil && len(c.Tasks) == 0 {
			a.s.madeDue(ctx, c.Submitted.Due)
		}
	}
	return claims, err
}

// Settle books for tasks that are due again, and for those that have waited for the run.
func (a *alarmStore) Settle(ctx context.Context, runs []store.Settlement) ([]store.Settled, error) {
	settled, err := a.Store.Settle(ctx, runs)
	a.settled(ctx, settled)
	return settled, err
}

// Turn is Settle and Claim in one.
func (a *alarmStore) Turn(ctx context.Context, runs []store.Settlement, requests []store.ClaimRequest) ([]store.Settled, []store.Claim, error) {
	settled, claims, err := a.Store.Turn(ctx, runs, requests)
	a.settled(ctx, settled)
	return settled, claims, err
}

// settled books for what the ends of runs have made due. A process that runs tasks and has no clock is called by other means.
func (a *alarmStore) settled(ctx context.Context, settled []store.Settled) {
	if a.s.config.Alarm == nil {
		return
	}
	var due store.Millis
	for i := range settled {
		due = base.Earlier(due, settled[i].Due)
		if settled[i].Freed || len(settled[i].Opened) > 0 {
			due = base.Earlier(due, booking.DueNow)
		}
	}
	a.s.madeDue(ctx, due)
}

// Replay books for dead tasks that are live again.
func (a *alarmStore) Replay(ctx context.Context, tasks []store.Replay) ([]store.Effect, error) {
	effects, err := a.Store.Replay(ctx, tasks)
	a.effects(ctx, effects)
	return effects, err
}

// RunNow books for tasks that are due now.
func (a *alarmStore) RunNow(ctx context.Context, tasks []store.RunNow) ([]store.Effect, error) {
	effects, err := a.Store.RunNow(ctx, tasks)
	a.effects(ctx, effects)
	return effects, err
}

// effects books for the earliest of some tasks.
func (a *alarmStore) effects(ctx context.Context, effects []store.Effect) {
	var due store.Millis
	for i := range effects {
		due = base.Earlier(due, effects[i].Due)
	}
	a.s.madeDue(ctx, due)
}

// Hold books for the ends of holds: the held tasks are due then. A hold that is given as a duration ends so long after the store has received
// it, and no sooner than counted from before.
func (a *alarmStore) Hold(ctx context.Context, holds []store.Hold) ([]store.Effect, error) {
	var due store.Millis
	for i := range holds {
		until := holds[i].Until
		if until.After != 0 && (a.s.config.Alarm != nil || a.s.alarm.Asks(a.s.config.Clock.Now())) {
			now, err := a.s.base.AskedNow(ctx)
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
	a.s.madeDue(ctx, due)
	return effects, nil
}

// Unhold books for the tasks that were held.
func (a *alarmStore) Unhold(ctx context.Context, targets []store.Target) ([]store.Effect, error) {
	effects, err := a.Store.Unhold(ctx, targets)
	a.bookNow(ctx, effects)
	return effects, err
}

// Replan books for the earliest of the tasks.
func (a *alarmStore) Replan(ctx context.Context, tasks []store.Replan) ([]store.Effect, error) {
	effects, err := a.Store.Replan(ctx, tasks)
	if err != nil {
		return nil, err
	}
	var due store.Millis
	for i := range tasks {
		due = base.Earlier(due, tasks[i].Due)
	}
	a.s.madeDue(ctx, due)
	return effects, nil
}

// Limit books for tasks that a limit no longer keeps back.
func (a *alarmStore) Limit(ctx context.Context, changes []store.LimitChange) ([]store.Effect, error) {
	effects, err := a.Store.Limit(ctx, changes)
	a.bookNow(ctx, effects)
	return effects, err
}

// Budget books for tasks that a budget no longer keeps back.
func (a *alarmStore) Budget(ctx context.Context, changes []store.BudgetChange) ([]store.Effect, error) {
	effects, err := a.Store.Budget(ctx, changes)
	a.bookNow(ctx, effects)
	return effects, err
}

// Signal books for tasks that received the signal.
func (a *alarmStore) Signal(ctx context.Context, signals []store.Signal) ([]store.Signalled, error) {
	out, err := a.Store.Signal(ctx, signals)
	if slices.ContainsFunc(out, func(n store.Signalled) bool { return n.Resumed > 0 }) {
		if a.s.config.Alarm != nil { // which would call in a second at the soonest
			a.s.pullNow(signals[0].Agent)
		}
		a.s.madeDue(ctx, booking.DueNow)
	}
	return out, err
}
