package inspect

// Lists: the tasks of an agent, or of all agents, page by page.

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Narrows reports whether a list has a filter.
func (l *List) Narrows() bool {
	return l.Agent != "" || l.Status != nil || l.Kind != "" || l.Key != "" || l.Group != "" || len(l.Labels) > 0 ||
		!l.Since.IsZero() || !l.Until.IsZero() || l.Overdue || l.Held || l.Late || l.Jobs || l.looksInside()
}

// List asks for tasks of one agent, or of all. All fields are optional.
type List struct {
	Agent  string            // empty for failed or live tasks of all agents
	Status []store.Status    // only these
	Kind   string            // only this kind
	Key    string            // only this limit key
	Group  string            // only this group
	Labels map[string]string // only those that have all of these
	// Session is that of the tasks, Text is a part of their ids or of their last errors in any case, and Cause is that of their errors: see [CauseOf].
	Session, Text, Cause string
	// DueBy keeps tasks that wait and are due by then.
	DueBy time.Time
	// Since and Until bound when tasks ended: at Since or later, and before Until. No live task is on the list then.
	Since, Until time.Time
	Overdue      bool   // only those that are due and could start, if a process had room for them
	Held         bool   // only those that are due and held: paused, without a handler, or behind a limit or a budget. HeldBy says by what
	Late         bool   // only those that have not succeeded within the time of ExpectSuccess. HeldBy says since when, and what keeps each from it
	Jobs         bool   // only live tasks that recur: the registry
	Asking       bool   // only those that wait for a person: for an approval, or for the answer to a question
	Brief        bool   // only Agent, ID and Status of each task of an agent, which costs the store little; no other filter but Status
	Limit        int    // DefaultPage if zero, at most MaxPage
	Reads        int    // most calls of the store for a page, from 2 on; what bounds the page otherwise if zero
	Cursor       string // where the previous page ended
}

// Sizes of a page, and of a cursor.
const (
	DefaultPage  = 100
	MaxPage      = 1000
	maxCursorLen = 2048
)

// longestSearch is how many pages of a store are searched for a page that has some tasks already.
const longestSearch = 32

// Tasks returns a page of an agent's tasks, and the cursor of the next page: empty on the last one. Those that wait come first,
// by due time, then those in progress, those that are parked, and those that have finished. A page may have fewer tasks than
// its limit, as it has at most PageBytes bytes of payloads, results and records of runs.
//
// A task that does not change until the last page is on exactly one page, one that runs meanwhile on at least one; one that is
// paused, resumed or replayed meanwhile may be missing or appear twice.
//
// Of all agents, it lists at the cost of the page: failed tasks, the latest first; running ones, by the end of their
// leases; and overdue ones, beginning with the agents that have waited longest. The jobs and the other live tasks of all agents come agent by
// agent, in no order. A page of all agents reads a bounded number of agents and tasks: it may be empty and have a cursor.
func (s *View) Tasks(ctx context.Context, l List) ([]model.TaskInfo, string, error) {
	if err := l.Check(); err != nil {
		return nil, "", err
	}
	switch {
	case l.Held:
		return s.heldTasks(ctx, l)
	case l.Late:
		return s.lateTasks(ctx, l)
	}
	return s.page(ctx, l)
}

// page is a page of the tasks of an agent, or of all.
func (s *View) page(ctx context.Context, l List) ([]model.TaskInfo, string, error) {
	if l.Agent == "" {
		return s.tasksOfAll(ctx, l)
	}
	return s.tasks(ctx, &l, &listRoom{bytes: store.PageBytes, reads: cmp.Or(l.Reads, longestSearch), hard: l.Reads > 0})
}

