package operate

// Budgets: how they are set and lifted.

import (
	"cmp"
	"context"

	"github.com/seed-6f6f2c11/duly/core/internal/bounding"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// SetBudgets sets budgets for all processes of the store, replacing previous ones: they apply from the next claim on. An empty Then
// means ThenHold, and an empty Zone that of the configuration, or UTC. Config.Budgets are set when a process first pulls. Fails with
// an *[store.InvalidError] for an invalid budget, and if there would be more than [bound.MostLimits] limits and budgets.
func (s *BoundDesk) SetBudgets(ctx context.Context, budgets ...bound.Budget) error {
	changes := make([]bound.BudgetChange, len(budgets))
	for i := range budgets {
		b, err := bounding.WholeBudget(budgets[i], s.base.Config.Zone, s.base.StoreNow().Time())
		if err == nil {
			err = bounding.OfNoAgent(b.About.LimitTarget)
		}
		if err != nil {
			return err
		}
		changes[i] = bound.BudgetChange{Budget: b}
	}
	if len(changes) == 0 {
		return nil
	}
	_, err := s.base.Store.Budget(ctx, changes)
	return err
}

// LiftBudget lifts a budget. Fails with ErrNotFound if there is none with exactly this target.
func (s *BoundDesk) LiftBudget(ctx context.Context, about bound.BudgetTarget) error {
	if err := cmp.Or(bounding.CheckBudgetTarget(about), bounding.OfNoAgent(about.LimitTarget)); err != nil {
		return err
	}
	return lifted(s.base.Store.Budget(ctx, []bound.BudgetChange{{Budget: bound.Budget{About: about}, Lift: true}}))
}

// Budgets are the budgets in force, and how much of each is used.
func (s *BoundDesk) Budgets(ctx context.Context) ([]bound.BudgetUse, error) {
	return s.base.Store.Budgets(ctx)
}

// BudgetOn is the budget with exactly this target, and how much of it is used. Fails with ErrNotFound if there is none.
func (s *BoundDesk) BudgetOn(ctx context.Context, about bound.BudgetTarget) (bound.BudgetUse, error) {
	all, err := s.Budgets(ctx)
	return one(all, err, func(b *bound.BudgetUse) bool { return b.About == about })
}
