package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/mcp"
	"github.com/seed-6f6f2c11/duly/core"
)

// knowing is the part of a request of the newest version by which a client says that it knows tasks; unknowing does not.
const (
	knowing = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
	unknowing = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":{}}`
)

// ask sends a call of the newest version. It returns the result, or the code of the error.
func ask(t *testing.T, url, token, method, params string) (result map[string]any, code int) {
	t.Helper()
	header := http.Header{"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {method}}
	var named struct {
		Name string `json:"name"`
	}
	require.NoError(t, json.Unmarshal([]byte("{"+params+"}"), &named))
	if named.Name != "" {
		header.Set("Mcp-Name", named.Name)
	}
	_, answer := exchange(t, url, token, `{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":{`+params+`}}`, header)
	if failed, is := answer["error"].(map[string]any); is {
		number, _ := failed["code"].(float64)
		return failed, int(number)
	}
	result, _ = answer["result"].(map[string]any)
	require.NotNil(t, result, "%v", answer)
	return result, 0
}

// begin calls a kind as a client that knows tasks, and returns the id of its handle.
func begin(t *testing.T, url, tool, arguments string) string {
	t.Helper()
	handle, _ := ask(t, url, "ada", "tools/call", `"name":"`+tool+`","arguments":`+arguments+`,`+knowing)
	assert.Equal(t, "task", handle["resultType"])
	assert.Equal(t, "working", handle["status"])
	assert.NotContains(t, handle, "result")
	id, _ := handle["taskId"].(string)
	require.NotEmpty(t, id)
	return id
}

// get is the task of a handle, at some server.
func get(t *testing.T, url, token, id string) map[string]any {
	t.Helper()
	task, code := ask(t, url, token, "tasks/get", `"taskId":"`+id+`",`+knowing)
	require.Zero(t, code, "%v", task)
	assert.Equal(t, "complete", task["resultType"])
	return task
}

// The call of a kind is a task: stored before its handle is sent, and answered for by another server.
func TestACallIsATask(t *testing.T) {
	t.Parallel()
	f := setup(t, mcp.Config{})
	id := begin(t, f.urls[0], "digest", `{"topic":"go"}`)
	info, err := f.scheduler.Task(t.Context(), "ada", id)
	require.NoError(t, err)
	assert.Equal(t, "digest", info.Kind)
	assert.JSONEq(t, `{"topic":"go"}`, string(info.Payload))

	waiting := get(t, f.urls[1], "ada", id)
	assert.Equal(t, "working", waiting["status"])
	assert.Nil(t, waiting["ttlMs"])
	f.run(t)
	ended := get(t, f.urls[1], "ada", id)
	assert.Equal(t, "completed", ended["status"])
	assert.NotContains(t, ended, "pollIntervalMs")
	assert.InDelta(t, time.Hour.Milliseconds(), ended["ttlMs"], 60_000)
	result, _ := ended["result"].(map[string]any)
	assert.Equal(t, "complete", result["resultType"], "clients refuse a result within a task that does not say so")
	assert.Equal(t, map[string]any{"topic": "go"}, result["structuredContent"])

	_, code := ask(t, f.urls[0], "bob", "tasks/get", `"taskId":"`+id+`",`+knowing)
	assert.Equal(t, -32602, code, "another agent's")
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		_, code := ask(t, f.urls[0], "ada", method, `"taskId":"`+id+`",`+unknowing)
		assert.Equal(t, -32021, code, method)
	}
	for _, method := range []string{"tasks/list", "tasks/result"} {
		_, code := ask(t, f.urls[0], "ada", method, `"taskId":"`+id+`",`+knowing)
		assert.Equal(t, -32601, code, method)
	}
	wrong, _ := ask(t, f.urls[0], "ada", "tools/call", `"name":"digest","arguments":{"topic":5},`+knowing)
	assert.Equal(t, true, wrong["isError"])
	_, code = ask(t, f.urls[0], "eye", "tools/call", `"name":"schedule","arguments":{"kind":"note"},`+knowing)
	assert.Zero(t, code, "refused as the result of the tool, so that the model sees it")
}

