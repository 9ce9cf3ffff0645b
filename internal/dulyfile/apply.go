package dulyfile

// Apply: how the tasks of the file get into a store.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Applied is how many of the tasks of the file were created and changed, how many others were deleted, and how many were left to the owner
// that they have.
// They are shown at a start, and by duly apply.
type Applied struct{ Created, Changed, Deleted, Kept int }

// Action is what an apply does with a task.
type Action string

// The actions. Their names are those of the output of duly apply.
const (
	ActionCreate    Action = "create"
	ActionUpdate    Action = "update"
	ActionDelete    Action = "delete"
	ActionUnchanged Action = "unchanged"
	ActionConflict  Action = "conflict" // it belongs to another owner, and is left unchanged
)

// Change is what an apply did about one task, or would do.
type Change struct {
	Action Action `json:"action"`
	Agent  string `json:"agent_id"`
	ID     string `json:"id"`
	Owner  string `json:"owner,omitempty"` // its owner in the store after the apply, if any
}

// ApplyOptions say how to apply a file. Every zero is what a start does.
type ApplyOptions struct {
	// DryRun reads the store, and changes nothing.
	DryRun bool
	// Prune deletes tasks of the file's owner that are not in the file.
	Prune bool
	// Adopt takes over tasks that belong to other owners, in place of leaving them.
	Adopt bool
	// Each is called for every task after its change; may be nil.
	Each func(Change)
}

// Apply is ApplyWith as each start does it.
func (f *File) Apply(ctx context.Context, s *core.Scheduler) (Applied, error) {
	return f.ApplyWith(ctx, s, ApplyOptions{})
}

// ApplyWith sets the profiles of the file, and makes the tasks of the store those of it. One that exists and is live gets the definition of the
// file, if it has another, and keeps its history; one that is finished stays finished, so that a start does not run it again. A task that says
// itself what to do on a conflict is submitted as it says. If the file has an owner its tasks belong to that; else each keeps the one it has.
//
// It may be cut off anywhere: the same call again completes it.
func (f *File) ApplyWith(ctx context.Context, s *core.Scheduler, o ApplyOptions) (Applied, error) {
	if o.Prune && f.Owner == "" {
		return Applied{}, errNoOwner
	}
	a := &applying{ApplyOptions: o, s: s, owner: f.Owner}
	// Before the tasks, which are planned by them.
	if !o.DryRun {
		if err := f.applyAgents(ctx, s); err != nil {
			return a.done, err
		}
	}
	// In batches, as one submit is bounded. What an earlier batch has
	// changed stays if a later one fails.
	for first := 0; first < len(f.Tasks); first += core.MaxSubmit {
		if err := a.batch(ctx, f.Tasks[first:min(first+core.MaxSubmit, len(f.Tasks))]); err != nil {
			return a.done, err
		}
	}
	if o.Prune {
		return a.done, a.prune(ctx, f.Tasks)
	}
	return a.done, nil
}

// applying is one apply under way.
type applying struct {
	ApplyOptions

	s     *core.Scheduler
	owner string
	done  Applied
}

// tell counts what was done about a task.
func (a *applying) tell(action Action, agent, id, owner string) {
	switch action {
	case ActionUnchanged:
	case ActionCreate:
		a.done.Created++
	case ActionUpdate:
		a.done.Changed++
	case ActionDelete:
		a.done.Deleted++
	case ActionConflict:
		a.done.Kept++
	}
	if a.Each != nil {
		a.Each(Change{Action: action, Agent: agent, ID: id, Owner: owner})
	}
}

