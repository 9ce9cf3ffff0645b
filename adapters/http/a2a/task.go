package a2a

// A task as the protocol shows it.

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// task is a task in both versions. Kind is that of 0.3, which names the kind of each object.
type task struct {
	Kind      string     `json:"kind,omitempty"`
	ID        string     `json:"id"`
	Context   string     `json:"contextId"`
	Status    status     `json:"status"`
	Artifacts []artifact `json:"artifacts,omitempty"`
}

// status is the state of a task, since when, and why.
type status struct {
	State   string   `json:"state"`
	Message *message `json:"message,omitempty"`
	Time    string   `json:"timestamp,omitempty"`
}

// message is a text of the agent about a task.
type message struct {
	Kind    string `json:"kind,omitempty"`
	ID      string `json:"messageId"`
	Context string `json:"contextId,omitempty"`
	Task    string `json:"taskId,omitempty"`
	Role    string `json:"role"`
	Parts   []part `json:"parts"`
}

// artifact is the result of a task.
type artifact struct {
	ID    string `json:"artifactId"`
	Name  string `json:"name"`
	Parts []part `json:"parts"`
}

// part is a text, or an object.
type part struct {
	Kind string          `json:"kind,omitempty"`
	Text *string         `json:"text,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
}

// state is that of a task, as 0.3 names it.
type state string

// The states that a task of duly can be in. One that waits for a retry is submitted again: it has no run.
const (
	submitted     state = "submitted"
	working       state = "working"
	inputRequired state = "input-required"
	completed     state = "completed"
	failed        state = "failed"
	canceled      state = "canceled"
)

// in is the name of a state in a version.
func (s state) in(v version) string {
	if v == v1 {
		return "TASK_STATE_" + strings.ToUpper(strings.ReplaceAll(string(s), "-", "_"))
	}
	return string(s)
}

// stateOf is the state of a task.
func stateOf(t *core.TaskInfo) state {
	switch {
	case asks(t):
		return inputRequired
	case t.Status == store.StatusWaiting:
		return submitted
	case t.Status == store.StatusInProgress:
		return working
	case t.Status == store.StatusCompleted:
		return completed
	case t.Status == store.StatusCancelled:
		return canceled
	default:
		return failed
	}
}

// over reports whether a client that waits for a task has to wait no longer: it has ended, or asks something.
func over(t *core.TaskInfo) bool { return t.Status.Finished() || stateOf(t) == inputRequired }

// shown is a task in a version.
func shown(t *core.TaskInfo, v version) task {
	out := task{ID: t.ID, Context: contextOf(t.ID), Status: status{State: stateOf(t).in(v), Message: said(t, v)}}
	if v == v03 {
		out.Kind = "task"
	}
	if at := t.UpdatedAt; !at.IsZero() {
		out.Status.Time = at.UTC().Format("2006-01-02T15:04:05.000Z07:00")
	}
	if result := partsOf(t.Result, v); result != nil && t.Status == store.StatusCompleted {
		out.Artifacts = []artifact{{ID: "result", Name: "result", Parts: result}}
	}
	return out
}

// said is what the agent says of a task: what it asks, or why it failed or was cancelled.
func said(t *core.TaskInfo, v version) *message {
	var text string
	switch stateOf(t) {
	case inputRequired:
		text = question(t)
	case failed:
		text = cmp.Or(t.LastError, t.Reason)
	case canceled:
		text = t.Reason
	case submitted, working, completed: // the state says all
	}
	if text == "" {
		return nil
	}
	m := &message{ID: t.ID + "-status", Context: contextOf(t.ID), Task: t.ID, Role: "ROLE_AGENT", Parts: []part{textPart(text, v)}}
	if v == v03 {
		m.Kind, m.Role = "message", "agent"
	}
	return m
}

// textPart is a text in a version.
func textPart(text string, v version) part {
	p := part{Text: &text}
	if v == v03 {
		p.Kind = "text"
	}
	return p
}

// partsOf are the parts of a result: an object as data, a text as text, and any other value as the text of its JSON, as 0.3 has only objects as data.
func partsOf(result json.RawMessage, v version) []part {
	result = bytes.TrimSpace(result)
	var text string
	switch {
	case len(result) == 0 || string(result) == "null":
		return nil
	case result[0] == '{' && v == v03:
		return []part{{Kind: "data", Data: result}}
	case result[0] == '{':
		return []part{{Data: result}}
	case json.Unmarshal(result, &text) != nil:
		text = string(result)
	}
	return []part{textPart(text, v)}
}

// get answers with a task.
func (a *api) get(c *call) (any, error) {
	t, err := a.named(c, "id")
	if err != nil {
		return nil, err
	}
	return shown(t, c.method.version), nil
}

// named is the task that a parameter names, if a message has made it. A task of another agent is not found, as all tasks are looked up by their agent.
func (a *api) named(c *call, param string) (*core.TaskInfo, error) {
	var id string
	if err := c.params.Need(param, "a string", &id); err != nil {
		return nil, err
	}
	return a.task(c, id)
}

// task is a task of the agent of a call.
func (a *api) task(c *call, id string) (*core.TaskInfo, error) {
	// guard: a2a-tasks
	if !taskIDs().MatchString(id) {
		return nil, errNoTask
	}
	t, err := a.scheduler.Task(c.Context(), c.agent, id)
	return &t, err
}

// cancel ends a task. One that runs is at work until its run has ended, and is canceled then, no matter what the run returns.
func (a *api) cancel(c *call) (any, error) {
	t, err := a.named(c, "id")
	if err != nil {
		return nil, err
	}
	_, err = a.scheduler.Cancel(c.Context(), c.agent, t.ID, core.Order{Reason: "canceled by a client of A2A"})
	switch {
	case core.CodeOf(err) == core.CodeConflict:
		return nil, refuse(codeNoCancel, "the task has ended")
	case err != nil:
		return nil, err
	}
	if t, err = a.task(c, t.ID); err != nil {
		return nil, err
	}
	return shown(t, c.method.version), nil
}