// A task that waits for an approval asks the client's user, if the credential may approve. The answer counts once, for the wait that was shown.
func TestATaskAsksTheUser(t *testing.T) {
	t.Parallel()
	f := setup(t, mcp.Config{})
	id := begin(t, f.urls[0], "give_back", `{}`)
	f.run(t)
	hers := get(t, f.urls[0], "ada", id)
	assert.Equal(t, "working", hers["status"], "this credential cannot approve: there is no use in asking its user")
	assert.Contains(t, hers["statusMessage"], "Refund 40 EUR to Bob?")

	asked := get(t, f.urls[1], "ann", id)
	require.Equal(t, "input_required", asked["status"])
	requests, _ := asked["inputRequests"].(map[string]any)
	require.Len(t, requests, 1)
	var key string
	for key = range requests {
	}
	request, _ := requests[key].(map[string]any)
	assert.Equal(t, "elicitation/create", request["method"])
	params, _ := request["params"].(map[string]any)
	assert.Equal(t, "Refund 40 EUR to Bob?", params["message"])

	reply := func(token, key, action string) int {
		_, code := ask(t, f.urls[1], token, "tasks/update", `"taskId":"`+id+`","inputResponses":{"`+key+`":{"action":"`+action+`","content":{"decision":"approve"}}},`+knowing)
		return code
	}
	refused, _ := ask(t, f.urls[1], "ada", "tasks/update", `"taskId":"`+id+`","inputResponses":{"`+key+`":{"action":"accept","content":{"decision":"approve"}}},`+knowing)
	assert.Contains(t, refused["message"], "waits for an approval", "this credential cannot approve")
	assert.NotZero(t, reply("eye", key, "accept"))
	assert.NotZero(t, reply("ann", "approval", "accept"), "no wait has this key")
	assert.NotZero(t, reply("ann", key, "perhaps"))
	assert.Zero(t, reply("ann", "approval#1", "accept"), "a wait that is over: nothing is answered")
	assert.Zero(t, reply("ann", key, "cancel"), "the user has closed the form")
	f.run(t)
	assert.Equal(t, "input_required", get(t, f.urls[0], "ann", id)["status"], "none of these has answered it")
	assert.Zero(t, reply("ann", key, "accept"))
	assert.Zero(t, reply("ann", key, "accept"), "the client has lost the answer, and sends it again")
	f.run(t)
	ended := get(t, f.urls[0], "ada", id)
	require.Equal(t, "completed", ended["status"], "%v", ended)
	result, _ := ended["result"].(map[string]any)
	assert.Equal(t, map[string]any{"by": "ann", "question": "Refund 40 EUR to Bob?", "how": "credential"}, result["structuredContent"])

	id = begin(t, f.urls[0], "give_back", `{}`)
	f.run(t)
	requests, _ = get(t, f.urls[1], "ann", id)["inputRequests"].(map[string]any)
	for key = range requests {
	}
	assert.Zero(t, reply("ann", key, "decline"))
	f.run(t)
	assert.Equal(t, "cancelled", get(t, f.urls[0], "ada", id)["status"], "refused")
}

// What a task asks without wanting an approval is answered by a credential that may write, in the form that the run wants, and by none that may only look.
func TestATaskAsksAnybody(t *testing.T) {
	t.Parallel()
	f := setup(t, mcp.Config{})
	id := begin(t, f.urls[0], "ask", `{}`)
	f.run(t)
	assert.Equal(t, "working", get(t, f.urls[0], "eye", id)["status"], "its user could not help")
	asked := get(t, f.urls[0], "ada", id)
	require.Equal(t, "input_required", asked["status"])
	requests, _ := asked["inputRequests"].(map[string]any)
	for key, request := range requests {
		form, _ := request.(map[string]any)["params"].(map[string]any)
		assert.Contains(t, form["message"], `waits for "colour"`)
		assert.Equal(t, map[string]any{"type": "object", "properties": map[string]any{"colour": map[string]any{"type": "string"}}}, form["requestedSchema"])
		params := `"taskId":"` + id + `","inputResponses":{"` + key + `":{"action":"accept","content":{"colour":"red"}}},` + knowing
		_, code := ask(t, f.urls[0], "eye", "tasks/update", params)
		assert.NotZero(t, code)
		_, code = ask(t, f.urls[1], "ada", "tasks/update", params)
		assert.Zero(t, code)
	}
	f.run(t)
	result, _ := get(t, f.urls[0], "ada", id)["result"].(map[string]any)
	assert.Equal(t, map[string]any{"colour": "red"}, result["structuredContent"])
}