// batch applies as many tasks as one submit takes.
func (a *applying) batch(ctx context.Context, tasks []Task) error {
	fresh := make([]Task, 0, len(tasks))
	for i := range tasks {
		t := tasks[i].ownedBy(a.owner)
		// It would replace any existing task, so its owner has to be known first.
		if t.task.OnConflict == core.OnConflictReplace {
			mine, err := a.mine(ctx, &t)
			if err != nil {
				return err
			}
			if !mine {
				continue
			}
		}
		fresh = append(fresh, t)
	}
	there, err := a.submit(ctx, fresh)
	if err != nil {
		return err
	}
	changed, err := a.differing(ctx, there)
	if err != nil {
		return err
	}
	_, err = a.submit(ctx, changed)
	return err
}

// submit submits tasks and returns those that exist and are live, to be compared. Tasks that are too
// large to be stored together are submitted by halves.
func (a *applying) submit(ctx context.Context, tasks []Task) ([]Task, error) {
	batch := make([]core.NewTask, len(tasks))
	for i := range tasks {
		batch[i] = tasks[i].task
	}
	placed, err := a.place(ctx, batch)
	// The number of bytes is what a batch may fail for; a single task that is too large fails.
	if invalid, ok := errors.AsType[*core.InvalidError](err); ok && invalid.Field == "tasks" && len(tasks) > 1 {
		half := len(tasks) / 2
		first, err1 := a.submit(ctx, tasks[:half])
		if err1 != nil {
			return first, err1
		}
		rest, err2 := a.submit(ctx, tasks[half:])
		return append(first, rest...), err2
	}
	var there []Task
	for i := range placed {
		p := &placed[i]
		switch {
		case p.Created:
			a.tell(ActionCreate, p.Agent, p.ID, a.owner)
		case p.Replaced:
			a.tell(ActionUpdate, p.Agent, p.ID, cmp.Or(a.owner, tasks[i].stored))
		case tasks[i].task.OnConflict == "" && !p.Status.Finished():
			there = append(there, tasks[i])
		default:
			a.tell(ActionUnchanged, p.Agent, p.ID, "")
		}
	}
	return there, err
}

// place stores tasks or, on a dry run, says what would be stored.
func (a *applying) place(ctx context.Context, batch []core.NewTask) ([]core.Submitted, error) {
	if !a.DryRun {
		return a.s.Submit(ctx, batch...)
	}
	placed, err := a.s.Existing(ctx, batch...)
	for i := range placed {
		p := &placed[i]
		switch p.Created = p.Status == ""; {
		case p.Created:
		case batch[i].OnConflict == core.OnConflictFail:
			return nil, &core.ConflictError{Agent: p.Agent, ID: p.ID, Reason: "already exists"}
		case batch[i].OnConflict == core.OnConflictReplace:
			p.Replaced = true
		}
	}
	return placed, err
}

// differing returns those of some tasks that exist with another definition than the
// file's, as tasks that replace them.
func (a *applying) differing(ctx context.Context, tasks []Task) ([]Task, error) {
	var changed []Task
	for i := range tasks {
		t := tasks[i]
		there, err := a.s.Task(ctx, t.tried.Agent, t.tried.ID)
		// Deleted since a moment ago: the next start creates it.
		if core.CodeOf(err) == core.CodeNotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !a.takes(&t, &there) {
			continue
		}
		same, err := t.defines(&there)
		if err != nil {
			return nil, err
		}
		if same || there.Status.Finished() {
			a.tell(ActionUnchanged, there.Agent, there.ID, there.Owner())
			continue
		}
		t.task.OnConflict = core.OnConflictReplace
		changed = append(changed, t)
	}
	return changed, nil
}

// defines reports whether a task is as the file has it. A delay counts from when the task was submitted first: it is not
// compared, else each start would put the task off.
// The comparison is by JSON, so that a new field of a task is compared without a change here.
func (t *Task) defines(there *core.TaskInfo) (bool, error) {
	// Until it has run its time is the one that it was submitted with; one that had passed then was put to that moment.
	fresh := there.Status == core.StatusWaiting && there.Crashes == 0 && there.RunCount == 0
	at := moment.Of(t.task.At).Time() // as the store keeps it
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
