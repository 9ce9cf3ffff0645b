package inspect

// Tasks, groups, agents and pauses, as stored.

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Task returns one task. It fails with ErrNotFound if there is none, or its record is too old. Of a task whose record had to
// make room for later ones it returns how and when the task ended, with Dropped set, until KnownFor after its end.
func (s *View) Task(ctx context.Context, agent, id string) (model.TaskInfo, error) {
	t, err := s.base.Stored(ctx, agent, id)
	if err != nil {
		return model.TaskInfo{}, err
	}
	return codec.Inform(&t), nil
}

// Group returns the counts of a group of an agent's tasks. It fails with ErrNotFound if the group has none, or all have
// been finished for longer than records are kept.
func (s *View) Group(ctx context.Context, agent, group string) (model.GroupCounts, error) {
	if err := check.ValidID("agent_id", agent); err != nil {
		return model.GroupCounts{}, err
	}
	if err := check.ValidID("group", group); err != nil {
		return model.GroupCounts{}, err
	}
	counts, err := s.base.Store.Group(ctx, agent, group)
	if err != nil {
		return model.GroupCounts{}, err
	}
	if counts.Status() == "" {
		return model.GroupCounts{}, model.ErrNotFound
	}
	return model.GroupCounts(counts), nil
}

// Agents returns a page of the agents with live tasks, in no order, and the cursor of the next page: empty on the last one.
// An agent that comes or goes meanwhile may be missing, and one may be named twice.
func (s *View) Agents(ctx context.Context, limit int, cursor string) ([]model.AgentStats, string, error) {
	q, err := pageOf(limit, cursor)
	if err != nil {
		return nil, "", err
	}
	page, err := s.base.Store.Agents(ctx, q)
	var agents []model.AgentStats
	for _, a := range page.Agents {
		agents = append(agents, model.AgentStats{Agent: a.Agent, Live: a.Live, Due: a.Due.Time(), Paused: a.Held})
	}
	return agents, page.Next, err
}

// Pauses is a page of all pauses, in no order: tasks, agents, kinds, limit keys, or everything, by operators or,
// as they kept failing, by duly. limit and cursor are those of Agents.
func (s *View) Pauses(ctx context.Context, limit int, cursor string) ([]model.PauseInfo, string, error) {
	q, err := pageOf(limit, cursor)
	if err != nil {
		return nil, "", err
	}
	page, err := s.base.Store.Holds(ctx, q)
	pauses := make([]model.PauseInfo, len(page.Holds))
	for i := range page.Holds {
		pauses[i] = codec.PauseInfo(&page.Holds[i])
	}
	return pauses, page.Next, err
}

// pageOf is the request for a page to the store, with the default limit.
func pageOf(limit int, cursor string) (store.PageOf, error) {
	if limit == 0 {
		limit = DefaultPage
	}
	if limit < 1 || limit > MaxPage {
		return store.PageOf{}, check.Invalid("limit", "must be between 1 and %d, not %d", MaxPage, limit)
	}
	return store.PageOf{Limit: limit, After: cursor}, check.ValidText("cursor", cursor, maxCursorLen)
}
