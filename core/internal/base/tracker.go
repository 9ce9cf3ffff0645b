package base

// Reading one task.

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// MostTries is how often a command on a task is tried because the task has changed since it was read.
const MostTries = 10

// Stored reads one task. It fails with ErrNotFound if it does not exist.
func (s *Base) Stored(ctx context.Context, agent, id string) (store.Stored, error) {
	t, _, err := s.Look(ctx, store.Get{Agent: agent, IDs: []string{id}})
	return t, err
}

// Look reads one task, as g says, and the time of the store.
func (s *Base) Look(ctx context.Context, g store.Get) (store.Stored, moment.Millis, error) {
	if err := check.ValidID("agent_id", g.Agent); err != nil {
		return store.Stored{}, 0, err
	}
	if err := check.ValidID("id", g.IDs[0]); err != nil {
		return store.Stored{}, 0, err
	}
	page, err := s.Store.Get(ctx, g)
	if err != nil {
		return store.Stored{}, 0, err
	}
	if len(page.Tasks) != 1 || page.Tasks[0].Status == "" {
		return store.Stored{}, 0, model.ErrNotFound
	}
	return page.Tasks[0], page.Now, nil
}
