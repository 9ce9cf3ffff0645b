package dulyfile

// The tasks of the file.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/schedule/phrase"
)

// Task is a task of the file.
// at is where it is in the file, for errors that show later.
type Task struct {
	at     place
	task   core.NewTask
	tried  core.TaskInfo // what it is like when it is new
	stored string        // who owns it in the store
}

// readTasks reads the tasks.
func (f *File) readTasks(p place) error {
	if p.empty() {
		return nil
	}
	elements, err := p.list()
	if err != nil {
		return err
	}
	for _, e := range elements {
		t := Task{at: e}
		if err := t.read(); err != nil {
			return err
		}
		if err := t.lasting(); err != nil {
			return err
		}
		t.task.Agent = cmp.Or(t.task.Agent, f.Defaults.Agent)
		// An id is what makes a second start find the task again.
		switch {
		case t.task.ID == "" && t.task.UniqueKey == "":
			return e.fail("id is required: without it every start would add another task")
		case t.task.Preset == "" && t.task.Kind == "":
			return e.fail("kind is required, or a preset")
		case t.task.Preset == "" && !f.Handles(t.task.Kind):
			return e.of("kind").fail("kind %q has no handler in this file; handlers: %s", t.task.Kind, f.KindNames())
		}
		f.Tasks = append(f.Tasks, t)
	}
	return nil
}

// tryTasks submits the tasks to a store that is thrown away, so that an invalid task is found, with its line, before
// anything is written.
// Levels, zones and bounds are core's rules, and need not be known here.
func (f *File) tryTasks(ctx context.Context) error {
	trial, err := f.trial()
	if err != nil {
		return err
	}
	for i := range f.Tasks {
		t := &f.Tasks[i]
		placed, err := trial.Submit(ctx, t.task)
		if err != nil {
			return t.refused(err)
		}
		if !placed[0].Created {
			return t.at.of("id").fail("another task of this agent above has the same id")
		}
		if t.tried, err = trial.Task(ctx, placed[0].Agent, placed[0].ID); err != nil {
			return err
		}
		if !f.Handles(t.tried.Kind) { // the kind comes from its preset
			return t.at.of("preset").fail("kind %q has no handler in this file; handlers: %s", t.tried.Kind, f.KindNames())
		}
	}
	return tryHooks(ctx, f)
}

// trial is a scheduler with the kinds of the file, on a store that is thrown away.
func (f *File) trial() (*core.Scheduler, error) {
	return core.New(memstore.New(memstore.Config{}), core.Config{Kinds: f.Settings().Kinds, Zone: f.Defaults.Zone, Callbacks: f.Settings().Callbacks})
}

// read turns the YAML of a task into the JSON that is submitted elsewhere, and reads that.
// JSON is what core reads strictly, so the file has the same names and errors as HTTP.
func (t *Task) read() error {
	entries, err := t.at.entries()
	if err != nil {
		return err
	}
	fields := map[string]json.RawMessage{}
	for _, e := range entries {
		name := e.key
		if name == "agent" {
			name = "agent_id"
		}
		if _, twice := fields[name]; twice {
			return e.at.fail("is given twice")
		}
		if fields[name], err = taskField(name, e.value); err != nil {
			return e.value.fail("cannot be converted to JSON: %w", err)
		}
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return t.at.fail("cannot be converted to JSON: %w", err)
	}
	if err := json.Unmarshal(data, &t.task); err != nil {
		return t.refused(err)
	}
	return nil
}

// lasting refuses a phrase that names a day: each start reads the file again, by when the phrase would mean another day, or one that has passed.
func (t *Task) lasting() error {
	long := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // before any day that a file names
	// What else is wrong with it is found when the task is tried.
	if said, _ := phrase.Parse(t.task.When, long, time.UTC); said.At.IsZero() {
		return nil
	}
	return t.at.of("when").fail("names one day, and the file is read again at each start: write the time as at, such as 2026-01-02T15:04:05Z")
}

// taskField is the JSON of one field. Strings, times and durations are taken
// literally, so that they need no quotes.
func taskField(name string, value place) ([]byte, error) {
	n := value.value()
	var v any = n.Value
	switch name {
	// Their JSON type matters: YAML decides whether they are numbers, strings or arrays.
	case "payload", "info", "tags", "level", "max_attempts", "pause_after_failures", "urgent", "paused", "manual":
		v = nil
	}
	if v == nil || n.Kind != yaml.ScalarNode || value.empty() {
		if err := n.Decode(&v); err != nil {
			return nil, err
		}
	}
	return json.Marshal(v)
}

// refused puts the place of a field in front of what is wrong with it.
// The field is looked for under its name in the file, too.
func (t *Task) refused(err error) error {
	inv, ok := errors.AsType[*core.InvalidError](err)
	if core.CodeOf(err) == core.CodeDisabled {
		return t.at.of("kind").fail("kind %q is disabled in this file", t.task.Kind)
	}
	if !ok {
		return t.at.fail("%w", err)
	}
	field := inv.Field
	at := t.at.of(field)
	if at == t.at && field == "agent_id" {
		field = "agent"
		at = t.at.of(field)
	}
	if at == t.at {
		return at.fail("%s %s", field, inv.Reason)
	}
	return at.fail("%s", inv.Reason)
}
