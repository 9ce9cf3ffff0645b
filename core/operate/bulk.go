package operate

// Commands for many tasks at once: those of a list, page by page, each task by itself.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// BulkVerb is the command for each task of a list.
type BulkVerb string

// The verbs of a bulk command. Each is the command of the same name for a single task.
const (
	BulkReplay BulkVerb = "replay" // of dead letters: no status, or failed
	BulkCancel BulkVerb = "cancel" // of live tasks
	BulkDelete BulkVerb = "delete"
	BulkRun    BulkVerb = "run"    // of tasks that wait
	BulkPause  BulkVerb = "pause"  // of live tasks: each by itself
	BulkResume BulkVerb = "resume" // of live tasks
)

// bulkStatuses are the statuses of the tasks that a verb applies to; a list without a status gets these.
var bulkStatuses = map[BulkVerb][]store.Status{
	BulkReplay: {store.StatusFailed},
	BulkCancel: {store.StatusWaiting, store.StatusInProgress},
	BulkDelete: {store.StatusWaiting, store.StatusInProgress, store.StatusCompleted, store.StatusFailed, store.StatusCancelled},
	BulkRun:    {store.StatusWaiting},
	BulkPause:  {store.StatusWaiting, store.StatusInProgress},
	BulkResume: {store.StatusWaiting, store.StatusInProgress},
}

// Bulk is a command for the tasks of a list.
type Bulk struct {
	Do   BulkVerb
	List inspect.List // which tasks: its Limit is that of a step, its Cursor where the step begins
	// All says that every task is meant. Without it a list without a filter is refused, as the filter may have been lost by mistake.
	All bool
	// By and Reason of a cancel and of a pause.
	model.Order
	DryRun bool // change nothing, and only count
	// Confirm changes all tasks that the step matches; Count does so only if they are as many as a dry run of the step has counted.
	Confirm bool
	Count   int
}

// BulkStep is what one step of a bulk command did.
type BulkStep struct {
	Matched int            `json:"matched"`           // tasks of the list in this step
	Changed int            `json:"changed"`           // of these, how many were changed
	Refused []BulkRefusal  `json:"refused,omitempty"` // the first of those that were not, as they had changed meanwhile or may not be changed
	Left    int            `json:"left,omitempty"`    // how many more were not
	Tasks   []TaskIdentity `json:"-"`                 // those that matched
	Next    string         `json:"next_cursor"`       // where the next step begins; empty after the last one
}

// TaskIdentity names a task.
type TaskIdentity struct{ Agent, ID string }

// BulkRefusal is a task that was not changed.
type BulkRefusal struct {
	Agent string     `json:"agent_id"`
	ID    string     `json:"id"`
	Code  model.Code `json:"code"`
	Error string     `json:"error"`
}

// Bounds of a step: how many commands are under way at once, and how many refusals it names.
const (
	bulkAtOnce   = 8
	mostRefusals = 10
)

// Bulk carries out one step of a command for the tasks of a list: a page of them, each task by itself, as the command of that name does it. Any process
// can continue where a step has ended, and a repeated step changes only tasks that have come to match meanwhile.
// A task that has changed since it was listed, or that may not be changed, is among the refused ones and does not affect the others. An error of
// the store ends the step, which may have changed some tasks then.
func (s *Desk) Bulk(ctx context.Context, b Bulk) (BulkStep, error) {
	if err := b.check(); err != nil {
		return BulkStep{}, err
	}
	tasks, next, err := s.view.Tasks(ctx, b.List)
	if err != nil {
		return BulkStep{}, err
	}
	step := BulkStep{Next: next}
	for i := range tasks {
		if b.Do.changes(&tasks[i]) {
			step.Tasks = append(step.Tasks, TaskIdentity{tasks[i].Agent, tasks[i].ID})
		}
	}
	if step.Matched = len(step.Tasks); b.DryRun {
		return step, nil
	}
	if err := b.confirmed(step.Matched); err != nil {
		return BulkStep{}, err
	}
	return step, s.bulk(ctx, &b, &step)
}

// confirmed refuses a step whose caller does not know how many tasks it changes.
func (b *Bulk) confirmed(matched int) error {
	switch {
	case b.Confirm || b.Count > 0 && b.Count == matched:
		return nil
	case b.Count > 0:
		return fmt.Errorf("%w: count says %d, and %d match", model.ErrCount, b.Count, matched)
	default:
		return check.Invalid("confirm", "must be true, or count the number of tasks: this step would %s %d", b.Do, matched)
	}
}

