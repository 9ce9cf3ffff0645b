package operate

// Bounds of profiles, and who may set them.

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// BoundDesk sets, lifts and reads limits and budgets. It is safe for concurrent use.
type BoundDesk struct{ base *base.Base }

// mayBound reports whether the caller of ctx may act for all agents, and so set the limits, the budgets, the quota and the tenant of one. Other callers set
// profiles of their agents with the existing ones.
func (s *BoundDesk) mayBound(ctx context.Context) error {
	return s.base.Authorize(ctx, model.Access{Action: model.ActionControl})
}

// withBounds gives the next profile of an agent the limits, the budgets, the quota and the tenant of the old one where its caller may not change them. A profile
// with other ones is refused.
func (s *BoundDesk) withBounds(ctx context.Context, next, old *record.Profile) error {
	if old.Deleted {
		old = &record.Profile{}
	}
	if slices.Equal(next.Limits, old.Limits) && slices.Equal(next.Budgets, old.Budgets) && next.Quota == old.Quota && next.Tenant == old.Tenant {
		return nil
	}
	forbidden := s.mayBound(ctx)
	// guard: bounds-tenant
	if forbidden == nil {
		return nil
	}
	if len(next.Limits)+len(next.Budgets)+len(next.Quota)+len(next.Tenant) > 0 {
		return fmt.Errorf("set limits, budgets, the quota and the tenant of an agent: %w", forbidden)
	}
	next.Limits, next.Budgets, next.Quota, next.Tenant, next.Deleted = old.Limits, old.Budgets, old.Quota, old.Tenant, false
	return nil
}
