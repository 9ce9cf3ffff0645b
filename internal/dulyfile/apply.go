package dulyfile

// Apply: how the tasks of the file get into a store.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Applied is how many of the tasks of the file were created, and changed.
// They are shown at a start, and by duly apply.
type Applied struct{ Created, Changed int }

// Apply sets the profiles of the file, and makes the tasks of the store those of it. One that exists and is live gets the definition of the file,
// if it has another, and keeps its history; one that is finished stays finished, so that a start does not run it again. A
// task that says itself what to do on a conflict is submitted as it says.
func (f *File) Apply(ctx context.Context, s *core.Scheduler) (Applied, error) {
	var done Applied
	// Before the tasks, which are planned by them.
	if err := f.applyAgents(ctx, s); err != nil {
		return done, err
	}
	// In batches, as one submit is bounded. What an earlier batch has
	// changed stays if a later one fails.
	for first := 0; first < len(f.Tasks); first += core.MaxSubmit {
		tasks := f.Tasks[first:min(first+core.MaxSubmit, len(f.Tasks))]
		there, err := done.submit(ctx, s, tasks)
		if err != nil {
			return done, err
		}
		changed, err := differing(ctx, s, there)
		if err != nil {
			return done, err
		}
		if _, err := done.submit(ctx, s, changed); err != nil {
			return done, err
		}
	}
	return done, nil
}

// submit submits tasks and returns those that exist and are live, to be compared. Tasks that are too
// large to be stored together are submitted by halves.
func (a *Applied) submit(ctx context.Context, s *core.Scheduler, tasks []Task) ([]Task, error) {
	batch := make([]core.NewTask, len(tasks))
	for i := range tasks {
		batch[i] = tasks[i].task
	}
	placed, err := s.Submit(ctx, batch...)
	// The number of bytes is what a batch may fail for; a single task that is too large fails.
	if invalid, ok := errors.AsType[*core.InvalidError](err); ok && invalid.Field == "tasks" && len(tasks) > 1 {
		half := len(tasks) / 2
		first, err1 := a.submit(ctx, s, tasks[:half])
		if err1 != nil {
			return first, err1
		}
		rest, err2 := a.submit(ctx, s, tasks[half:])
		return append(first, rest...), err2
	}
	var there []Task
	for i := range placed {
		switch {
		case placed[i].Created:
			a.Created++
		case placed[i].Replaced:
			a.Changed++
		case tasks[i].task.OnConflict == "" && !placed[i].Status.Finished():
			there = append(there, tasks[i])
		}
	}
	return there, err
}

// differing returns those of some tasks that exist with another definition than that
// of the file, as tasks that replace them.
func differing(ctx context.Context, s *core.Scheduler, tasks []Task) ([]Task, error) {
	var changed []Task
	for i := range tasks {
		t := tasks[i]
		there, err := s.Task(ctx, t.tried.Agent, t.tried.ID)
		// Deleted since a moment ago: the next start creates it.
		if core.CodeOf(err) == core.CodeNotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		same, err := t.defines(&there)
		if err != nil {
			return nil, err
		}
		if !same && !there.Status.Finished() {
			t.task.OnConflict = core.OnConflictReplace
			changed = append(changed, t)
		}
	}
	return changed, nil
}

// defines reports whether a task is as the file has it. A delay counts from when the task was submitted first: it is not
// compared, else each start would put the task off.
// The comparison is by JSON, so that a new field of a task is compared without a change here.
func (t *Task) defines(there *core.TaskInfo) (bool, error) {
	// Until it has run its time is the one that it was submitted with; one that had passed then was put to that moment.
	fresh := there.Status == core.StatusWaiting && there.Crashes == 0 && there.RunCount == 0
	at := store.MillisOf(t.task.At).Time() // as the store keeps it
	passed := t.tried.Due.After(at) && !there.Due.After(t.tried.Due) && !there.Due.Before(at)
	if !t.task.At.IsZero() && fresh && !t.tried.Due.Equal(there.Due) && !passed {
		return false, nil
	}
	want, err := json.Marshal(t.tried.Definition())
	if err != nil {
		return false, err
	}
	have, err := json.Marshal(there.Definition())
	return bytes.Equal(want, have), err
}
