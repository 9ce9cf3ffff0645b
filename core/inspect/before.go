package inspect

// Of a task that is due: how many tasks of its own agent are served first.

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// mostBefore is how many pages of an agent's tasks are counted, and urgentAfter how long a task has been due that is served as one of level 1.
const (
	mostBefore  = 10
	urgentAfter = time.Minute
)

// before is how many tasks of an agent are served before one of them.
type before struct {
	tasks int
	more  bool // there may be more of them
	// tenant is that of its agent, whose turn does not depend on how much others have; empty if it has none.
	tenant string
}

// String is the count behind that of others; empty if there is none.
func (b before) String() string {
	turns := ""
	if b.tenant != "" {
		turns = fmt.Sprintf("; tenants take turns, so that it is not behind all of them: its tenant is %s", b.tenant)
	}
	switch {
	case b.more:
		return fmt.Sprintf(", and at least %d of its own agent", b.tasks) + turns
	case b.tasks > 0:
		return fmt.Sprintf(", and %d of its own agent", b.tasks) + turns
	default:
		return turns
	}
}

// inQueue reports whether a task waits for nothing but its turn.
func (e *Explanation) inQueue(t *store.Stored) bool {
	return t.Status == store.StatusWaiting && t.Fence == 0 && !t.Parked && !t.Resting && t.Due <= e.now() && t.Line.Budget == nil && t.Line.Limit.Waiting == 0 && len(e.Task.Pauses) == 0
}

// countBefore counts the tasks of the same agent that are due and come before one: by level, then by due time, as the store lists them.
func countBefore(ctx context.Context, s *View, t *store.Stored, now moment.Millis) (before, error) {
	b, passed := before{}, false
	profile, err := s.base.ProfileOf(ctx, t.Agent)
	if err != nil {
		return b, err
	}
	if profile != nil {
		b.tenant = profile.Stored.Tenant
	}
	q := store.List{Agent: t.Agent, Statuses: []store.Status{store.StatusWaiting}, Limit: MaxPage}
	for range mostBefore {
		page, err := s.base.Store.List(ctx, q)
		if err != nil {
			return b, err
		}
		for i := range page.Tasks {
			o := &page.Tasks[i]
			switch {
			case o.ID == t.ID:
				passed = true
			case o.Parked || o.Resting || o.Due > now: // it is not in the queue, or its time has not come
			case servedAs(o, now) < servedAs(t, now), servedAs(o, now) == servedAs(t, now) && !passed:
				b.tasks++
			}
		}
		if q.After = page.Next; q.After == "" {
			return b, nil
		}
	}
	b.more = true
	return b, nil
}

// servedAs is the level that a due task is served as.
func servedAs(t *store.Stored, now moment.Millis) store.Level {
	if now.Sub(t.Due) >= urgentAfter {
		return 1
	}
	return t.Level
}