// changes reports whether the command would change a task: one that is paused by itself moves to a later place in its agent's list, and is found there again.
func (v BulkVerb) changes(t *model.TaskInfo) bool {
	paused := slices.ContainsFunc(t.Pauses, func(p model.PauseInfo) bool { return p.Target.ID != "" })
	return (v != BulkPause || !paused) && (v != BulkResume || paused)
}

// check refuses a command that does not fit its list, before the store is called.
func (b *Bulk) check() error {
	statuses, known := bulkStatuses[b.Do]
	if !known {
		return check.Invalid("do", "must be replay, cancel, delete, run, pause or resume, not %q", check.Clip(string(b.Do)))
	}
	if err := inspect.CheckStatuses(b.List.Status); err != nil {
		return err
	}
	for _, s := range b.List.Status {
		if !store.Among(s, statuses) {
			return check.Invalid("status", "must not be %s: there is nothing to %s of such a task", s, b.Do)
		}
	}
	switch {
	case b.Count < 0:
		return check.Invalid("count", "must not be negative")
	case b.Count > 0 && b.Confirm:
		return check.Invalid("count", "must be left out with confirm")
	case b.All && b.List.Narrows():
		return check.Invalid("all", "must be left out beside a choice of tasks")
	case !b.All && !b.List.Narrows():
		return check.Invalid("all", "must be true if every task is meant: otherwise say which, by agent_id, status, kind, key, group, labels, since, until or overdue")
	case b.List.Brief:
		return check.Invalid("brief", "is for lists that are read")
	case b.List.Status != nil, b.List.Overdue && store.Among(store.StatusWaiting, statuses):
	case b.Do == BulkDelete && b.List.Agent == "":
		return check.Invalid("status", "must say which tasks of all agents are to be deleted")
	default:
		b.List.Status = statuses
	}
	if err := check.ValidText("reason", b.Reason, check.MaxErrorLen); err != nil {
		return err
	}
	return check.ValidText("by", b.By, check.MaxTextLen)
}

// bulk carries out the command for each task of a step.
func (s *Desk) bulk(ctx context.Context, b *Bulk, step *BulkStep) error {
	done, err := base.Take(ctx)
	if err != nil {
		return err
	}
	defer done()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	slots, refusals := make(chan struct{}, bulkAtOnce), make([]error, len(step.Tasks))
	var under sync.WaitGroup
	for i, t := range step.Tasks {
		slots <- struct{}{}
		under.Go(func() {
			defer func() { <-slots }()
			if refusals[i] = context.Cause(ctx); refusals[i] != nil {
				return
			}
			if refusals[i] = s.bulkOne(ctx, b, t); refusals[i] != nil && !refusesOne(refusals[i]) {
				stop(fmt.Errorf("%s task %s of agent %s: %w", b.Do, t.ID, t.Agent, refusals[i]))
			}
		})
	}
	under.Wait()
	for i, err := range refusals {
		switch {
		case err == nil:
			step.Changed++
		case len(step.Refused) < mostRefusals:
			t := step.Tasks[i]
			step.Refused = append(step.Refused, BulkRefusal{Agent: t.Agent, ID: t.ID, Code: model.CodeOf(err), Error: err.Error()})
		default:
			step.Left++
		}
	}
	return context.Cause(ctx)
}

// refusesOne reports whether an error is about one task alone.
func refusesOne(err error) bool {
	switch model.CodeOf(err) {
	case model.CodeNotFound, model.CodeConflict, model.CodeInvalid, model.CodeForbidden:
		return true
	default:
		return errors.Is(err, store.ErrChanged)
	}
}

// bulkOne carries out the command for one task.
func (s *Desk) bulkOne(ctx context.Context, b *Bulk, t TaskIdentity) (err error) {
	switch b.Do {
	case BulkReplay:
		_, err = s.Replay(ctx, t.Agent, t.ID)
	case BulkCancel:
		_, err = s.Cancel(ctx, t.Agent, t.ID, b.Order)
	case BulkDelete:
		err = s.Delete(ctx, t.Agent, t.ID)
	case BulkRun:
		_, err = s.RunNow(ctx, t.Agent, t.ID)
	case BulkPause:
		err = s.Pause(ctx, store.Target{Agent: t.Agent, ID: t.ID}, model.Pause{By: b.By, Reason: b.Reason})
	case BulkResume:
		err = s.Resume(ctx, store.Target{Agent: t.Agent, ID: t.ID})
	}
	return err
}
