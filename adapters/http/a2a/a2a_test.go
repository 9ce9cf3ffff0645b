package a2a_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/adapters/http/a2a"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/storetest/spy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// server is the API on a store in memory.
type server struct {
	*testing.T

	scheduler *core.Scheduler
	handler   func(method, path, token, body string, header ...string) *httptest.ResponseRecorder
	store     *spy.Store
}

// tokens are those of the servers of tests.
var tokens = []httpadapter.Token{
	{Token: "ada", Grant: httpadapter.Grant{Name: "ada", Agents: []string{"ada"}, Scopes: []httpadapter.Scope{httpadapter.ScopeRead, httpadapter.ScopeWrite}}},
	{Token: "ada-reads", Grant: httpadapter.Grant{Name: "ada-reads", Agents: []string{"ada"}, Scopes: []httpadapter.Scope{httpadapter.ScopeRead}}},
	{Token: "ada-writes", Grant: httpadapter.Grant{Name: "ada-writes", Agents: []string{"ada"}, Scopes: []httpadapter.Scope{httpadapter.ScopeWrite}}},
	{Token: "ada-approves", Grant: httpadapter.Grant{Name: "ada-approves", Agents: []string{"ada"}, Scopes: []httpadapter.Scope{httpadapter.ScopeApprove}}},
	{Token: "bob", Grant: httpadapter.Grant{Name: "bob", Agents: []string{"bob"}}},
}

// serve is an API whose agents answer with the text of a message, and fail if that is "fail".
func serve(t *testing.T, d a2a.Door, config core.Config) *server {
	t.Helper()
	return serveBy(t, d, config, httpadapter.Config{Scoped: tokens})
}

// serveBy is such an API with settings of its own.
func serveBy(t *testing.T, d a2a.Door, config core.Config, host httpadapter.Config) *server {
	t.Helper()
	store := &spy.Store{Store: memstore.New(memstore.Config{Partitions: 1})}
	s, err := core.New(store, config)
	require.NoError(t, err)
	sv := &server{T: t, scheduler: s, store: store}
	core.Handle(s, "answer", func(_ context.Context, task *core.Task[struct{ Parts []struct{ Text string } }]) error {
		text := task.Payload.Parts[0].Text
		if text == "fail" {
			return core.SkipRetry(errors.New("no such thing"))
		}
		return task.SetResult("you said " + text)
	})
	d.Kind = cmp.Or(d.Kind, "answer")
	host.Doors = []httpadapter.Door{d}
	h := httpadapter.New(s, host)
	sv.handler = func(method, path, token, body string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+token)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, r)
		return rec
	}
	return sv
}

