package steps

// Steps that are tasks of their own: a run submits them, and goes on when the last of them has ended.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// TasksError says which tasks of a step have not completed.
type TasksError struct {
	Step   string
	Of     int // how many tasks the step has
	Failed []FailedTask
}

// FailedTask is one of them.
type FailedTask struct {
	ID     string
	Status core.Status // empty for one that was deleted
	Error  string
}

// Error names the first of them.
func (e *TasksError) Error() string {
	first := &e.Failed[0]
	return fmt.Sprintf("step %s: %d of %d tasks have not completed: %s is %s: %s", e.Step, len(e.Failed), e.Of, first.ID, first.state(), first.Error)
}

func (f *FailedTask) state() string {
	if f.Status == "" {
		return "deleted"
	}
	return string(f.Status)
}

// All submits tasks of the agent, at most [core.MaxSubmit], and ends the run until the last of them has ended; nothing polls. It returns their
// results in the order of the tasks, which keep their ids, or get one of the run's. If some have not completed it fails with a *[TasksError], which is a
// failed attempt: the next one replays those that have failed, and waits again. The tasks share a group of duly's choice, count as submitted by the
// run, and are bounded as such. Another error is returned by the handler.
func All[T any](ctx context.Context, r *Run, name string, tasks ...core.NewTask) ([]T, error) {
	done, err := r.enter(name)
	if err != nil {
		return nil, err
	}
	if done != nil {
		return decode[[]T](done)
	}
	if tasks, err = r.children(name, tasks); err != nil {
		return nil, err
	}
	results, err := r.awaitTasks(ctx, name, tasks)
	if err != nil {
		return nil, err
	}
	step := Step{Name: name}
	if step.Result, err = json.Marshal(results); err != nil {
		return nil, core.SkipRetry(fmt.Errorf("step %s: %w", name, err))
	}
	r.did(step)
	if err := r.save(ctx, name); err != nil {
		return nil, err
	}
	return decode[[]T](&step)
}

// Each is All with a task of a kind for each input, which is its payload, and with at most `most` of them at a time. All results are in one log: see
// [MaxSteps] for its bounds.
func Each[T, In any](ctx context.Context, r *Run, name, kind string, most int, inputs []In) ([]T, error) {
	if most < 1 {
		return nil, core.SkipRetry(&core.InvalidError{Field: "most", Reason: fmt.Sprintf("must be at least 1, not %d", most)})
	}
	most = min(most, core.MaxSubmit)
	var all []T
	for from := 0; from < len(inputs); from += most {
		var tasks []core.NewTask
		for _, in := range inputs[from:min(from+most, len(inputs))] {
			tasks = append(tasks, core.NewTask{Kind: kind, Payload: in})
		}
		part, err := All[T](ctx, r, fmt.Sprintf("%s/%d", name, from), tasks...)
		if err != nil {
			return nil, err
		}
		all = append(all, part...)
	}
	return all, nil
}

// group is the group of the tasks of a step, the key of the signal of their end, and what their ids begin with. Each occurrence has its own.
func (r *Run) group(name string) string {
	return bounded(fmt.Sprintf("%s/%s/%x", r.info.ID, name, r.info.Occurrence.UnixMilli()))
}

