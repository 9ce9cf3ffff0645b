package main

// Lives under limits and budgets, whose instructions are counted.

import (
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// bounded are lives under limits and budgets that nothing reaches.
func bounded() []shape {
	limit := func(l store.Limit) func(context.Context, *redisstore.Store) error {
		return func(ctx context.Context, st *redisstore.Store) error {
			_, err := st.Limit(ctx, []store.LimitChange{{Limit: l}})
			return err
		}
	}
	budget := func(about store.BudgetTarget) func(context.Context, *redisstore.Store) error {
		return func(ctx context.Context, st *redisstore.Store) error {
			_, err := st.Budget(ctx, []store.BudgetChange{{Budget: store.Budget{About: about, Amount: much * store.AmountOne, Then: store.ThenHold, Zone: "UTC", Clock: store.Clock{{}}}}})
			return err
		}
	}
	each := store.LimitTarget{Each: store.EachAgent}
	return []shape{
		{name: "limit-runs", bound: limit(store.Limit{About: each, Concurrency: much})},
		{name: "limit-rate", bound: limit(store.Limit{Rate: much, Per: time.Second, Burst: much})},
		{name: "budget-runs", bound: budget(store.BudgetTarget{Unit: store.UnitRuns, Per: store.PerDay})},
		{
			name: "budget-tokens", bound: budget(store.BudgetTarget{LimitTarget: each, Unit: "tokens", Per: store.PerDay}),
			used: []store.Used{{Unit: "tokens", Amount: store.AmountOne}},
		},
	}
}
