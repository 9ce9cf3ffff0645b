package core

// Edit: some fields of a task that waits, changed as JSON has them; all others stay, its history and its next run too.

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Fields of a task that say when it runs: each group excludes the others, so that one that is set takes the place of what stood there.
var scheduleFields = map[string][]string{
	"cron":   {"cron", "zone", "day_match", "gap"},
	"every":  {"every", "from"},
	"manual": {"manual"},
	"at":     {"at"},
}

// notEdited are fields of a submit that are not about what a task is.
var notEdited = []string{"agent_id", "id", "unique_key", "on_conflict", "preset", "paused", "paused_reason"}

// Edit changes fields of a task that waits: change is a JSON object of fields as a submit has them, and null takes one away. All others stay as they
// are, as do its history and, unless the change says when the task runs, its next run, which may move within the task's jitter. A schedule takes
// the place of the one before. If the task has changed meanwhile the change is made to what it is then.
//
// It fails with an *[InvalidError] that names the field, with ErrNotFound if there is no such task, and with a *[ConflictError] if it runs, has
// ended, or is an activity task.
func (s *Scheduler) Edit(ctx context.Context, agent, id string, change json.RawMessage) (out Submitted, err error) {
	names, values, err := JSONObject("change", change)
	if err != nil {
		return Submitted{}, err
	}
	if len(names) == 0 {
		return Submitted{}, invalid("change", "has no field")
	}
	for _, name := range names {
		switch {
		case slices.Contains(notEdited, name):
			return Submitted{}, invalid(name, "cannot be edited")
		case newTaskFields[name] == nil: // whether it is null or not
			return Submitted{}, invalid(clip(name), "is not a field of a task")
		}
	}
	err = s.asRead(ctx, agent, id, func(t *store.Stored) error {
		task, err := s.edited(ctx, t, names, values)
		if err != nil {
			return err
		}
		all, err := s.Submit(context.WithValue(ctx, seenKey{}, t.Version), task)
		if err == nil {
			out = all[0]
		}
		return err
	})
	return out, err
}

// seenKey is the key of the version that a task must still have when it is replaced.
type seenKey struct{}

// unseen reports whether a task is no longer as whoever replaces it has seen it.
func unseen(ctx context.Context, t *store.Stored) bool {
	seen, is := ctx.Value(seenKey{}).(string)
	return is && seen != t.Version
}

// edited is the definition of a task with a change.
func (s *Scheduler) edited(ctx context.Context, t *store.Stored, names []string, values map[string]json.RawMessage) (NewTask, error) {
	info := inform(t)
	switch {
	case t.Status == StatusInProgress:
		return NewTask{}, &ConflictError{Agent: t.Agent, ID: t.ID, Reason: "is running: edit it when its run has ended"}
	case t.Status.Finished():
		return NewTask{}, &ConflictError{Agent: t.Agent, ID: t.ID, Reason: fmt.Sprintf("is %s: submit it again", t.Status)}
	case info.Schedule == ScheduleActivity:
		return NewTask{}, &ConflictError{Agent: t.Agent, ID: t.ID, Reason: "is an activity task: what is noticed next says what it is"}
	}
	def := info.Definition()
	if err := s.keepDue(ctx, &def, &info); err != nil {
		return NewTask{}, err
	}
	data, err := def.MarshalJSON()
	if err != nil {
		return NewTask{}, fmt.Errorf("edit: %w", err)
	}
	_, fields, err := JSONObject("task", data)
	if err != nil {
		return NewTask{}, fmt.Errorf("edit: %w", err)
	}
	replaceSchedule(fields, values)
	for _, name := range names {
		if delete(fields, name); string(values[name]) != "null" {
			fields[name] = values[name]
		}
	}
	merged, err := json.Marshal(fields)
	if err != nil {
		return NewTask{}, fmt.Errorf("edit: %w", err)
	}
	var task NewTask
	if err := task.UnmarshalJSON(merged); err != nil {
		return NewTask{}, err
	}
	task.OnConflict = OnConflictReplace
	return task, task.keepOwner(info.Owner())
}

// keepDue has a definition say when its task is due: a cron schedule says so itself.
func (s *Scheduler) keepDue(ctx context.Context, def *NewTask, info *TaskInfo) error {
	switch {
	case def.Cron != "" || def.Manual || info.NextRun.IsZero():
		return nil
	case def.Every == 0:
		def.At = info.NextRun
		return nil
	}
	now, err := s.askedNow(ctx)
	def.Delay = max(info.NextRun.Sub(now.Time()), time.Millisecond)
	return err
}

// replaceSchedule takes the schedule out of fields in whose place a change puts another, and the time of the next run if the change has one.
func replaceSchedule(fields, change map[string]json.RawMessage) {
	given := func(name string) bool { return change[name] != nil && string(change[name]) != "null" }
	for schedule := range scheduleFields {
		if !given(schedule) {
			continue
		}
		for other, names := range scheduleFields {
			for _, name := range names {
				if other != schedule {
					delete(fields, name)
				}
			}
		}
		delete(fields, "delay")
	}
	if given("delay") {
		delete(fields, "at")
	}
}
