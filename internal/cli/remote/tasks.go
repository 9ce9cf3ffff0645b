package remote

// Tasks: submitting, reading and changing them.

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/operate"
)

// tasks are the calls about single tasks, and lists of them.
type tasks struct{ *connection }

// parentKey is the key of the run in whose name tasks are submitted.
type parentKey struct{}

// WithParent is a context in which tasks are submitted in the name of a run. The server checks what it says.
func (tasks) WithParent(ctx context.Context, parent string) (context.Context, error) {
	return context.WithValue(ctx, parentKey{}, parent), nil
}

// parentOf is the run of a context; empty if there is none.
func parentOf(ctx context.Context) string {
	parent, _ := ctx.Value(parentKey{}).(string)
	return parent
}

// Submit stores tasks, all or none of them. It is sent once: whether to repeat it depends on whether the tasks have ids.
func (c tasks) Submit(ctx context.Context, tasks ...core.NewTask) ([]core.Submitted, error) {
	if len(tasks) == 0 {
		return nil, nil
	}
	answer, err := send(ctx, c.connection, operation.SubmitAll, operation.Submit{Tasks: tasks})
	return answer.Tasks, asOf("Duly-Parent", "parent", err)
}

// asOf gives the field of an error its name in core.
func asOf(header, field string, err error) error {
	if wrong, ok := errors.AsType[*core.InvalidError](err); ok && wrong.Field == header {
		return &core.InvalidError{Field: field, Reason: wrong.Reason}
	}
	return err
}

// Task returns one task with its last runs, which are an answer of their own.
func (c tasks) Task(ctx context.Context, agent, id string) (core.TaskInfo, error) {
	info, err := send(ctx, c.connection, operation.Task, operation.Wait{}, agent, id)
	if err != nil {
		return core.TaskInfo{}, err
	}
	runs, err := send(ctx, c.connection, operation.TaskRuns, operation.None{}, agent, id)
	info.Runs = runs.Runs
	return info, err
}

// Explain says why a task has not run, or what it is doing.
func (c tasks) Explain(ctx context.Context, agent, id string) (inspect.Explanation, error) {
	return send(ctx, c.connection, operation.Explain, operation.None{}, agent, id)
}

// Output returns what the last run of a task has printed.
func (c tasks) Output(ctx context.Context, agent, id string, from inspect.OutputFrom) (inspect.Output, error) {
	return send(ctx, c.connection, operation.TaskOutput, operation.OutputFrom{Run: int64(from.Run), After: from.After}, agent, id)
}

// Tasks is a page of a list.
func (c tasks) Tasks(ctx context.Context, l core.List) ([]core.TaskInfo, string, error) {
	part := operation.Page{Limit: l.Limit, Cursor: l.Cursor}
	var labels []string
	for name, value := range l.Labels {
		labels = append(labels, name+"="+value)
	}
	if l.Jobs {
		page, err := send(ctx, c.connection, operation.ListJobs, operation.JobList{Agent: l.Agent, Kind: l.Kind, Labels: labels, Page: part})
		return page.Jobs, page.Next, err
	}
	var status []string
	for _, s := range l.Status {
		status = append(status, string(s))
	}
	page, err := send(ctx, c.connection, operation.ListTasks, operation.List{
		Agent: l.Agent, Status: strings.Join(status, ","), Kind: l.Kind, Key: l.Key, Group: l.Group, Labels: labels,
		Since: timeText(l.Since), Until: timeText(l.Until), Overdue: l.Overdue, Held: l.Held, Late: l.Late, Asking: l.Asking, Inside: inside(&l), Page: part,
	})
	return page.Tasks, page.Next, err
}

// inside is what a list looks for inside tasks, as requests have it.
func inside(l *core.List) operation.Inside {
	return operation.Inside{Session: l.Session, Text: l.Text, Cause: l.Cause, DueBy: timeText(l.DueBy)}
}

// timeText is a time as requests have it; empty for none.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// TimeOrAgo reads a time, or how long before or after now it is: by the clock of the server, to the second.
func (c tasks) TimeOrAgo(ctx context.Context, field, text string) (time.Time, error) {
	return inspect.ReadTime(field, text, func() (now time.Time, err error) {
		err = c.exchange(ctx, operation.ListPresets.Call, operation.Empty{}, nil, func(res *http.Response) error {
			now, err = http.ParseTime(res.Header.Get("Date"))
			return err
		})
		return now, err
	})
}

// Edit changes fields of a task that waits.
func (c tasks) Edit(ctx context.Context, agent, id string, change json.RawMessage) (core.Submitted, error) {
	_, err := send(ctx, c.connection, operation.Edit, change, agent, id)
	return core.Submitted{Agent: agent, ID: id, Replaced: true}, err
}

// RunNow makes a task due now.
func (c tasks) RunNow(ctx context.Context, agent, id string) (time.Time, error) {
	t, err := send(ctx, c.connection, operation.RunNow, operation.Empty{}, agent, id)
	return t.NextRun, err
}

// ReplayWith makes a task that has failed live again, with another payload unless that is nil.
func (c tasks) ReplayWith(ctx context.Context, agent, id string, payload json.RawMessage) (time.Time, error) {
	t, err := send(ctx, c.connection, operation.Replay, operation.Replayed{Payload: payload}, agent, id)
	return t.NextRun, err
}

// Cancel ends a task for good.
func (c tasks) Cancel(ctx context.Context, agent, id string, by core.Order) (core.Status, error) {
	t, err := send(ctx, c.connection, operation.Cancel, operation.Order{Reason: by.Reason, By: by.By}, agent, id)
	return t.Status, err
}

// Delete forgets a task.
func (c tasks) Delete(ctx context.Context, agent, id string) error {
	_, err := send(ctx, c.connection, operation.Delete, operation.None{}, agent, id)
	return err
}

// Bulk carries out one step of a command for the tasks of a list.
func (c tasks) Bulk(ctx context.Context, b operate.Bulk) (operate.BulkStep, error) {
	l := &b.List
	return send(ctx, c.connection, operation.BulkOf(b.Do), operation.Bulk{
		Agent: l.Agent, Status: l.Status, Kind: l.Kind, Key: l.Key, Group: l.Group, Labels: l.Labels, Since: timeText(l.Since), Until: timeText(l.Until),
		Overdue: l.Overdue, Inside: inside(l), Page: operation.Page{Limit: l.Limit, Cursor: l.Cursor}, All: b.All, DryRun: b.DryRun, Confirm: b.Confirm, Count: b.Count,
		Order: operation.Order{Reason: b.Reason, By: b.By},
	})
}