// bounded leaves room behind a name for the number of a task.
func bounded(name string) string {
	const most = core.MaxIDLen - 8
	if len(name) <= most {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	end := "~" + hex.EncodeToString(sum[:8])
	return strings.ToValidUTF8(name[:most-len(end)], "") + end
}

// children are the tasks of a step as they are submitted.
func (r *Run) children(name string, tasks []core.NewTask) ([]core.NewTask, error) {
	refuse := func(format string, args ...any) ([]core.NewTask, error) {
		return nil, core.SkipRetry(&core.InvalidError{Field: "step " + name, Reason: fmt.Sprintf(format, args...)})
	}
	if r.s == nil {
		return refuse("submits tasks: give Begin the scheduler")
	}
	if len(tasks) > core.MaxSubmit {
		return refuse("has %d tasks: the limit is %d", len(tasks), core.MaxSubmit)
	}
	group := r.group(name)
	out := make([]core.NewTask, len(tasks))
	for i, t := range tasks {
		switch {
		case t.Agent != "" && t.Agent != r.info.Agent:
			return refuse("has a task of agent %q: it can wait for those of its own agent alone", t.Agent)
		case t.Callback != "" || t.Group != "":
			return refuse("needs the callback and the group of its tasks for itself")
		case t.UniqueKey != "":
			return refuse("has a task with a unique key: give it an id, or none")
		case t.Every != 0 || t.Cron != "":
			return refuse("has a task that recurs: that never ends")
		}
		t.Agent, t.Group, t.Callback = r.info.Agent, group, "signal-group:"+group
		if t.ID == "" {
			t.ID = fmt.Sprintf("%s.%d", group, i)
		}
		out[i] = t
	}
	return out, nil
}

// How long a run waits until it looks for its tasks by itself: those that are deleted tell of no end.
const (
	firstLook = time.Minute
	lastLook  = time.Hour
)

// awaitTasks submits the tasks if that is not done, and returns their results once all have ended.
func (r *Run) awaitTasks(ctx context.Context, name string, tasks []core.NewTask) ([]json.RawMessage, error) {
	if len(tasks) == 0 {
		return nil, nil
	}
	p := Pause{Name: name, For: ForTasks, Attempt: r.info.Attempt}
	w := r.waited(name, ForTasks)
	if w != nil {
		p.Looks = w.Looks + 1
	}
	if w == nil { // otherwise they are submitted: one that was deleted since does not come back
		if _, err := r.s.Submit(ctx, tasks...); err != nil {
			return nil, fmt.Errorf("step %s: %w", name, err)
		}
	}
	results, failed, live, err := r.results(ctx, tasks)
	if err != nil {
		return nil, fmt.Errorf("step %s: %w", name, err)
	}
	if len(failed) > 0 && w != nil && w.Attempt != r.info.Attempt {
		if live, err = r.replay(ctx, failed); err != nil {
			return nil, fmt.Errorf("step %s: %w", name, err)
		}
	}
	if !live && len(failed) == 0 {
		return results, nil
	}
	// The log says which attempt this was, so that the next one replays what has failed.
	data, err := r.pause(p)
	switch {
	case err != nil:
		return nil, err
	case live:
		return nil, core.Await(core.Signal{Key: r.group(name), Timeout: min(firstLook<<min(p.Looks, 6), lastLook)}, data)
	}
	if err := r.save(ctx, name); err != nil {
		return nil, err
	}
	return nil, &TasksError{Step: name, Of: len(tasks), Failed: failed}
}

// results are those of tasks, in their order, those that have ended in another way, and whether any has not ended.
func (r *Run) results(ctx context.Context, tasks []core.NewTask) (results []json.RawMessage, failed []FailedTask, live bool, err error) {
	if n, err := r.s.Group(ctx, r.info.Agent, tasks[0].Group); err == nil && n.Live > 0 {
		return nil, nil, true, nil
	}
	for i := range tasks {
		id := tasks[i].ID
		t, err := r.s.Task(ctx, r.info.Agent, id)
		switch {
		case errors.Is(err, core.ErrNotFound):
			failed = append(failed, FailedTask{ID: id})
		case err != nil:
			return nil, nil, false, err
		case !t.Status.Finished():
			return nil, nil, true, nil
		case t.Status != core.StatusCompleted:
			failed = append(failed, FailedTask{ID: id, Status: t.Status, Error: t.LastError})
		}
		result := t.Result
		if len(result) == 0 {
			result = json.RawMessage("null")
		}
		results = append(results, result)
	}
	return results, failed, false, nil
}

// replay has the tasks run again that have failed, and reports whether there are any.
func (r *Run) replay(ctx context.Context, failed []FailedTask) (live bool, err error) {
	for _, f := range failed {
		if f.Status != core.StatusFailed {
			continue
		}
		if _, err := r.s.Replay(ctx, r.info.Agent, f.ID); err != nil {
			return false, err
		}
		live = true
	}
	return live, nil
}
