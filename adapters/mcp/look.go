package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Looking at tasks.

// Bounds of lists and texts.
const (
	pageByDefault = 20
	mostPage      = 100
	mostShown     = 4 << 10 // bytes of a payload, a result or an error
)

// list is a page of the agent's tasks, a line each.
func (m *Server) list(ctx context.Context, agent string, in *listArgs) (string, error) {
	if in.Limit < 0 || in.Limit > mostPage {
		return "", invalid("limit", "must be 1 to %d", mostPage)
	}
	l := core.List{Agent: agent, Kind: in.Kind, Limit: cmp.Or(in.Limit, pageByDefault), Cursor: in.Cursor}
	if in.Status != "" {
		l.Status = []core.Status{core.Status(in.Status)}
	}
	tasks, next, err := m.scheduler.Tasks(ctx, l)
	if err != nil {
		return "", err
	}
	zone, err := m.profileZone(ctx, agent)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", len(tasks), plural(len(tasks), "task"))
	if next != "" {
		fmt.Fprintf(&b, ", and more: cursor %s", next)
	}
	b.WriteString(".")
	for i := range tasks {
		b.WriteString("\n" + line(&tasks[i], cmp.Or(zone, m.config.Zone)))
	}
	return b.String(), nil
}

// plural is a word as it goes with a number.
func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

// line is a task in a list.
func line(info *core.TaskInfo, zone string) string {
	status := string(info.Status)
	if len(info.Pauses) > 0 {
		status = "paused"
	}
	if info.Awaiting != nil {
		status = "waits for the signal " + info.Awaiting.Key
	}
	text := fmt.Sprintf("%s | %s | %s", info.ID, info.Kind, status)
	if when := readBack(info, zone, 1); when != "" {
		text += " | " + when
	}
	if info.LastError != "" {
		text += " | last error: " + clip(info.LastError, 200)
	}
	return text
}

// clip is the beginning of a text, whole characters.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// explain says why a task has not run, or how it ended.
func (m *Server) explain(ctx context.Context, agent string, in *taskArgs) (string, error) {
	e, err := m.scheduler.Explain(ctx, agent, in.ID)
	if err != nil {
		return "", err
	}
	zone, err := m.profileZone(ctx, agent)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	for i, r := range e.Reasons {
		if i > 0 {
			b.WriteString("\n")
		}
		b.WriteString(strings.TrimSuffix(r.Text, ".") + ".")
	}
	facts(&b, &e, cmp.Or(zone, m.config.Zone))
	return b.String(), nil
}

// facts are what a model may want to know of a task besides.
func facts(b *strings.Builder, e *inspect.Explanation, zone string) {
	info := &e.Task
	fact := func(name, value string) {
		if value != "" {
			b.WriteString("\n" + name + ": " + clip(value, mostShown))
		}
	}
	fact("kind", info.Kind)
	fact("status", string(info.Status))
	fact("when", readBack(info, zone, times))
	if a := info.Awaiting; a != nil {
		fact("asks", a.Question)
	}
	if !info.LastRun.IsZero() {
		fact("last run", info.LastRun.UTC().Format(time.RFC3339)+after(", ", string(info.LastOutcome)))
	}
	fact("last error", info.LastError)
	fact("progress", string(info.Progress))
	fact("payload", string(info.Payload))
	fact("result", string(info.Result))
}

// address is that of the one resource: the tasks of the agent.
const address = "duly://agents/{agent}/tasks"

// addResource adds the tasks of the agent as a resource, for people who pick it. A model has list_tasks.
func (m *Server) addResource() {
	m.sdk.AddResourceTemplate(&sdk.ResourceTemplate{
		Name: "tasks", Description: "The agent's tasks", URITemplate: address, MIMEType: "application/json",
	}, func(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		agent := agentOf(ctx)
		if r.Params.URI != strings.Replace(address, "{agent}", agent, 1) || m.may(ctx, model.ActionRead) != nil {
			return nil, sdk.ResourceNotFoundError(r.Params.URI)
		}
		tasks, next, err := m.scheduler.Tasks(ctx, core.List{Agent: agent, Limit: mostPage})
		if err != nil {
			return nil, m.tellable(ctx, "resources/read", err)
		}
		text, err := json.Marshal(struct {
			Tasks []core.TaskInfo `json:"tasks"`
			Next  string          `json:"next_cursor,omitempty"`
		}{tasks, next})
		if err != nil {
			return nil, fmt.Errorf("encode the tasks: %w", err)
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: "application/json", Text: string(text)}}}, nil
	})
}
