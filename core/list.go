package core

// Lists: the tasks of an agent, or of all agents, page by page.

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// List asks for tasks of one agent, or of all. All fields are optional.
type List struct {
	Agent  string            // empty for those of all agents that have failed, or that are live
	Status []Status          // only these
	Kind   string            // only this kind
	Key    string            // only this limit key
	Group  string            // only this group
	Labels map[string]string // only those that have all of these
	// Since and Until bound when tasks ended: then or later, and before. Nothing that is live is on the list then.
	Since, Until time.Time
	Overdue      bool   // only those that are due and could start, if a process had room for them
	Held         bool   // only those that are due and held: paused, without a handler, or behind a limit or a budget. HeldBy says by what
	Jobs         bool   // only live tasks that recur: the registry
	Brief        bool   // only Agent, ID and Status of each task of an agent, which costs the store little; not with any other choice but Status
	Limit        int    // DefaultPage if zero, at most MaxPage
	Cursor       string // where the page before ended
}

// Sizes of a page, and of a cursor.
const (
	DefaultPage  = 100
	MaxPage      = 1000
	maxCursorLen = 2048
)

// longestSearch is how many pages of a store are looked through for the tasks of one page that has some already.
const longestSearch = 32

// Tasks returns a page of an agent's tasks, and the cursor of the next page: empty on the last one. Those that wait come first,
// by due time, then those in progress, those that are parked, and those that have finished. A page may have fewer tasks than
// its limit, as it has at most PageBytes bytes of payloads, results and what else is kept of runs.
//
// A task that is left alone until the last page is on exactly one page, one that runs meanwhile on at least one; one that is
// paused, resumed or replayed meanwhile may be missing or come twice.
//
// Of all agents there are, with a cost that is that of the page: those that have failed, the last ones first; those that run, by the end of their
// leases; and those that are overdue, the agents first that have waited longest. The jobs and the other live tasks of all agents come agent by
// agent, in no order. As many agents and tasks are looked at for a page of all agents as keeps it short: it may be empty and have a cursor.
func (s *Scheduler) Tasks(ctx context.Context, l List) ([]TaskInfo, string, error) {
	if err := l.check(); err != nil {
		return nil, "", err
	}
	if l.Held {
		return s.heldTasks(ctx, l)
	}
	return s.page(ctx, l)
}

// page is a page of the tasks of an agent, or of all.
func (s *Scheduler) page(ctx context.Context, l List) ([]TaskInfo, string, error) {
	if l.Agent == "" {
		return s.tasksOfAll(ctx, l)
	}
	return s.tasks(ctx, &l, &listRoom{bytes: store.PageBytes, reads: longestSearch})
}

// tasks is a page of an agent's tasks that takes no more than there is room for.
func (s *Scheduler) tasks(ctx context.Context, l *List, room *listRoom) (out []TaskInfo, next string, err error) {
	q := store.List{Agent: l.Agent, Statuses: l.Status, After: l.Cursor, Limit: l.Limit, Brief: l.Brief}
	if l.Jobs || l.Overdue || l.Held {
		q.Statuses = l.live()
	}
	if l.searches() {
		q.Limit = max(l.Limit, DefaultPage) // few of them may match
	}
	for {
		page, err := s.store.List(ctx, q)
		if err != nil {
			return nil, "", err
		}
		var full bool
		room.reads--
		out, full = l.take(out, &page, &q.After, &room.bytes)
		if full || q.After == "" || room.spent(len(out)) {
			return out, q.After, nil
		}
	}
}

// take adds the tasks of a page that match, as long as the limit and the room in bytes allow. It sets where to continue: to
// nothing at the end. It reports whether there is no room left.
func (l *List) take(out []TaskInfo, page *store.Page, after *string, room *int) ([]TaskInfo, bool) {
	for i := range page.Tasks {
		stored := &page.Tasks[i]
		if t := l.inform(stored); l.matches(&t, page.Now) {
			*room -= sizeOf(stored)
			if len(out) == l.Limit || *room < 0 && len(out) > 0 {
				return out, true
			}
			out = append(out, t)
		}
		*after = stored.Cursor
	}
	*after = page.Next
	return out, len(out) == l.Limit
}

