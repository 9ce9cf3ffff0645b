package dulyfile

// Owners: who owns the tasks of the file, and what to do with those that have left it.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
)

// errNoOwner says what a prune needs.
var errNoOwner = errors.New("prune needs an owner, as it deletes the tasks that this owner has declared and that left the file: give --owner, or owner: in the file")

// readOwner reads the key owner.
func (f *File) readOwner(p place) error {
	if err := text(&f.Owner)(p); err != nil || p.empty() {
		return err
	}
	if invalid, ok := errors.AsType[*core.InvalidError](model.CheckOwner(f.Owner)); ok {
		return p.fail("%s", invalid.Reason)
	}
	return nil
}

// ownedBy sets an owner on the task, both in what is submitted and in what is compared; without an owner the task is unchanged.
func (t *Task) ownedBy(owner string) Task {
	owned := *t
	if owner != "" {
		owned.task.OwnedBy(owner) // which leaves the labels of t as they are
		tried := t.tried.Definition()
		tried.OwnedBy(owner)
		owned.tried.Labels = tried.Labels
	}
	return owned
}

// takes reports whether a task of the store is for this file to change, and tells if not. One that has an owner keeps it, unless the file has
// another and takes it over.
func (a *applying) takes(t *Task, there *core.TaskInfo) bool {
	t.stored = there.Owner()
	switch {
	case t.stored == "" || t.stored == a.owner || a.owner != "" && a.Adopt:
		return true
	case a.owner == "": // a start without the owner that duly apply was given
		*t = t.ownedBy(t.stored)
		return true
	default:
		a.tell(ActionConflict, there.Agent, there.ID, t.stored)
		return false
	}
}

// mine reports whether a task that replaces what exists may do so.
func (a *applying) mine(ctx context.Context, t *Task) (bool, error) {
	there, err := a.s.Task(ctx, t.tried.Agent, t.tried.ID)
	if core.CodeOf(err) == core.CodeNotFound {
		return true, nil
	}
	return err == nil && a.takes(t, &there), err
}

// LogConflicts is an Each for starts, which have no answer to show: it warns of tasks that other owners have.
func LogConflicts(ctx context.Context, logger *slog.Logger) func(Change) {
	return func(c Change) {
		if c.Action == ActionConflict {
			logger.WarnContext(ctx, "a task of the file belongs to another owner, and stays as it is", slog.String("agent", c.Agent), slog.String("task", c.ID),
				slog.String("owner", c.Owner), slog.String("todo", "remove it from one of the files, or take it over with duly apply --adopt"))
		}
	}
}

// prunePage is how many tasks are looked for in one step. They are deleted before the next step, so that little time passes between
// the look at whose a task is, and its end.
const prunePage = 100

// prune deletes the tasks of the owner that are not in the file: those that wait or run, and those that have failed, as a replay would run
// them again. A task that runs loses its lease, as with any delete. What has completed or was cancelled stays until its retention ends.
func (a *applying) prune(ctx context.Context, tasks []Task) error {
	declared := make(map[operate.TaskIdentity]bool, len(tasks))
	for i := range tasks {
		declared[operate.TaskIdentity{Agent: tasks[i].tried.Agent, ID: tasks[i].tried.ID}] = true
	}
	for _, status := range [][]core.Status{{core.StatusWaiting, core.StatusInProgress}, {core.StatusFailed}} {
		for cursor, more := "", true; more; more = cursor != "" {
			page, next, err := a.s.Tasks(ctx, core.List{Status: status, Labels: map[string]string{model.LabelOwner: a.owner}, Limit: prunePage, Cursor: cursor})
			if err != nil {
				return fmt.Errorf("look for tasks of owner %q: %w", a.owner, err)
			}
			if err := a.removeAll(ctx, page, declared); err != nil {
				return err
			}
			cursor = next
		}
	}
	return nil
}

// removeAll deletes those of some tasks that are not declared.
func (a *applying) removeAll(ctx context.Context, tasks []core.TaskInfo, declared map[operate.TaskIdentity]bool) error {
	for i := range tasks {
		if t := &tasks[i]; !declared[operate.TaskIdentity{Agent: t.Agent, ID: t.ID}] {
			if err := a.remove(ctx, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove deletes one task. It is no failure if another client has deleted it meanwhile.
func (a *applying) remove(ctx context.Context, t *core.TaskInfo) error {
	if !a.DryRun {
		err := a.s.Delete(ctx, t.Agent, t.ID)
		if core.CodeOf(err) == core.CodeNotFound {
			return nil
		}
		if err != nil {
			return fmt.Errorf("delete task %q of agent %q, which left the file: %w", t.ID, t.Agent, err)
		}
	}
	a.tell(ActionDelete, t.Agent, t.ID, t.Owner())
	return nil
}