// tasks is a page of an agent's tasks that takes no more than room allows.
func (s *View) tasks(ctx context.Context, l *List, room *listRoom) (out []model.TaskInfo, next string, err error) {
	q := store.List{Agent: l.Agent, Statuses: l.Status, After: l.Cursor, Limit: l.Limit, Brief: l.Brief}
	if l.Jobs || l.Overdue || l.Held || l.Asking || !l.DueBy.IsZero() {
		q.Statuses = l.live()
	}
	if l.searches() {
		q.Limit = max(l.Limit, DefaultPage) // few of them may match
	}
	for {
		page, err := s.base.Store.List(ctx, q)
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

// take adds the tasks of a page that match, as long as the limit and the room in bytes allow. It sets after to where to continue,
// empty at the end. It reports whether there is no room left.
func (l *List) take(out []model.TaskInfo, page *store.Page, after *string, room *int) ([]model.TaskInfo, bool) {
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
func (l *List) live() []store.Status {
	all := []store.Status{store.StatusWaiting, store.StatusInProgress}
	if l.Status == nil {
		return all
	}
	return slices.DeleteFunc(all, func(s store.Status) bool { return !store.Among(s, l.Status) })
}

// inform returns what a list shows of a task.
func (l *List) inform(t *store.Stored) model.TaskInfo {
	if l.Brief {
		return model.TaskInfo{Agent: t.Agent, ID: t.ID, Status: t.Status}
	}
	return codec.Inform(t)
}

// matches reports whether a task belongs on the list, beyond what the store has filtered.
func (l *List) matches(t *model.TaskInfo, now moment.Millis) bool {
	for name, value := range l.Labels {
		if has, ok := t.Labels[name]; !ok || has != value {
			return false
		}
	}
	return l.isDue(t, now) && (l.Kind == "" || t.Kind == l.Kind) && (l.Group == "" || t.Group == l.Group) && (l.Key == "" || t.LimitKey == l.Key) &&
		(!l.Jobs || t.Recurring() && !t.Status.Finished()) && l.ended(t) && l.holds(t)
}

// isDue reports whether a task is due, if the list requires that.
func (l *List) isDue(t *model.TaskInfo, now moment.Millis) bool {
	if l.Overdue && (t.Parked || len(t.Pauses) > 0) {
		return false
	}
	return !l.Overdue && !l.Held || isDue(t, now)
}

// ended reports whether a task ended between Since and Until, if they are set.
func (l *List) ended(t *model.TaskInfo) bool {
	return l.Since.IsZero() && l.Until.IsZero() ||
		!t.Finished.IsZero() && !t.Finished.Before(l.Since) && (l.Until.IsZero() || t.Finished.Before(l.Until))
}

// searches reports whether few of the tasks that the store returns may match.
func (l *List) searches() bool {
	return l.Kind != "" || l.Key != "" || l.Group != "" || l.Jobs || l.Overdue || l.Held || len(l.Labels) > 0 || !l.Since.IsZero() || !l.Until.IsZero() || l.looksInside()
}

// Check refuses an invalid list, before the store is called.
func (l *List) Check() error {
	if err := CheckStatuses(l.Status); err != nil {
		return err
	}
	longest := maxCursorLen
	if l.Agent == "" {
		longest = maxPlaceLen
		if err := l.checkAll(); err != nil {
			return err
		}
	} else if err := check.ValidID("agent_id", l.Agent); err != nil {
		return err
	}
	if err := cmp.Or(l.checkTimes(), l.checkNames(), check.ValidText("cursor", l.Cursor, longest), check.ValidLabels(l.Labels)); err != nil {
		return err
	}
	if l.Brief && l.searches() {
		return check.Invalid("brief", "cannot be combined with a choice that needs the whole task, such as a kind")
	}
	if l.Limit == 0 {
		l.Limit = DefaultPage
	}
	if l.Limit < 1 || l.Limit > MaxPage {
		return check.Invalid("limit", "must be between 1 and %d, not %d", MaxPage, l.Limit)
	}
	return nil
}

// checkNames refuses invalid names.
func (l *List) checkNames() error {
	if l.Kind != "" {
		if err := check.ValidKind("kind", l.Kind); err != nil {
			return err
		}
	}
	return cmp.Or(check.ValidText("group", l.Group, check.MaxIDLen), check.ValidText("key", l.Key, check.MaxIDLen), l.checkInside())
}

// CheckStatuses refuses unknown statuses.
func CheckStatuses(statuses []store.Status) error {
	for _, s := range statuses {
		switch s {
		case store.StatusWaiting, store.StatusInProgress, store.StatusCompleted, store.StatusFailed, store.StatusCancelled:
		default:
			return check.Invalid("status", "must be waiting, in_progress, completed, failed or cancelled, not %q", string(s))
		}
	}
	return nil
}
