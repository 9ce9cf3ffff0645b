package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// What comes before each call: what a client is shown, and which of its calls are tasks. And what comes after: errors.

// Methods of the protocol.
const (
	callTool  = "tools/call"
	listTools = "tools/list"
	getTask   = "tasks/get"
	update    = "tasks/update"
	cancel    = "tasks/cancel"
)

// receive is the way of each request.
func (m *Server) receive(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
		switch method {
		case listTools:
			answer, err := next(ctx, method, r)
			if all, ok := answer.(*sdk.ListToolsResult); ok && err == nil {
				answer = m.allowed(ctx, all)
			}
			return answer, err
		case callTool:
			if call, ok := r.GetParams().(*sdk.CallToolParamsRaw); ok && m.kinds[call.Name] != nil && knowsTasks(r) {
				return m.handle(ctx, m.kinds[call.Name], call)
			}
		case getTask, update, cancel:
			if !knowsTasks(r) {
				return nil, unknowing()
			}
		}
		return next(ctx, method, r)
	}
}

// allowed are the tools that the caller may call: a model that sees no other is not tempted.
func (m *Server) allowed(ctx context.Context, all *sdk.ListToolsResult) *sdk.ListToolsResult {
	some := *all
	some.Tools = slices.DeleteFunc(slices.Clone(all.Tools), func(t *sdk.Tool) bool { return m.may(ctx, m.tools[t.Name]) != nil })
	return &some
}

// knowsTasks reports whether a client has said that it knows tasks of the protocol.
func knowsTasks(r sdk.Request) bool {
	client, ok := r.(interface {
		ClientCapabilities() *sdk.ClientCapabilities
	})
	if !ok {
		return false
	}
	c := client.ClientCapabilities()
	if c == nil {
		return false
	}
	_, knows := c.Extensions[extension]
	return knows
}

// unknowing refuses a call about a task by a client that has not said that it knows them.
func unknowing() error {
	return &jsonrpc.Error{
		Code: sdk.CodeMissingRequiredClientCapabilities, Message: "the client has to declare the extension " + extension,
		Data: []byte(`{"requiredCapabilities":{"extensions":{"` + extension + `":{}}}}`),
	}
}

// tellable is an error for a model: what is wrong with which field, and how to mend it. One of this side is logged, and shown without what happened.
func (m *Server) tellable(ctx context.Context, call string, err error) error {
	p := problem.Of(err)
	if p.Status >= http.StatusInternalServerError && ctx.Err() == nil {
		m.config.Logger.LogAttrs(ctx, slog.LevelWarn, "a call of a model failed", slog.String("tool", call), slog.String("agent", agentOf(ctx)), slog.Any("err", err))
	}
	text := p.Detail
	switch {
	case p.Code == core.CodeNotFound:
		text = "this agent has no such task: list_tasks has the ids"
	case p.Code == core.CodeUnavailable && m.tools[call] == model.ActionRead:
		text = "the store is away: ask again in a minute"
	case p.Code == core.CodeUnavailable:
		text = "the store is away, and may have taken this: look with list_tasks in a minute, before you call again; a task with an id is stored once"
	}
	if p.Field != "" && !strings.Contains(text, p.Field) {
		text = p.Field + ": " + text
	}
	return errors.New(text)
}

// invalid is an error about an argument.
func invalid(field, format string, args ...any) error {
	return &core.InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}