// sizeOf is how many bytes of a page a task takes.
func sizeOf(t *store.Stored) int { return len(t.Body) + len(t.State) + len(t.Record) + len(t.Order) }

// live are those of the statuses asked for that a recurring task can have.
func (l *List) live() []Status {
	all := []Status{StatusWaiting, StatusInProgress}
	if l.Status == nil {
		return all
	}
	return slices.DeleteFunc(all, func(s Status) bool { return !store.Among(s, l.Status) })
}

// inform is what a list shows of a task.
func (l *List) inform(t *store.Stored) TaskInfo {
	if l.Brief {
		return TaskInfo{Agent: t.Agent, ID: t.ID, Status: t.Status}
	}
	return inform(t)
}

// matches reports whether a task belongs on the list, beyond what the store has filtered.
func (l *List) matches(t *TaskInfo, now store.Millis) bool {
	for name, value := range l.Labels {
		if has, ok := t.Labels[name]; !ok || has != value {
			return false
		}
	}
	return l.isDue(t, now) && (l.Kind == "" || t.Kind == l.Kind) && (l.Group == "" || t.Group == l.Group) && (l.Key == "" || t.LimitKey == l.Key) &&
		(!l.Jobs || t.Recurring() && !t.Status.Finished()) && l.ended(t)
}

// isDue reports whether a task is due, where it has to be.
func (l *List) isDue(t *TaskInfo, now store.Millis) bool {
	if l.Overdue && (t.Parked || len(t.Pauses) > 0) {
		return false
	}
	return !l.Overdue && !l.Held || isDue(t, now)
}

// ended reports whether a task ended when it has to have ended.
func (l *List) ended(t *TaskInfo) bool {
	return l.Since.IsZero() && l.Until.IsZero() ||
		!t.Finished.IsZero() && !t.Finished.Before(l.Since) && (l.Until.IsZero() || t.Finished.Before(l.Until))
}

// searches reports whether few of the tasks that the store returns may match.
func (l *List) searches() bool {
	return l.Kind != "" || l.Key != "" || l.Group != "" || l.Jobs || l.Overdue || l.Held || len(l.Labels) > 0 || !l.Since.IsZero() || !l.Until.IsZero()
}

// check refuses a list that makes no sense, before the store is called.
func (l *List) check() error {
	if err := checkStatuses(l.Status); err != nil {
		return err
	}
	longest := maxCursorLen
	if l.Agent == "" {
		longest = maxPlaceLen
		if err := l.checkAll(); err != nil {
			return err
		}
	} else if err := validID("agent_id", l.Agent); err != nil {
		return err
	}
	if err := cmp.Or(l.checkTimes(), l.checkNames(), validText("cursor", l.Cursor, longest), checkLabels(l.Labels)); err != nil {
		return err
	}
	if l.Brief && l.searches() {
		return invalid("brief", "cannot be combined with a choice that needs the whole task, such as a kind")
	}
	if l.Limit == 0 {
		l.Limit = DefaultPage
	}
	if l.Limit < 1 || l.Limit > MaxPage {
		return invalid("limit", "must be between 1 and %d, not %d", MaxPage, l.Limit)
	}
	return nil
}

// checkNames refuses names that nothing can have.
func (l *List) checkNames() error {
	if l.Kind != "" {
		if err := validKind("kind", l.Kind); err != nil {
			return err
		}
	}
	return cmp.Or(validText("group", l.Group, MaxIDLen), validText("key", l.Key, MaxIDLen))
}

// checkStatuses refuses what is no status.
func checkStatuses(statuses []Status) error {
	for _, s := range statuses {
		switch s {
		case StatusWaiting, StatusInProgress, StatusCompleted, StatusFailed, StatusCancelled:
		default:
			return invalid("status", "must be waiting, in_progress, completed, failed or cancelled, not %q", string(s))
		}
	}
	return nil
}