// A task is cancelled by its client, also twice, and not by one that may not.
func TestAClientCancels(t *testing.T) {
	t.Parallel()
	f := setup(t, mcp.Config{})
	id := begin(t, f.urls[0], "digest", `{"topic":"x"}`)
	_, code := ask(t, f.urls[1], "eye", "tasks/cancel", `"taskId":"`+id+`",`+knowing)
	assert.NotZero(t, code)
	for range 2 {
		_, code = ask(t, f.urls[1], "ada", "tasks/cancel", `"taskId":"`+id+`",`+knowing)
		assert.Zero(t, code)
	}
	assert.Equal(t, "cancelled", get(t, f.urls[1], "ada", id)["status"])
	done := begin(t, f.urls[0], "digest", `{"topic":"x"}`)
	f.run(t)
	_, code = ask(t, f.urls[1], "ada", "tasks/cancel", `"taskId":"`+done+`",`+knowing)
	assert.Zero(t, code, "it has ended, which its client may not know")
	assert.Equal(t, "completed", get(t, f.urls[1], "ada", done)["status"])
	_, code = ask(t, f.urls[1], "ada", "tasks/cancel", `"taskId":"nowhere",`+knowing)
	assert.Equal(t, -32602, code)
}

// A client without tasks waits for the end of its call, and is asked in the midst of it. After a while it gets the id.
func TestAClientWithoutTasksWaits(t *testing.T) {
	t.Parallel()
	f := setup(t, mcp.Config{Wait: 30 * time.Second})
	ctx, cancel := context.WithCancel(t.Context())
	var runs sync.WaitGroup
	runs.Go(func() {
		for ctx.Err() == nil {
			_, _ = f.scheduler.RunDue(ctx, core.Scope{})
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	text, failed := call(t, client(t, f.urls[0], "ada"), "digest", args{"topic": "go"})
	assert.False(t, failed)
	assert.JSONEq(t, `{"topic":"go"}`, text)

	cancel()
	runs.Wait()

	patient := setup(t, mcp.Config{Wait: time.Millisecond})
	text, failed = call(t, client(t, patient.urls[0], "ada"), "digest", args{"topic": "go"})
	assert.False(t, failed)
	assert.Regexp(t, `^Task "[^"]+" is not finished: it is due\. Ask for it again with explain\.$`, text)
}

// A stopping server answers calls that wait.
func TestAStoppingServerAnswersAtOnce(t *testing.T) {
	t.Parallel()
	stopping := make(chan struct{})
	close(stopping)
	f := setup(t, mcp.Config{Wait: time.Hour, Stopping: stopping})
	text, _ := call(t, client(t, f.urls[0], "ada"), "digest", args{"topic": "go"})
	assert.Contains(t, text, "is not finished")
}

// The user of a client on the other side of standard input is asked in the midst of a call.
func TestAUserIsAskedInTheMidstOfACall(t *testing.T) {
	t.Parallel()
	f := setup(t, mcp.Config{})
	ours, theirs := sdk.NewInMemoryTransports()
	server := mcp.New(f.scheduler, mcp.Config{Kinds: kinds})
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { _ = server.Run(ctx, "ada", ours) })
	ended.Go(func() {
		for ctx.Err() == nil {
			_, _ = f.scheduler.RunDue(ctx, core.Scope{})
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			assert.Equal(t, "Refund 40 EUR to Bob?", r.Params.Message)
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"decision": "approve"}}, nil
		},
	})
	session, err := c.Connect(ctx, theirs, nil)
	require.NoError(t, err)
	text, failed := call(t, session, "give_back", nil)
	assert.False(t, failed, text)
	assert.Contains(t, text, `"question":"Refund 40 EUR to Bob?"`)
	require.NoError(t, session.Close())
	cancel()
	ended.Wait()
}

// Tools that cannot be are refused before anything is served.
func TestToolsAreChecked(t *testing.T) {
	t.Parallel()
	for name, tool := range map[string]*core.Tool{
		"schedule": {Description: "the name of one of ours"},
		"a b":      {Description: "no name for a tool"},
		"nothing":  {},
		"text":     {Description: "x", Input: json.RawMessage(`{"type":"string"}`)},
		"broken":   {Description: "x", Input: json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/$defs/none"}}}`)},
	} {
		config := mcp.Config{Kinds: map[string]core.KindConfig{name: {Tool: tool}}}
		var wrong *core.ConfigError
		require.ErrorAs(t, config.Check(), &wrong, name)
		assert.Panics(t, func() { mcp.New(nil, config) }, name)
	}
}
