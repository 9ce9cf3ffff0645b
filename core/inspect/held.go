package inspect

// Held tasks: those that are due and cannot start, with what holds each.

import (
	"context"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// mostHeld is how many tasks of a page are explained, each by its own call.
const mostHeld = 200

// holding are the reasons for which a due task counts as held.
var holding = []model.BecauseCode{model.BecausePaused, model.BecauseNoHandler, model.BecauseLimited, model.BecauseBudget, model.BecauseSerial, model.BecauseSuspect}

// isDue reports whether a task waits though it is due.
func isDue(t *model.TaskInfo, now moment.Millis) bool {
	return t.Status == store.StatusWaiting && !t.Resting && (t.Parked || !t.NextRun.IsZero() && !t.NextRun.After(now.Time()))
}

// heldTasks is a page of tasks that are held. Those that are claimed or released meanwhile are left out.
func (s *View) heldTasks(ctx context.Context, l List) ([]model.TaskInfo, string, error) {
	l.Limit = min(l.Limit, mostHeld)
	due, next, err := s.page(ctx, l)
	if err != nil {
		return nil, "", err
	}
	var out []model.TaskInfo
	for i := range due {
		t := &due[i]
		e, err := whatHolds(ctx, s, t)
		if model.CodeOf(err) == model.CodeNotFound {
			continue
		}
		if err != nil {
			return nil, "", err
		}
		at := slices.IndexFunc(e.Reasons, func(b model.Because) bool { return store.Among(b.Code, holding) })
		if at >= 0 {
			t.HeldBy = &e.Reasons[at]
			out = append(out, *t)
		}
	}
	return out, next, nil
}

// whatHolds explains a task of a page. Of one that is paused the page says all of it.
func whatHolds(ctx context.Context, s *View, t *model.TaskInfo) (Explanation, error) {
	if len(t.Pauses) == 0 || t.Ending {
		return explain(ctx, s, t.Agent, t.ID, false)
	}
	e := Explanation{Task: *t}
	e.paused("")
	return e, nil
}

// heldBy names what a pause is about; empty for a single task.
func heldBy(t store.Target) string {
	switch {
	case t.ID != "":
		return ""
	case t.Agent != "":
		return "agent " + t.Agent
	case t.Kind != "":
		return "kind " + t.Kind
	case t.Key != "":
		return "limit key " + t.Key
	default:
		return "everything"
	}
}

// about says of the last reason what holds the task.
func (e *Explanation) about(what string) { e.Reasons[len(e.Reasons)-1].About = what }
