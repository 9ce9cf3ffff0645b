package operate

// Edit: some fields of a task that waits, changed as JSON has them; all others stay, its history and its next run too.

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Fields of a task that say when it runs: each group excludes the others, so that a field that is set replaces those of the others.
var scheduleFields = map[string][]string{
	"cron":   {"cron", "zone", "day_match", "gap"},
	"every":  {"every", "from"},
	"manual": {"manual"},
	"at":     {"at"},
	"when":   {"when"},
}

// notEdited are fields of a submit that are not part of what a task is.
var notEdited = []string{"agent_id", "id", "unique_key", "on_conflict", "preset", "paused", "paused_reason"}

// Edit changes fields of a task that waits: change is a JSON object of fields as a submit has them, and null takes one away. All others stay
// unchanged, as do its history and, unless the change says when the task runs, its next run, which may move within the task's jitter. A schedule
// replaces the previous one. If the task has changed meanwhile, the change is made to its new state.
//
// It fails with an *[store.InvalidError] that names the field, with ErrNotFound if there is no such task, and with a *[store.ConflictError] if it runs, has
// ended, or is an activity task.
func (s *Desk) Edit(ctx context.Context, agent, id string, change json.RawMessage) (out model.Submitted, err error) {
	names, values, err := check.JSONObject("change", change)
	if err != nil {
		return model.Submitted{}, err
	}
	if len(names) == 0 {
		return model.Submitted{}, check.Invalid("change", "has no field")
	}
	for _, name := range names {
		switch {
		case slices.Contains(notEdited, name):
			return model.Submitted{}, check.Invalid(name, "cannot be edited")
		case !(*model.NewTask)(nil).IsField(name): // whether it is null or not
			return model.Submitted{}, check.NotOfTask(name)
		}
	}
	err = s.asRead(ctx, agent, id, func(t *store.Stored) error {
		task, err := s.edited(ctx, t, names, values)
		if err != nil {
			return err
		}
		all, err := s.engine.Submit(context.WithValue(ctx, SeenKey{}, t.Version), task)
		if err == nil {
			out = all[0]
		}
		return err
	})
	return out, err
}

// SeenKey is the context key of the version that a task must still have when it is replaced.
type SeenKey struct{}

// Unseen reports whether a task has changed since the caller that replaces it read it.
func Unseen(ctx context.Context, t *store.Stored) bool {
	seen, is := ctx.Value(SeenKey{}).(string)
	return is && seen != t.Version
}

// edited is the definition of a task with a change applied.
func (s *Desk) edited(ctx context.Context, t *store.Stored, names []string, values map[string]json.RawMessage) (model.NewTask, error) {
	info := codec.Inform(t)
	switch {
	case t.Status == store.StatusInProgress:
		return model.NewTask{}, &store.ConflictError{Agent: t.Agent, ID: t.ID, Reason: "is running: edit it when its run has ended"}
	case t.Status.Finished():
		return model.NewTask{}, &store.ConflictError{Agent: t.Agent, ID: t.ID, Reason: fmt.Sprintf("is %s: submit it again", t.Status)}
	case info.Schedule == store.ScheduleActivity:
		return model.NewTask{}, &store.ConflictError{Agent: t.Agent, ID: t.ID, Reason: "is an activity task: what is noticed next says what it is"}
	}
	def := info.Definition()
	if err := s.keepDue(ctx, &def, &info); err != nil {
		return model.NewTask{}, err
	}
	data, err := def.MarshalJSON()
	if err != nil {
		return model.NewTask{}, fmt.Errorf("edit: %w", err)
	}
	_, fields, err := check.JSONObject("task", data)
	if err != nil {
		return model.NewTask{}, fmt.Errorf("edit: %w", err)
	}
	replaceSchedule(fields, values)
	for _, name := range names {
		if delete(fields, name); string(values[name]) != "null" {
			fields[name] = values[name]
		}
	}
	merged, err := json.Marshal(fields)
	if err != nil {
		return model.NewTask{}, fmt.Errorf("edit: %w", err)
	}
	var task model.NewTask
	if err := task.UnmarshalJSON(merged); err != nil {
		return model.NewTask{}, err
	}
	task.OnConflict = model.OnConflictReplace
	return task, task.KeepOwner(info.Owner())
}

// keepDue sets when the task of a definition is due: a cron schedule says so itself.
func (s *Desk) keepDue(ctx context.Context, def *model.NewTask, info *model.TaskInfo) error {
	switch {
	case def.Cron != "" || def.Manual || info.NextRun.IsZero():
		return nil
	case def.Every == 0:
		def.At = info.NextRun
		return nil
	}
	now, err := s.base.AskedNow(ctx)
	def.Delay = max(info.NextRun.Sub(now.Time()), time.Millisecond)
	return err
}

// replaceSchedule removes the schedule from fields if the change has another, and the time of the next run if the change has one.
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
