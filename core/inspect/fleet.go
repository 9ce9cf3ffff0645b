package inspect

// Lists over all agents: what has failed, what runs and what is overdue.

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// checkAll refuses a list of all agents that no store could answer without reading everything.
func (l *List) checkAll() error {
	switch {
	case l.Brief:
		return check.Invalid("brief", "needs an agent")
	case l.Jobs || l.only(store.StatusFailed):
		return nil
	case slices.ContainsFunc(l.Status, store.Status.Finished):
		return check.Invalid("agent_id", "must be given: of all agents those tasks can be listed that have failed, by that status alone, and those that are live")
	default:
		return nil
	}
}

// checkTimes refuses times that do not fit the rest of the list.
func (l *List) checkTimes() error {
	live := func(s store.Status) bool { return !s.Finished() }
	switch {
	case l.Overdue && l.Status != nil && !l.only(store.StatusWaiting):
		return check.Invalid("overdue", "is about tasks that wait: leave the status out")
	case l.Held && (l.Overdue || l.Jobs || l.Status != nil && !l.only(store.StatusWaiting)):
		return check.Invalid("held", "is about tasks that wait and cannot start: leave the status, overdue and jobs out")
	case l.Late && (l.Held || l.Overdue || l.Jobs || l.Brief || slices.ContainsFunc(l.Status, store.Status.Finished)):
		return check.Invalid("late", "is about live tasks, for any reason: leave held, overdue, jobs, brief and ended ones out")
	case l.Since.IsZero() && l.Until.IsZero():
		return nil
	case l.Overdue || l.Late || l.Jobs || len(l.Status) == 0 || slices.ContainsFunc(l.Status, live):
		return check.Invalid("since", "and until are about when tasks ended: give a status such as failed")
	case !l.Until.IsZero() && !l.Until.After(l.Since):
		return check.Invalid("until", "must be later than since")
	default:
		return nil
	}
}

// TimeOrAgo reads a time in RFC 3339 form, or a duration before now by the store's clock, such as "1d", or after it, such as "+1d". Zero for an
// empty text. Fails with an *[store.InvalidError] that names the field.
func (s *View) TimeOrAgo(ctx context.Context, field, text string) (time.Time, error) {
	return ReadTime(field, text, func() (time.Time, error) {
		now, err := s.base.AskedNow(ctx)
		return now.Time(), err
	})
}

// ReadTime is what [View.TimeOrAgo] does, by a clock that is asked for durations alone.
func ReadTime(field, text string, now func() (time.Time, error)) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	after, ahead := strings.CutPrefix(text, "+")
	d, err := schedule.ParseDuration(after)
	if err != nil || d < 0 || d > check.MaxDelay {
		return time.Time{}, check.Invalid(field, `must be a time such as "2026-01-02T15:04:05Z", how long ago, such as "1d" or "90m", or how far ahead, such as "+1h", not %q`, check.Clip(text))
	}
	if !ahead {
		d = -d
	}
	at, err := now()
	return at.Add(d), err
}

// ParseDuration reads a duration as [schedule.ParseDuration] does: as Go writes it, with days and weeks in front, or as ISO 8601 has it.
func ParseDuration(text string) (time.Duration, error) { return schedule.ParseDuration(text) }

// only reports whether the list is of tasks of this status alone.
func (l *List) only(s store.Status) bool {
	return len(l.Status) > 0 && !slices.ContainsFunc(l.Status, func(other store.Status) bool { return other != s })
}

// place is where a store finds the tasks of a list of all agents; zero if it can find agents only.
func (l *List) place() store.Place {
	switch {
	case l.Jobs:
		return 0
	case l.Asking:
		return store.PlaceAwaiting
	case l.Overdue:
		return store.PlaceOverdue
	case l.only(store.StatusFailed):
		return store.PlaceFailed
	case l.only(store.StatusInProgress):
		return store.PlaceRunning
	default:
		return 0
	}
}

// tasksOfAll is a page of the tasks of all agents.
func (s *View) tasksOfAll(ctx context.Context, l List) (out []model.TaskInfo, next string, err error) {
	place := l.place()
	if place == 0 {
		return s.listAllAgents(ctx, l)
	}
	q := store.Find{Place: place, Since: moment.Of(l.Since), Until: moment.Of(l.Until), After: l.Cursor, Limit: l.Limit}
	if l.searches() {
		q.Limit = max(l.Limit, DefaultPage) // few of them may match
	}
	room := listRoom{bytes: store.PageBytes, reads: cmp.Or(l.Reads, longestSearch), hard: true}
	for {
		page, err := s.base.Store.Find(ctx, q)
		if err != nil {
			return nil, "", err
		}
		var full bool
		room.reads--
		out, full = l.take(out, &page, &q.After, &room.bytes)
		if full || q.After == "" || room.spent(len(out)) {
			s.nameHolders(ctx, out)
			return out, q.After, nil
		}
	}
}

// nameHolders puts the names of processes in place of their tags.
func (s *View) nameHolders(ctx context.Context, tasks []model.TaskInfo) {
	var known map[string]model.Process
	for i := range tasks {
		if t := &tasks[i]; t.Holder != "" {
			if known == nil {
				known = s.base.Processes(ctx)
			}
			t.Holder = known[t.Holder].Name
		}
	}
}