// answer is the answer to a call.
type answer struct {
	ID     any             `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int
		Message string
		Data    []struct{ Reason string }
	} `json:"error"`
}

// post sends a whole body for the agent ada.
func (sv *server) post(token, body string) (status int, out answer) {
	sv.Helper()
	rec := sv.handler("POST", "/a2a/ada", token, body)
	require.NoError(sv, json.Unmarshal(rec.Body.Bytes(), &out), rec.Body.String())
	return rec.Code, out
}

// call calls a method for the agent ada.
func (sv *server) call(method, params string) answer {
	sv.Helper()
	status, out := sv.post("ada", fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, method, params))
	assert.Equal(sv, 200, status)
	assert.InDelta(sv, 7, out.ID, 0)
	return out
}

// task is a task of the protocol.
type task struct {
	Kind, ID, ContextID string
	Status              struct {
		State, Timestamp string
		Message          *struct {
			Role  string
			Parts []struct{ Text string }
		}
	}
	Artifacts []struct {
		Parts []struct {
			Kind, Text string
			Data       json.RawMessage
		}
	}
}

// task reads the result of a call that has to succeed: in 1.0 a send has it below a field.
func (sv *server) task(out answer) (got task) {
	sv.Helper()
	require.Nil(sv, out.Error)
	var wrapped struct{ Task json.RawMessage }
	require.NoError(sv, json.Unmarshal(out.Result, &wrapped))
	if wrapped.Task != nil {
		out.Result = wrapped.Task
	}
	require.NoError(sv, json.Unmarshal(out.Result, &got))
	return got
}

// run runs what is due.
func (sv *server) run() {
	sv.Helper()
	if _, err := sv.scheduler.RunDue(sv.Context(), core.Scope{}); core.CodeOf(err) != core.CodeRunsFailed {
		require.NoError(sv, err)
	}
}

// said are the parameters of a send.
func said(id, text, more string) string {
	return fmt.Sprintf(`{"message":{"messageId":%q,"role":"ROLE_USER","parts":[{"text":%q}]%s},"configuration":{"returnImmediately":true}}`, id, text, more)
}

// said03 are those of 0.3.
func said03(id, text string) string {
	return fmt.Sprintf(`{"message":{"kind":"message","messageId":%q,"role":"user","parts":[{"kind":"text","text":%q}]},"configuration":{"blocking":false}}`, id, text)
}

// A message becomes a task, whose result is an artifact; the same message is the same task, in both versions.
func TestAMessageIsATask(t *testing.T) {
	t.Parallel()
	sv := serve(t, a2a.Door{}, core.Config{})
	first := sv.task(sv.call("SendMessage", said("m-1", "hello", `,"contextId":"talk"`)))
	assert.Equal(t, "TASK_STATE_SUBMITTED", first.Status.State)
	assert.Equal(t, "talk", first.ContextID)
	assert.Equal(t, first, sv.task(sv.call("SendMessage", said("m-1", "hello", `,"contextId":"talk"`))))
	old := sv.task(sv.call("message/send", said03("m-2", "fail")))
	assert.Equal(t, []string{"task", "submitted"}, []string{old.Kind, old.Status.State})
	assert.NotEmpty(t, old.ContextID)
	sv.run()

	done := sv.task(sv.call("GetTask", `{"id":"`+first.ID+`"}`))
	assert.Equal(t, []string{"TASK_STATE_COMPLETED", "talk", "you said hello"}, []string{done.Status.State, done.ContextID, done.Artifacts[0].Parts[0].Text})
	assert.NotEmpty(t, done.Status.Timestamp)
	assert.Equal(t, done, sv.task(sv.call("SendMessage", said("m-1", "hello", `,"contextId":"talk"`))), "the work is not done twice")
	seen := sv.task(sv.call("tasks/get", `{"id":"`+first.ID+`"}`))
	assert.Equal(t, []string{"task", "completed", "text"}, []string{seen.Kind, seen.Status.State, seen.Artifacts[0].Parts[0].Kind})
	failed := sv.task(sv.call("tasks/get", `{"id":"`+old.ID+`"}`))
	assert.Equal(t, []string{"failed", old.ContextID, "agent", "no such thing"}, []string{failed.Status.State, failed.ContextID, failed.Status.Message.Role, failed.Status.Message.Parts[0].Text})
	out := sv.call("message/send", said03("m-2", "something else"))
	require.NotNil(t, out.Error)
	assert.Equal(t, -32602, out.Error.Code)
	assert.Contains(t, out.Error.Message, "messageId was used for another message")

	tasks, _, err := sv.scheduler.Tasks(t.Context(), core.List{Agent: "ada"})
	require.NoError(t, err)
	assert.Len(t, tasks, 2)
}

// What a run returns is a text, or an object; any other value is the text of its JSON.
func TestResultsAreParts(t *testing.T) {
	t.Parallel()
	for result, want := range map[string][3]string{
		`"hi"`: {"hi", ""}, `{"n":1}`: {"", `{"n":1}`}, `[1]`: {"[1]", ""}, `7`: {"7", ""},
	} {
		sv := serve(t, a2a.Door{Kind: "return"}, core.Config{})
		core.Handle(sv.scheduler, "return", func(_ context.Context, task *core.Task[json.RawMessage]) error {
			return task.SetResult(json.RawMessage(result))
		})
		id := sv.task(sv.call("SendMessage", said("m", "x", ""))).ID
		sv.run()
		for _, method := range []string{"GetTask", "tasks/get"} {
			p := sv.task(sv.call(method, `{"id":"`+id+`"}`)).Artifacts[0].Parts[0]
			assert.Equal(t, want[:2], []string{p.Text, string(p.Data)}, result)
		}
	}
}

// A client waits for the end of its task unless it says that it does not, and no longer than the door lets it.
func TestAClientWaits(t *testing.T) {
	t.Parallel()
	for params, waits := range map[string]bool{
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]}}`:                                             true,
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]},"configuration":{"historyLength":1}}`:         true,
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]},"configuration":{"returnImmediately":true}}`:  false,
		`{"message":{"messageId":"m","role":"user","parts":[{"kind":"text","text":"hello"}]},"configuration":{"blocking":true}}`:  true,
		`{"message":{"messageId":"m","role":"user","parts":[{"kind":"text","text":"hello"}]},"configuration":{"blocking":false}}`: false,
		`{"message":{"messageId":"m","role":"user","parts":[{"kind":"text","text":"hello"}]}}`:                                    true,
	} {
		method := "SendMessage"
		if strings.Contains(params, `"user"`) {
			method = "message/send"
		}
		synctest.Test(t, func(t *testing.T) {
			sv := serve(t, a2a.Door{Wait: 10 * time.Second}, core.Config{})
			begun := time.Now()
			late := sv.task(sv.call(method, params)) // nothing runs it
			assert.Equal(t, waits, time.Since(begun) == 10*time.Second, params)
			assert.Contains(t, strings.ToLower(late.Status.State), "submitted")
			if !waits {
				return
			}
			go func() {
				time.Sleep(3 * time.Second)
				sv.run()
			}()
			begun = time.Now()
			done := sv.task(sv.call(method, params))
			assert.Less(t, time.Since(begun), 6*time.Second)
			assert.Contains(t, strings.ToLower(done.Status.State), "completed")
		})
	}
}

