package http

import (
	"fmt"
	"net/http"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/adapters/internal/requestbody"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Budgets over all processes: an operator's calls, for callers that may touch all agents.

// budgets answers with all budgets: there are few, so that one page has them.
func (a *api) budgets(r *http.Request) (int, any, error) {
	_, err := query(r)
	if err == nil {
		err = a.allowAll(r)
	}
	if err != nil {
		return 0, nil, err
	}
	budgets, err := a.scheduler.Budgets(r.Context())
	if budgets == nil {
		budgets = []store.BudgetUse{}
	}
	return http.StatusOK, struct {
		Budgets []store.BudgetUse `json:"budgets"`
	}{budgets}, err
}

// setBudget sets one budget as a whole, and answers with its new state. Sent again it changes nothing.
func (a *api) setBudget(r *http.Request) (int, any, error) {
	data, err := requestbody.JSON(r)
	if err != nil {
		return 0, nil, err
	}
	b, err := core.ReadBudget(data)
	if err == nil {
		err = a.allowAll(r)
	}
	if err == nil {
		err = a.scheduler.SetBudgets(r.Context(), b)
	}
	if err != nil {
		return 0, nil, err
	}
	set, err := a.scheduler.BudgetOn(r.Context(), b.About)
	return http.StatusOK, set, err
}

// liftBudget lifts the budget that the parameters name, and repeats its name.
func (a *api) liftBudget(r *http.Request) (int, any, error) {
	err := noBody(r)
	q, wrong := query(r, "kind", "limit_key", "each", "unit", "per")
	if err == nil {
		err = wrong
	}
	if err == nil {
		err = a.allowAll(r)
	}
	if err != nil {
		return 0, nil, err
	}
	about := core.BudgetTarget{
		LimitTarget: core.LimitTarget{Kind: q.Get("kind"), Key: q.Get("limit_key"), Each: store.Each(q.Get("each"))},
		Unit:        q.Get("unit"), Per: store.Period(q.Get("per")),
	}
	if err := a.scheduler.LiftBudget(r.Context(), about); core.CodeOf(err) == core.CodeNotFound {
		return 0, nil, problem.New(core.CodeNotFound, fmt.Sprintf("no budget of %s exists: GET /v1/budgets lists all budgets", about))
	} else if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, struct {
		core.BudgetTarget

		Deleted bool `json:"deleted"`
	}{about, true}, nil
}
