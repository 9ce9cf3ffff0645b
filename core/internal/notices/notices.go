// Package notices is what a process finds while it works and reports to people, in its log and as events: budgets that are used up, tasks that a claim has parked,
// and faults of the store, which a patrol looks for.
package notices

import (
	"fmt"
	"log/slog"

	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// Crossed reports that budgets are used up, once for each period.
func Crossed(b *base.Base, all []bound.Crossing) {
	for _, c := range all {
		about, of := c.About, ""
		e := model.Event{Type: model.EventBudget, Kind: about.Kind, Key: about.Key, By: check.ByDuly, Next: c.Ends.Time()}
		switch about.Each {
		case bound.EachAgent:
			e.Agent, of = c.Of, fmt.Sprintf(" for agent %q", c.Of)
		case bound.EachKey:
			e.Key, of = c.Of, fmt.Sprintf(" for limit key %q", c.Of)
		case bound.EachTask:
			e.Agent, e.ID, of = c.Of, c.Task, fmt.Sprintf(" for task %q of agent %q", c.Task, c.Of)
		}
		if about.Agent != "" {
			e.Agent = about.Agent
		}
		e.Reason = fmt.Sprintf("the budget of %s is used up%s, until %s", about, of, inspect.ClockTime(e.Next))
		b.Config.Logger.Warn("a budget is used up", slog.String("budget", about.String()), slog.String("of", c.Of), slog.String("task", c.Task), slog.String("until", inspect.ClockTime(e.Next)))
		if b.HasListeners() {
			b.Emit(e)
		}
	}
}

// Parked reports what a claim did with tasks that it did not take: which it has parked, up to a bound and then how many more.
func Parked(b *base.Base, c *store.Claim) {
	for _, a := range c.Aside {
		b.Emit(model.Event{Type: model.EventPark, Agent: a.Agent, ID: a.ID, From: store.StatusWaiting, Status: store.StatusWaiting, By: check.ByDuly, Reason: base.Aside(a.Why), Count: 1})
	}
	if more := c.Parked - len(c.Aside); more > 0 {
		b.Emit(model.Event{Type: model.EventPark, From: store.StatusWaiting, Status: store.StatusWaiting, By: check.ByDuly, Count: more})
	}
}
