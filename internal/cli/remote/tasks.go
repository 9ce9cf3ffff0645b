package remote

// Tasks: submitting, reading and changing them.

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
)

// parentKey is the key of the run in whose name tasks are submitted.
type parentKey struct{}

// WithParent is a context in which tasks are submitted in the name of a run. The server checks what it says.
func (*Client) WithParent(ctx context.Context, parent string) (context.Context, error) {
	return context.WithValue(ctx, parentKey{}, parent), nil
}

// parentOf is the run of a context; empty if there is none.
func parentOf(ctx context.Context) string {
	parent, _ := ctx.Value(parentKey{}).(string)
	return parent
}

// Submit stores tasks, all or none of them. It is sent once: whether to repeat it depends on whether the tasks have ids.
func (c *Client) Submit(ctx context.Context, tasks ...core.NewTask) ([]core.Submitted, error) {
	if len(tasks) == 0 {
		return nil, nil
	}
	answer, err := send[struct{ Tasks []core.Submitted }](ctx, c, &call{
		method: http.MethodPost, path: []string{"tasks"}, body: map[string]any{"tasks": tasks}, parent: parentOf(ctx),
	})
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
func (c *Client) Task(ctx context.Context, agent, id string) (core.TaskInfo, error) {
	info, err := get[core.TaskInfo](ctx, c, nil, "agents", agent, "tasks", id)
	if err != nil {
		return core.TaskInfo{}, err
	}
	runs, err := get[struct{ Runs []model.TaskRun }](ctx, c, nil, "agents", agent, "tasks", id, "runs")
	info.Runs = runs.Runs
	return info, err
}

// Explain says why a task has not run, or what it is doing.
func (c *Client) Explain(ctx context.Context, agent, id string) (inspect.Explanation, error) {
	return get[inspect.Explanation](ctx, c, nil, "agents", agent, "tasks", id, "explain")
}

// Tasks is a page of a list.
func (c *Client) Tasks(ctx context.Context, l core.List) ([]core.TaskInfo, string, error) {
	path := "tasks"
	if l.Jobs {
		path = "jobs"
	}
	page, err := get[struct {
		Tasks, Jobs []core.TaskInfo
		Next        string `json:"next_cursor"`
	}](ctx, c, queryOf(&l), path)
	return append(page.Tasks, page.Jobs...), page.Next, err
}

// queryOf are the parameters of a list.
func queryOf(l *core.List) url.Values {
	q := url.Values{}
	for name, text := range map[string]string{
		"agent_id": l.Agent, "kind": l.Kind, "key": l.Key, "group": l.Group, "cursor": l.Cursor, "since": timeText(l.Since), "until": timeText(l.Until),
		"status": strings.Join(statuses(l), ","),
	} {
		if text != "" {
			q.Set(name, text)
		}
	}
	if l.Overdue {
		q.Set("overdue", "true")
	}
	if l.Held {
		q.Set("held", "true")
	}
	if l.Limit != 0 {
		q.Set("limit", strconv.Itoa(l.Limit))
	}
	for name, value := range l.Labels {
		q.Add("label", name+"="+value)
	}
	return q
}

// statuses are those of a list.
func statuses(l *core.List) []string {
	var all []string
	for _, s := range l.Status {
		all = append(all, string(s))
	}
	return all
}

// timeText is a time as requests have it; empty for none.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// TimeOrAgo reads a time, or how long ago something was: by the clock of the server, to the second.
func (c *Client) TimeOrAgo(ctx context.Context, field, text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	ago, err := inspect.ParseDuration(text)
	if err != nil || ago < 0 {
		return time.Time{}, &core.InvalidError{Field: field, Reason: `must be a time such as "2026-01-02T15:04:05Z", or how long ago, such as "1d" or "90m", not ` + strconv.Quote(text)}
	}
	var now time.Time
	err = c.exchange(ctx, &call{method: http.MethodGet, path: []string{"presets"}}, func(res *http.Response) error {
		now, err = http.ParseTime(res.Header.Get("Date"))
		return err
	})
	return now.Add(-ago), err
}

// Edit changes fields of a task that waits.
func (c *Client) Edit(ctx context.Context, agent, id string, change json.RawMessage) (core.Submitted, error) {
	_, err := send[struct{}](ctx, c, &call{
		method: http.MethodPatch, path: []string{"agents", agent, "tasks", id}, body: change, parent: parentOf(ctx),
	})
	return core.Submitted{Agent: agent, ID: id, Replaced: true}, err
}

// order gives an order about one task, and returns the task after it.
func (c *Client) order(ctx context.Context, agent, id, verb string, body any) (core.TaskInfo, error) {
	return post[core.TaskInfo](ctx, c, body, "agents", agent, "tasks", id, verb)
}

// RunNow makes a task due now.
func (c *Client) RunNow(ctx context.Context, agent, id string) (time.Time, error) {
	t, err := c.order(ctx, agent, id, "run", nil)
	return t.NextRun, err
}

// Replay makes a task that has failed live again.
func (c *Client) Replay(ctx context.Context, agent, id string) (time.Time, error) {
	t, err := c.order(ctx, agent, id, "replay", nil)
	return t.NextRun, err
}

// Cancel ends a task for good.
func (c *Client) Cancel(ctx context.Context, agent, id string, by core.Order) (core.Status, error) {
	t, err := c.order(ctx, agent, id, "cancel", fields{}.with("reason", by.Reason).with("by", by.By))
	return t.Status, err
}

// Delete forgets a task.
func (c *Client) Delete(ctx context.Context, agent, id string) error {
	_, err := send[struct{}](ctx, c, &call{method: http.MethodDelete, path: []string{"agents", agent, "tasks", id}})
	return err
}

// Bulk carries out one step of a command for the tasks of a list.
func (c *Client) Bulk(ctx context.Context, b operate.Bulk) (operate.BulkStep, error) {
	l := &b.List
	body := fields{}.with("agent_id", l.Agent).with("kind", l.Kind).with("key", l.Key).with("group", l.Group).with("cursor", l.Cursor).
		with("since", timeText(l.Since)).with("until", timeText(l.Until)).with("reason", b.Reason).with("by", b.By)
	if l.Status != nil {
		body["status"] = l.Status
	}
	if l.Labels != nil {
		body["labels"] = l.Labels
	}
	if l.Limit != 0 {
		body["limit"] = l.Limit
	}
	if b.Count != 0 {
		body["count"] = b.Count
	}
	body.mark("all", b.All).mark("overdue", l.Overdue).mark("dry_run", b.DryRun).mark("confirm", b.Confirm)
	return post[operate.BulkStep](ctx, c, body, "tasks", string(b.Do))
}