// Of one credential only so many requests wait, and none once the server stops: any more is answered with the task as it is.
func TestWaitsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stopping := make(chan struct{})
		sv := serveBy(t, a2a.Door{Wait: time.Minute}, core.Config{}, httpadapter.Config{Scoped: tokens, MaxWaits: 1, Stopping: stopping})
		send := func(id string) time.Duration {
			begun := time.Now()
			sv.task(sv.call("SendMessage", `{"message":{"messageId":"`+id+`","role":"ROLE_USER","parts":[{"text":"hello"}]}}`))
			return time.Since(begun)
		}
		waited := make(chan time.Duration)
		go func() { waited <- send("m-1") }()
		time.Sleep(time.Second)
		assert.Zero(t, send("m-2"))
		close(stopping)
		assert.Equal(t, time.Second, <-waited)
	})
}

// A task is canceled, and one that has ended is not.
func TestATaskIsCanceled(t *testing.T) {
	t.Parallel()
	sv := serve(t, a2a.Door{}, core.Config{})
	id := sv.task(sv.call("SendMessage", said("m-1", "hello", ""))).ID
	for range 2 { // a client that has lost the answer asks again
		gone := sv.task(sv.call("CancelTask", `{"id":"`+id+`"}`))
		assert.Equal(t, "TASK_STATE_CANCELED", gone.Status.State)
	}
	id = sv.task(sv.call("message/send", said03("m-2", "hello"))).ID
	sv.run()
	out := sv.call("tasks/cancel", `{"id":"`+id+`"}`)
	require.NotNil(t, out.Error)
	assert.Equal(t, -32002, out.Error.Code)
	assert.Equal(t, "TASK_NOT_CANCELABLE", out.Error.Data[0].Reason)
}

