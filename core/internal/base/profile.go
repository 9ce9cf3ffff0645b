package base

// What is stored of the profile of an agent.

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core/internal/bounding"
	"github.com/seed-6f6f2c11/duly/core/internal/plan"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// ProfileChange replaces a stored profile by next, with its limits and budgets; nil deletes it.
func (s *Base) ProfileChange(agent string, was []byte, next *record.Profile) store.ProfileChange {
	c := store.ProfileChange{Agent: agent, Was: was}
	if next != nil {
		c.Now = next.Encode()
		c.Limits, c.Budgets = bounding.Bounded(agent, next, s.StoreNow().Time())
		c.Quota, c.Tenant = bounding.QuotaIn(next), next.Tenant
	}
	return c
}

// ProfileOf reads the profile of an agent; nil if it has none.
func (s *Base) ProfileOf(ctx context.Context, agent string) (*plan.Profile, error) {
	data, err := s.Store.ProfileOf(ctx, agent)
	if err != nil {
		return nil, err
	}
	return s.Profiles.Of(data, s.Config.Zone), nil
}
