package remote

// What is wider than a task: pauses, signals, activity, limits and budgets.

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// orders are what operators order by a call: pauses, signals and notices of activity.
type orders struct{ *connection }

// rules are the calls about limits and budgets.
type rules struct{ *connection }

// on chooses the call for a target among those for a task, an agent, a kind, a key and all, with the values of its path.
func on(t core.Target, task, agent, kind, key, all *operation.Call) (*operation.Call, []string) {
	switch {
	case t.ID != "":
		return task, []string{t.Agent, t.ID}
	case t.Agent != "":
		return agent, []string{t.Agent}
	case t.Kind != "":
		return kind, []string{t.Kind}
	case t.Key != "":
		return key, []string{t.Key}
	default:
		return all, nil
	}
}

// Pause keeps tasks from being started.
func (c orders) Pause(ctx context.Context, t core.Target, p core.Pause) error {
	call, path := on(t, operation.PauseTask.Call, operation.PauseAgent.Call, operation.PauseKind.Call, operation.PauseKey.Call, operation.PauseAll.Call)
	_, err := send(ctx, c.connection, operation.Op[operation.Pause, struct{}]{Call: call}, operation.Pause{
		Order: operation.Order{Reason: p.Reason, By: p.By}, Until: p.Until.UTC(), For: operation.Duration(p.For),
		Resume: operation.Resume{Ahead: p.Ahead, All: t == core.Target{}},
	}, path...)
	return unknownTarget(err, t)
}

// Resume ends a pause.
func (c orders) Resume(ctx context.Context, t core.Target) error {
	call, path := on(t, operation.ResumeTask.Call, operation.ResumeAgent.Call, operation.ResumeKind.Call, operation.ResumeKey.Call, operation.ResumeAll.Call)
	_, err := send(ctx, c.connection, operation.Op[operation.Resume, struct{}]{Call: call}, operation.Resume{All: t == core.Target{}}, path...)
	return unknownTarget(err, t)
}

// unknownTarget is core's error about an agent or a kind that does not exist.
func unknownTarget(err error, t core.Target) error {
	if t.ID == "" && core.CodeOf(err) == core.CodeNotFound {
		return &operate.UnknownTargetError{Target: t}
	}
	return err
}

// Pauses is a page of all that is paused.
func (c orders) Pauses(ctx context.Context, limit int, cursor string) ([]model.PauseInfo, string, error) {
	page, err := send(ctx, c.connection, operation.ListPauses, operation.Page{Limit: limit, Cursor: cursor})
	return page.Pauses, page.Next, err
}

// Signal tells the tasks of an agent that wait for a key to continue.
func (c orders) Signal(ctx context.Context, agent, key string, payload json.RawMessage) (model.Signalled, error) {
	return send(ctx, c.connection, operation.SendSignal, operation.Signal{Payload: payload}, agent, key)
}

// Notice says that a subject was active.
func (c orders) Notice(ctx context.Context, kind string, s core.Subject) (model.Noticed, error) {
	return send(ctx, c.connection, operation.Notice, operation.Activity{Kind: kind, User: s.User, Device: s.Device, Agent: s.Agent})
}

// Limits are all limits.
func (c rules) Limits(ctx context.Context) ([]bound.LimitUse, error) {
	answer, err := send(ctx, c.connection, operation.ListLimits, operation.Empty{})
	return answer.Limits, err
}

// SetLimits sets limits, each as a whole, one after the other.
func (c rules) SetLimits(ctx context.Context, limits ...core.Limit) error {
	for i := range limits {
		if _, err := send(ctx, c.connection, operation.SetLimit, operation.LimitOf(&limits[i])); err != nil {
			return err
		}
	}
	return nil
}

// LimitOn is the limit on a target.
func (c rules) LimitOn(ctx context.Context, about core.LimitTarget) (bound.LimitUse, error) {
	all, err := c.Limits(ctx)
	return one(all, err, func(l *bound.LimitUse) bool { return l.About == about })
}

// one is the element that is meant.
func one[V any](all []V, err error, meant func(v *V) bool) (V, error) {
	if i := slices.IndexFunc(all, func(v V) bool { return meant(&v) }); i >= 0 {
		return all[i], err
	}
	return *new(V), cmp.Or(err, core.ErrNotFound)
}

// LiftLimit lifts a limit.
func (c rules) LiftLimit(ctx context.Context, about core.LimitTarget) error {
	_, err := send(ctx, c.connection, operation.LiftLimit, about)
	return err
}

// Budgets are all budgets.
func (c rules) Budgets(ctx context.Context) ([]bound.BudgetUse, error) {
	answer, err := send(ctx, c.connection, operation.ListBudgets, operation.Empty{})
	return answer.Budgets, err
}

// SetBudgets sets budgets, each as a whole, one after the other.
func (c rules) SetBudgets(ctx context.Context, budgets ...core.Budget) error {
	for i := range budgets {
		if _, err := send(ctx, c.connection, operation.SetBudget, operation.BudgetOf(&budgets[i])); err != nil {
			return err
		}
	}
	return nil
}

// BudgetOn is the budget of a target.
func (c rules) BudgetOn(ctx context.Context, about core.BudgetTarget) (bound.BudgetUse, error) {
	all, err := c.Budgets(ctx)
	return one(all, err, func(b *bound.BudgetUse) bool { return b.About == about })
}

// LiftBudget lifts a budget.
func (c rules) LiftBudget(ctx context.Context, about core.BudgetTarget) error {
	_, err := send(ctx, c.connection, operation.LiftBudget, about)
	return err
}
