package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-6f6f2c11/duly/adapters/internal/waits"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Kinds as tools: a call is a task, whose payload are the arguments. It is stored before the call is answered.

// kind is one that models call.
type kind struct {
	kind  string
	input *jsonschema.Resolved
}

// anyObject is the schema of arguments that are not described.
var anyObject = json.RawMessage(`{"type":"object"}`)

// addKind adds a kind, if it is a tool.
func (m *Server) addKind(name string, t *core.Tool) error {
	if t == nil {
		return nil
	}
	if err := t.Check(name); err != nil {
		return err
	}
	called, schema := t.Called(name), t.Input
	if _, taken := m.tools[called]; taken {
		return &core.ConfigError{Field: "Tool.Name", Value: called, Reason: fmt.Sprintf("%q is the name of another tool: give that of the kind %q another", called, name)}
	}
	if schema == nil {
		schema = anyObject
	}
	var s jsonschema.Schema
	err := json.Unmarshal(schema, &s)
	k := &kind{kind: name}
	if err == nil {
		k.input, err = s.Resolve(nil)
	}
	if err != nil {
		return &core.ConfigError{Field: "Tool.Input", Reason: fmt.Sprintf("is no JSON Schema that can be used: %v", err)}
	}
	m.kinds[called], m.tools[called] = k, model.ActionSubmit
	m.sdk.AddTool(&sdk.Tool{Name: called, Description: t.Description, InputSchema: schema}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return m.call(ctx, k, r)
	})
	return nil
}

// submit stores the task of a call.
func (m *Server) submit(ctx context.Context, k *kind, arguments json.RawMessage) (*core.TaskInfo, error) {
	if arguments = some(arguments); arguments == nil {
		arguments = json.RawMessage("{}")
	}
	var given any
	err := json.Unmarshal(arguments, &given)
	if err == nil {
		err = k.input.Validate(given)
	}
	if err != nil {
		return nil, invalid("arguments", "do not fit: %s", strings.TrimPrefix(err.Error(), "validating root: "))
	}
	placed, err := m.scheduler.Submit(ctx, core.NewTask{Agent: agentOf(ctx), Kind: k.kind, Payload: arguments})
	if err != nil {
		return nil, err
	}
	// It is new, so that there is nothing to read that is not known; the time is the store's.
	p, now := &placed[0], m.config.Clock.Now()
	now = now.Add(-m.scheduler.Until(now))
	return &core.TaskInfo{Agent: p.Agent, ID: p.ID, Kind: p.Kind, Status: p.Status, NextRun: p.Due, Submitted: now, UpdatedAt: now}, nil
}

// handle answers the call of a kind with the handle of its task.
func (m *Server) handle(ctx context.Context, k *kind, call *sdk.CallToolParamsRaw) (sdk.Result, error) {
	info, err := m.submit(ctx, k, call.Arguments)
	if err != nil {
		return failed(m.tellable(ctx, call.Name, err)), nil
	}
	answer := m.shown(ctx, info)
	answer.ResultType, answer.Result, answer.InputRequests = "task", nil, nil
	return answer, nil
}

// failed is an error as the result of a tool.
func failed(err error) *sdk.CallToolResult {
	var r sdk.CallToolResult
	r.SetError(err)
	return &r
}

// call answers the call of a kind for a client that knows no tasks: with the result, if that comes soon; with what the task asks, if the client can ask
// its user; and else with the id.
func (m *Server) call(ctx context.Context, k *kind, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	info, err := m.taskOf(ctx, k, r)
	if err == nil {
		asks := r.ClientCapabilities() != nil && r.ClientCapabilities().Elicitation != nil
		info = m.ended(ctx, info, asks)
		if asks && m.asks(ctx, info) {
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{waitKey(info.Awaiting): form(info)}, RequestState: info.ID}, nil
		}
	}
	if err != nil {
		return failed(m.tellable(ctx, r.Params.Name, err)), nil
	}
	if info.Status.Finished() {
		return resultOf(info), nil
	}
	answer := said(fmt.Sprintf("Task %q is not finished: %s. Ask for it again with explain.", info.ID, progress(info, m.config.Clock.Now())))
	answer.StructuredContent = map[string]string{"task_id": info.ID, "status": string(info.Status)}
	return answer, nil
}

// taskOf is the task of a call: a new one, or that which an earlier call has begun, once the answers that came with it are sent.
func (m *Server) taskOf(ctx context.Context, k *kind, r *sdk.CallToolRequest) (*core.TaskInfo, error) {
	id := r.Params.RequestState
	if id == "" {
		return m.submit(ctx, k, r.Params.Arguments)
	}
	for key, response := range r.Params.InputResponses {
		given, ok := response.(*sdk.ElicitResult)
		if !ok {
			return nil, invalid("inputResponses", "must answer an elicitation")
		}
		if err := m.reply(ctx, id, key, given.Action, given.Content); err != nil {
			return nil, err
		}
	}
	return m.task(ctx, id)
}

// task is one of the agent.
func (m *Server) task(ctx context.Context, id string) (*core.TaskInfo, error) {
	if err := m.may(ctx, model.ActionRead); err != nil {
		return nil, err
	}
	info, err := m.scheduler.Task(ctx, agentOf(ctx), id)
	return &info, err
}

// ended waits for the end of a task, or until it asks something that the client can ask its user, but not for ever.
func (m *Server) ended(ctx context.Context, info *core.TaskInfo, asks bool) *core.TaskInfo {
	if info.Status.Finished() {
		return info
	}
	leave, err := m.waits.Enter(sha256.Sum256([]byte(agentOf(ctx))), m.config.MaxWaits)
	if err != nil {
		return info // it is stored: the client gets the id, and asks again
	}
	defer leave()
	waits.Until(ctx, m.config.Clock, m.config.Stopping, m.config.Wait, func() bool {
		next, err := m.scheduler.Task(ctx, info.Agent, info.ID)
		if err != nil {
			return true // likewise
		}
		info = &next
		return info.Status.Finished() || asks && info.Awaiting != nil
	})
	return info
}

// resultOf is how a task ended, as the result of a tool.
func resultOf(info *core.TaskInfo) *sdk.CallToolResult {
	switch {
	case info.Status == core.StatusCancelled:
		return failed(fmt.Errorf("task %q was cancelled%s", info.ID, after(": ", info.Reason)))
	case info.Status == core.StatusFailed:
		return failed(fmt.Errorf("task %q failed%s", info.ID, after(": ", cmp.Or(info.LastError, info.Reason))))
	case len(info.Result) == 0:
		return said(fmt.Sprintf("Task %q is completed.", info.ID))
	}
	var text string
	if json.Unmarshal(info.Result, &text) == nil {
		return said(text)
	}
	answer := said(string(info.Result))
	var object map[string]any
	if json.Unmarshal(info.Result, &object) == nil && object != nil {
		answer.StructuredContent = info.Result
	}
	return answer
}
