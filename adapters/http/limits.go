package http

import (
	"context"
	"fmt"
	"net/http"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// Limits and budgets over all processes: an operator's calls, for callers that may touch all agents.

// limits answers with all limits: there are few, so that one page has them.
func (a *api) limits(r *http.Request, _ operation.Empty) (operation.Limits, error) {
	all, err := a.scheduler.Limits(r.Context())
	return operation.Limits{Limits: some(all)}, err
}

// budgets answers with all budgets.
func (a *api) budgets(r *http.Request, _ operation.Empty) (operation.Budgets, error) {
	all, err := a.scheduler.Budgets(r.Context())
	return operation.Budgets{Budgets: some(all)}, err
}

// setLimit sets one limit as a whole, and answers with its new state. Sent again it changes nothing.
func (a *api) setLimit(r *http.Request, l core.Limit) (bound.LimitUse, error) {
	if err := a.scheduler.SetLimits(r.Context(), l); err != nil {
		return bound.LimitUse{}, err
	}
	return a.scheduler.LimitOn(r.Context(), l.About)
}

// setBudget does the same for a budget.
func (a *api) setBudget(r *http.Request, b core.Budget) (bound.BudgetUse, error) {
	if err := a.scheduler.SetBudgets(r.Context(), b); err != nil {
		return bound.BudgetUse{}, err
	}
	return a.scheduler.BudgetOn(r.Context(), b.About)
}

// liftLimit lifts the limit that the parameters name, and repeats its name.
func (a *api) liftLimit(r *http.Request, on core.LimitTarget) (operation.LiftedLimit, error) {
	return operation.LiftedLimit{LimitTarget: on, Deleted: true}, lift(r.Context(), a.scheduler.LiftLimit, on, "limit on", "limits")
}

// liftBudget lifts the budget that the parameters name.
func (a *api) liftBudget(r *http.Request, on core.BudgetTarget) (operation.LiftedBudget, error) {
	return operation.LiftedBudget{BudgetTarget: on, Deleted: true}, lift(r.Context(), a.scheduler.LiftBudget, on, "budget of", "budgets")
}

// lift lifts what bounds a target, and says where all is listed if nothing bounds it.
func lift[T any](ctx context.Context, do func(ctx context.Context, about T) error, about T, what, all string) error {
	err := do(ctx, about)
	if core.CodeOf(err) == core.CodeNotFound {
		return problem.New(core.CodeNotFound, fmt.Sprintf("no %s %v exists: GET /v1/%s lists all %s", what, about, all, all))
	}
	return err
}
