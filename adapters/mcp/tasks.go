package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Tasks of the protocol: how one of ours is shown as one of them, answered and cancelled. They are read from the store, so that any process answers.

// shownTask is a task as the protocol has it.
type shownTask struct {
	sdk.ResultBase

	ResultType    string              `json:"resultType"`
	ID            string              `json:"taskId"`
	Status        string              `json:"status"`
	Says          string              `json:"statusMessage,omitempty"`
	Created       string              `json:"createdAt"`
	Updated       string              `json:"lastUpdatedAt"`
	TTL           *int64              `json:"ttlMs"` // null if it is kept
	Poll          int64               `json:"pollIntervalMs,omitempty"`
	InputRequests sdk.InputRequestMap `json:"inputRequests,omitempty"`
	Result        any                 `json:"result,omitempty"`
}

// done is the answer to what has none.
type done struct {
	sdk.ResultBase

	ResultType string `json:"resultType"`
}

// Parameters of the calls about tasks.
type (
	taskParams struct {
		sdk.ParamsBase

		ID string `json:"taskId"`
	}
	updateParams struct {
		sdk.ParamsBase

		ID        string `json:"taskId"`
		Responses map[string]struct {
			Action  string         `json:"action"`
			Content map[string]any `json:"content"`
		} `json:"inputResponses"`
	}
)

// complete is the type of a result that is one.
const complete = "complete"

// addTasks adds the calls about tasks.
func (m *Server) addTasks() error {
	// Calls of earlier drafts of tasks, which clients try: a method that does not exist, as the protocol says.
	missing := func(method string) error {
		return sdk.AddReceivingCustomMethod(m.sdk, method, func(context.Context, *sdk.ServerSession, *taskParams) (*done, error) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found: " + method}
		})
	}
	return errors.Join(
		missing("tasks/list"), missing("tasks/result"),
		sdk.AddReceivingCustomMethod(m.sdk, getTask, func(ctx context.Context, _ *sdk.ServerSession, p *taskParams) (*shownTask, error) {
			info, err := m.task(ctx, p.ID)
			if err != nil {
				return nil, m.refused(ctx, getTask, p.ID, err)
			}
			return m.shown(ctx, info), nil
		}),
		sdk.AddReceivingCustomMethod(m.sdk, update, func(ctx context.Context, _ *sdk.ServerSession, p *updateParams) (*done, error) {
			for key, given := range p.Responses {
				if err := m.reply(ctx, p.ID, key, given.Action, given.Content); err != nil {
					return nil, m.refused(ctx, update, p.ID, err)
				}
			}
			return &done{ResultType: complete}, nil
		}),
		sdk.AddReceivingCustomMethod(m.sdk, cancel, func(ctx context.Context, _ *sdk.ServerSession, p *taskParams) (*done, error) {
			if err := m.cancelTask(ctx, p.ID); err != nil {
				return nil, m.refused(ctx, cancel, p.ID, err)
			}
			return &done{ResultType: complete}, nil
		}),
	)
}

// cancelTask cancels a task. One that has ended is left as it is, as the client may not know yet.
func (m *Server) cancelTask(ctx context.Context, id string) error {
	if err := m.may(ctx, model.ActionControl); err != nil {
		return err
	}
	_, err := m.scheduler.Cancel(ctx, agentOf(ctx), id, by(ctx, "cancelled by its client"))
	if core.CodeOf(err) == core.CodeConflict {
		return nil
	}
	return err
}

// refused is an error about a task, as the protocol has it.
func (m *Server) refused(ctx context.Context, call, id string, err error) error {
	code := int64(jsonrpc.CodeInvalidParams)
	if core.CodeOf(err) == core.CodeNotFound {
		return &jsonrpc.Error{Code: code, Message: fmt.Sprintf("there is no task %q of this agent", clip(id, 100))}
	}
	if problem.Of(err).Status >= http.StatusInternalServerError {
		code = jsonrpc.CodeInternalError
	}
	return &jsonrpc.Error{Code: code, Message: m.tellable(ctx, call, err).Error()}
}

// shown is a task as the protocol has it. One that failed is completed there, with a result that is an error: failed are calls, not what they ran.
func (m *Server) shown(ctx context.Context, info *core.TaskInfo) *shownTask {
	s := &shownTask{
		ResultType: complete, ID: info.ID, Status: "working", Says: progress(info, m.config.Clock.Now()), TTL: ttl(info, m.config.Retention),
		Created: info.Submitted.UTC().Format(time.RFC3339Nano), Updated: latest(info.Submitted, info.UpdatedAt).UTC().Format(time.RFC3339Nano),
	}
	switch {
	case info.Status == core.StatusCancelled:
		s.Status = "cancelled"
	case info.Status.Finished():
		s.Status, s.Result = "completed", completed(resultOf(info))
	case m.asks(ctx, info):
		s.Status, s.InputRequests = "input_required", sdk.InputRequestMap{waitKey(info.Awaiting): form(info)}
		s.Poll = m.poll(info)
	default:
		s.Poll = m.poll(info)
	}
	return s
}

// completed is the result of a tool within a task, which names its type there too: clients refuse it otherwise.
func completed(r *sdk.CallToolResult) map[string]any {
	result := map[string]any{"resultType": complete, "content": r.Content}
	if r.StructuredContent != nil {
		result["structuredContent"] = r.StructuredContent
	}
	if r.IsError {
		result["isError"] = true
	}
	return result
}

