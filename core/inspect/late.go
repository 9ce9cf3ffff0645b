package inspect

// Late tasks: those that have not succeeded within the time that they were to, as their watches have found out.

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/late"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// LateAgent has the watches of all tasks that are to succeed within a time.
const LateAgent = late.Agent

// Lateness is what the watches of all tasks know.
type Lateness struct {
	Tasks  int64         // that are late
	Behind time.Duration // for how long a watch has been due that no process has run: what is late is not known then; zero if none has for a minute
}

// Lateness says how many tasks are late, at the cost of two calls.
func (s *View) Lateness(ctx context.Context) (Lateness, error) {
	n, err := s.base.Store.Group(ctx, late.Agent, late.Group)
	if err != nil {
		return Lateness{}, err
	}
	page, err := s.base.Store.List(ctx, store.List{Agent: late.Agent, Statuses: []store.Status{store.StatusWaiting}, Limit: 1})
	if err != nil {
		return Lateness{}, err
	}
	l := Lateness{Tasks: n.Live}
	for i := range page.Tasks {
		if behind := page.Now.Sub(page.Tasks[i].Due); behind >= lateAfter {
			l.Behind = behind
		}
	}
	return l, nil
}

// Finding says whether tasks are late.
func (l Lateness) Finding() Finding {
	switch {
	case l.Tasks > 0:
		return Finding{
			"late", SeverityFailed, fmt.Sprintf("%s without a success within the time of expect_success", some(l.Tasks, "task")), "duly list --late says which, and what keeps each from succeeding",
		}
	case l.Behind > 0:
		return Finding{
			"late", SeverityFailed, fmt.Sprintf("no process has looked for %s whether tasks are late", l.Behind.Round(time.Second)),
			"start duly daemon, or lift what holds everything: a pause, or a limit or a budget without a kind; duly explain says what, of a task of agent " + late.Agent,
		}
	default:
		return well("late", "no task that has expect_success is late")
	}
}

// lateTasks is a page of the tasks that are late, with what keeps each from succeeding now.
func (s *View) lateTasks(ctx context.Context, l List) (out []model.TaskInfo, next string, err error) {
	watches := List{Agent: late.Agent, Group: late.Group, Status: []store.Status{store.StatusWaiting, store.StatusInProgress}, Limit: min(l.Limit, mostHeld), Cursor: l.Cursor}
	found, next, err := s.tasks(ctx, &watches, &listRoom{bytes: store.PageBytes, reads: longestSearch})
	if err != nil {
		return nil, "", err
	}
	for i := range found {
		w := late.Read(found[i].Payload)
		if w.Late == nil || l.Agent != "" && w.Agent != l.Agent {
			continue
		}
		e, err := s.Explain(ctx, w.Agent, w.ID)
		if model.CodeOf(err) == model.CodeNotFound {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		if !l.matches(&e.Task, moment.Of(e.Now)) || len(l.Status) > 0 && !store.Among(e.Task.Status, l.Status) {
			continue
		}
		e.Task.HeldBy = &e.Reasons[0]
		e.Task.HeldBy.Text = fmt.Sprintf("late since %s: %s", ClockTime(w.Late.Since.Time()), e.Task.HeldBy.Text)
		out = append(out, e.Task)
	}
	return out, next, nil
}
