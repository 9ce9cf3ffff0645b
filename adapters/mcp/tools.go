package mcp

import (
	"context"
	"encoding/json"
	"reflect"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-6f6f2c11/duly/core/model"
)

// The tools that every server has. They are few, and short: a model reads all of them in front of each of its answers.

// tool is what a client is shown of a tool, and what a caller needs for it.
type tool struct {
	name, says string
	action     model.Action
	destroys   bool
}

// arguments of the tools.
type (
	planArgs struct {
		When  string `json:"when,omitempty" jsonschema:"in words: every weekday at 9am in Europe/Berlin; tomorrow at 8am; in 2 hours"`
		Cron  string `json:"cron,omitempty" jsonschema:"5 or 6 fields; needs zone"`
		Zone  string `json:"zone,omitempty" jsonschema:"IANA zone of the user"`
		Every string `json:"every,omitempty" jsonschema:"such as 90m"`
		At    string `json:"at,omitempty" jsonschema:"once, RFC 3339"`
	}
	scheduleArgs struct {
		Kind    string          `json:"kind" jsonschema:"which handler runs it"`
		Payload json.RawMessage `json:"payload,omitempty" jsonschema:"what the handler gets, JSON"`
		ID      string          `json:"id,omitempty" jsonschema:"a name, to find it again; made up if left out"`
		Replace bool            `json:"replace,omitempty" jsonschema:"change the task of this id"`
		planArgs
	}
	listArgs struct {
		Status string `json:"status,omitempty" jsonschema:"only waiting, in_progress, completed, failed or cancelled"`
		Kind   string `json:"kind,omitempty"`
		Limit  int    `json:"limit,omitempty" jsonschema:"20 by default, at most 100"`
		Cursor string `json:"cursor,omitempty" jsonschema:"of the previous page"`
	}
	taskArgs struct {
		ID string `json:"id"`
	}
	pauseArgs struct {
		ID     string `json:"id"`
		For    string `json:"for,omitempty" jsonschema:"such as 2h; until it is resumed if left out"`
		Reason string `json:"reason,omitempty"`
	}
	cancelArgs struct {
		ID     string `json:"id"`
		Reason string `json:"reason,omitempty"`
	}
	signalArgs struct {
		Key     string          `json:"key"`
		Payload json.RawMessage `json:"payload,omitempty" jsonschema:"JSON"`
	}
)

// addTools adds all of them.
func (m *Server) addTools() {
	add(m, tool{name: "schedule", says: "Schedule a task, once or again and again; without a time it runs now. Answers how the time was understood, and the next ones.", action: model.ActionSubmit}, m.schedule)
	add(m, tool{name: "preview", says: "How a time is understood, without scheduling anything.", action: model.ActionRead}, m.preview)
	add(m, tool{name: "list_tasks", says: "The agent's tasks, a line each.", action: model.ActionRead}, m.list)
	add(m, tool{name: "explain", says: "One task: why it does or does not run, when it does next, and how it ended.", action: model.ActionRead}, m.explain)
	add(m, tool{name: "pause", says: "Keep a task from running.", action: model.ActionControl}, m.pause)
	add(m, tool{name: "resume", says: "End the pause of a task.", action: model.ActionControl}, m.resume)
	add(m, tool{name: "run_now", says: "Run a task now, besides its schedule.", action: model.ActionControl}, m.runNow)
	add(m, tool{name: "cancel", says: "End a task for good: it does not run again.", action: model.ActionControl, destroys: true}, m.cancel)
	add(m, tool{name: "signal", says: "Send the signal that tasks wait for.", action: model.ActionControl}, m.signal)
}

// add adds a tool. do gets the agent of the request, and answers with a text whose first sentence says it all.
func add[In any](m *Server, t tool, do func(ctx context.Context, agent string, in *In) (string, error)) {
	m.tools[t.name] = t.action
	schema, err := jsonschema.For[In](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[json.RawMessage](): {}}})
	if err != nil {
		panic("mcp: " + err.Error()) // the arguments are types of this file
	}
	shown := &sdk.Tool{Name: t.name, Description: t.says, InputSchema: schema}
	switch {
	case t.action == model.ActionRead:
		shown.Annotations = &sdk.ToolAnnotations{ReadOnlyHint: true}
	case !t.destroys:
		shown.Annotations = &sdk.ToolAnnotations{DestructiveHint: new(bool)}
	}
	sdk.AddTool(m.sdk, shown, func(ctx context.Context, _ *sdk.CallToolRequest, in In) (*sdk.CallToolResult, any, error) {
		var text string
		// guard: mcp-rights
		err := m.may(ctx, t.action)
		if err == nil {
			ctx, cancel := within(ctx, t.action)
			defer cancel()
			text, err = do(ctx, agentOf(ctx), &in)
		}
		if err != nil {
			return nil, nil, m.tellable(ctx, t.name, err)
		}
		return said(text), nil, nil
	})
}

// mostLook is how long a tool that only looks may take: a model does better with an answer that the store is away than with none.
const mostLook = 5 * time.Second

// within is the context of a tool, which is bounded if it only looks.
func within(ctx context.Context, action model.Action) (context.Context, context.CancelFunc) {
	if action != model.ActionRead {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, mostLook)
}

// said is a text as the answer of a tool.
func said(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}