// Only tasks that messages have made are shown, and those of the agent in the path.
func TestOtherTasksAreNotFound(t *testing.T) {
	t.Parallel()
	sv := serve(t, a2a.Door{}, core.Config{})
	id := sv.task(sv.call("SendMessage", said("m-1", "hello", ""))).ID
	_, err := sv.scheduler.Submit(t.Context(), core.NewTask{Agent: "ada", ID: "secret", Kind: "answer"})
	require.NoError(t, err)
	for _, method := range []string{"GetTask", "tasks/get", "CancelTask", "tasks/cancel"} {
		for _, other := range []string{"secret", "a2a-00000000000000000000000000000000-talk", "\u0000", strings.Repeat("x", 300)} {
			name, err := json.Marshal(other)
			require.NoError(t, err)
			out := sv.call(method, `{"id":`+string(name)+`}`)
			require.NotNil(t, out.Error, other)
			assert.Equal(t, -32001, out.Error.Code, "%s %q", method, other)
		}
		rec := sv.handler("POST", "/a2a/bob", "bob", fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{"id":%q}}`, method, id))
		assert.Contains(t, rec.Body.String(), `-32001`)
	}
	task, err := sv.scheduler.Task(t.Context(), "ada", "secret")
	require.NoError(t, err)
	assert.Equal(t, core.StatusWaiting, task.Status)
}

// A caller needs the right to what a method does, for the agent in the path, before any store is called.
func TestWhoMayCall(t *testing.T) {
	t.Parallel()
	sv := serve(t, a2a.Door{}, core.Config{})
	id := sv.task(sv.call("SendMessage", said("m-1", "hello", ""))).ID
	sv.run()
	one := `{"id":"` + id + `"}`
	for _, c := range []struct {
		method, params, token string
		may                   bool
	}{
		{"SendMessage", said("m-2", "hello", ""), "ada-reads", false},
		{"GetTask", one, "ada-reads", true},
		{"ListTasks", `{}`, "ada-reads", true},
		{"CancelTask", one, "ada-reads", false},
		{"message/send", said03("m-2", "hello"), "ada-reads", false},
		{"tasks/get", one, "ada-writes", false},
		{"ListTasks", `{}`, "ada-writes", false},
		{"SendMessage", said("m-2", "hello", ""), "bob", false},
		{"GetTask", one, "bob", false},
		{"ListTasks", `{}`, "bob", false},
		{"CancelTask", one, "bob", false},
		{"tasks/cancel", one, "bob", false},
	} {
		before := sv.store.Calls()
		status, out := sv.post(c.token, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, c.method, c.params))
		if c.may {
			assert.Equal(t, 200, status, "%s by %s", c.method, c.token)
			continue
		}
		require.NotNil(t, out.Error, "%s by %s", c.method, c.token)
		assert.Equal(t, []int{403, -32000}, []int{status, out.Error.Code}, "%s by %s", c.method, c.token)
		assert.Equal(t, before, sv.store.Calls(), "%s by %s", c.method, c.token)
	}
	rec := sv.handler("POST", "/a2a/ada", "wrong", `{"jsonrpc":"2.0","id":1,"method":"GetTask","params":`+one+`}`)
	assert.Equal(t, 401, rec.Code)
}

// A caller that may not read gets no result, and does not wait for one.
func TestAResultIsForReaders(t *testing.T) {
	t.Parallel()
	sv := serve(t, a2a.Door{}, core.Config{})
	body := `{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]}}}`
	_, first := sv.post("ada-writes", body)
	id := sv.task(first).ID
	sv.run()
	_, again := sv.post("ada-writes", body)
	assert.Equal(t, sv.task(first), sv.task(again))
	assert.Empty(t, sv.task(again).Artifacts)
	assert.Equal(t, "TASK_STATE_COMPLETED", sv.task(sv.call("GetTask", `{"id":"`+id+`"}`)).Status.State)
}