// latest is the later of two times.
func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// ttl is how long a task is kept, from when it was submitted: known once it has ended.
func ttl(info *core.TaskInfo, retention time.Duration) *int64 {
	if !info.Status.Finished() || retention == 0 {
		return nil
	}
	kept := info.Finished.Add(retention).Sub(info.Submitted).Milliseconds()
	return &kept
}

// Bounds of how often a client should ask.
const (
	leastPoll   = time.Second
	mostRunning = 10 * time.Second
	mostPoll    = time.Minute
)

// poll is when a client should ask again: not before a task is due, and less often the longer it runs.
func (m *Server) poll(info *core.TaskInfo) int64 {
	now, d := m.config.Clock.Now(), leastPoll
	switch {
	case info.Awaiting != nil && info.Status == core.StatusWaiting:
		d = 5 * time.Second
	case info.Status == core.StatusInProgress:
		d = min(now.Sub(info.UpdatedAt)/8, mostRunning)
	case !info.NextRun.IsZero():
		d = info.NextRun.Sub(now)
	}
	return min(max(d, leastPoll), mostPoll).Milliseconds()
}

// progress says what a task does. What its run has said comes first.
func progress(info *core.TaskInfo, now time.Time) string {
	switch {
	case info.Status.Finished():
		return string(info.Status)
	case info.Awaiting != nil:
		return fmt.Sprintf("it waits for the signal %q%s", info.Awaiting.Key, after(": ", info.Awaiting.Question))
	case len(info.Progress) > 0:
		return clip(plain(info.Progress), 300)
	case info.Status == core.StatusInProgress:
		return "it runs since " + info.UpdatedAt.UTC().Format(time.RFC3339)
	case len(info.Pauses) > 0:
		return "it is paused"
	case info.NextRun.After(now):
		return "it is due at " + info.NextRun.UTC().Format(time.RFC3339)
	default:
		return "it is due"
	}
}

// plain is JSON for people: a text without its quotes, and anything else as it is.
func plain(data json.RawMessage) string {
	var text string
	if json.Unmarshal(data, &text) == nil {
		return text
	}
	return string(data)
}

// asks reports whether a task waits for what the caller may answer. For another caller it is at work: its user could not help.
func (m *Server) asks(ctx context.Context, info *core.TaskInfo) bool {
	a := info.Awaiting
	return a != nil && m.mayReply(ctx, a.From == core.FromApproval) == nil
}

// mayReply refuses a caller that may not send a signal, or none that approves.
func (m *Server) mayReply(ctx context.Context, approves bool) error {
	err := m.may(ctx, model.ActionApprove)
	if err != nil && !approves {
		err = m.may(ctx, model.ActionControl)
	}
	return err
}

// waitKey names a wait among those of a task, as a key of the protocol may be used once.
func waitKey(a *model.Awaiting) string { return a.Key + "#" + strconv.FormatInt(int64(a.Fence), 10) }

// Forms of what is asked if a run has given none.
var (
	approvalForm = json.RawMessage(`{"type":"object","properties":{"decision":{"type":"string","enum":["approve","refuse"]},"comment":{"type":"string"}},"required":["decision"]}`)
	answerForm   = json.RawMessage(`{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"]}`)
)

// form is what a task asks, for the user of a client.
func form(info *core.TaskInfo) *sdk.ElicitParams {
	a := info.Awaiting
	p := &sdk.ElicitParams{Mode: "form", Message: a.Question, RequestedSchema: a.Answer}
	if p.Message == "" {
		p.Message = fmt.Sprintf("The task %q (%s) waits for %q.", info.ID, info.Kind, a.Key)
	}
	switch {
	case a.Answer != nil:
	case a.From == core.FromApproval:
		p.RequestedSchema = approvalForm
	default:
		p.RequestedSchema = answerForm
	}
	return p
}

// reply sends the answer of a user to the wait that was shown, and to no other. One who has closed the form has not answered.
func (m *Server) reply(ctx context.Context, id, key, action string, content map[string]any) error {
	cut := strings.LastIndexByte(key, '#')
	fence, err := strconv.ParseInt(key[cut+1:], 10, 64)
	if cut < 0 || err != nil {
		return invalid("inputResponses", "has the key %q, which no question has", clip(key, 100))
	}
	switch action {
	case "accept":
	case "decline":
		content = map[string]any{"decision": "refuse"}
	case "cancel":
		return nil
	default:
		return invalid("action", "must be accept, decline or cancel, not %q", clip(action, 20))
	}
	// guard: mcp-reply
	if err := m.mayReply(ctx, false); err != nil {
		return err
	}
	payload, err := json.Marshal(content)
	if err != nil || bytes.Equal(payload, []byte("null")) {
		return invalid("content", "is required: an object as the question wants it")
	}
	q := core.Question{Agent: agentOf(ctx), ID: id, Key: key[:cut], Fence: store.Fence(fence)}
	info, err := m.scheduler.Task(ctx, q.Agent, id)
	if err != nil {
		return err
	}
	if info.Awaiting != nil && info.Awaiting.Fence == q.Fence {
		q.Text = info.Awaiting.Question
	}
	err = m.scheduler.Answer(ctx, q, payload, "")
	if errors.Is(err, model.ErrClosed) {
		return nil // it was answered: the client that sends this again has lost the answer
	}
	return err
}
