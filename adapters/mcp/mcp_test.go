package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/adapters/mcp"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is two servers of one store, which know nothing of each other.
type fixture struct {
	scheduler *core.Scheduler
	urls      [2]string
}

// kinds are those of the fixture: digest and refund are tools.
var kinds = map[string]core.KindConfig{
	"note":   {},
	"digest": {Tool: &core.Tool{Description: "writes a digest", Input: json.RawMessage(`{"type":"object","properties":{"topic":{"type":"string"}},"required":["topic"]}`)}},
	"ask":    {Tool: &core.Tool{Description: "asks anybody"}},
	"refund": {MaxAttempts: 1, Tool: &core.Tool{Name: "give_back", Description: "refunds"}},
}

// tokens are the credentials of the fixture, by name.
var tokens = []httpadapter.Token{
	{Token: "ada", Grant: httpadapter.Grant{Name: "ada", Agents: []string{"ada"}, Scopes: []operation.Scope{operation.ScopeRead, operation.ScopeWrite}}},
	{Token: "ann", Grant: httpadapter.Grant{Name: "ann", Agents: []string{"ada"}, Scopes: []operation.Scope{operation.ScopeRead, operation.ScopeApprove}}},
	{Token: "bob", Grant: httpadapter.Grant{Name: "bob", Agents: []string{"bob"}}},
	{Token: "eye", Grant: httpadapter.Grant{Name: "eye", Agents: []string{"ada"}, Scopes: []operation.Scope{operation.ScopeRead}}},
	{Token: "team", Grant: httpadapter.Grant{Name: "team", Patterns: []string{"a*"}}},
	{Token: "clock", Grant: httpadapter.Grant{Name: "clock", Agents: []string{"ada"}, Scopes: []operation.Scope{operation.ScopeTrigger}}},
}

func setup(t *testing.T, config mcp.Config) *fixture {
	t.Helper()
	s, err := core.New(memstore.New(memstore.Config{Partitions: 1}), core.Config{Kinds: kinds})
	require.NoError(t, err)
	core.Handle(s, "digest", func(_ context.Context, task *core.Task[json.RawMessage]) error { return task.SetResult(task.Payload) })
	core.Handle(s, "refund", func(_ context.Context, task *core.Task[json.RawMessage]) error {
		heard, waited := task.Heard()
		switch {
		case !waited:
			return core.Await(core.Signal{Key: "approval", From: core.FromApproval, Question: "Refund 40 EUR to Bob?"}, nil)
		case !strings.Contains(string(heard.Payload), "approve"):
			return core.Cancel(errors.New("refused"))
		}
		return task.SetResult(map[string]string{"by": heard.By, "question": heard.Question, "how": string(heard.How)})
	})
	core.Handle(s, "ask", func(_ context.Context, task *core.Task[json.RawMessage]) error {
		if heard, waited := task.Heard(); waited {
			return task.SetResult(heard.Payload)
		}
		return core.Await(core.Signal{Key: "colour", Answer: json.RawMessage(`{"type":"object","properties":{"colour":{"type":"string"}}}`)}, nil)
	})
	f := &fixture{scheduler: s}
	config.Kinds, config.Retention = kinds, time.Hour
	for i := range f.urls {
		server := httptest.NewServer(httpadapter.New(s, httpadapter.Config{Scoped: tokens, MCP: mcp.New(s, config)}))
		t.Cleanup(server.Close)
		f.urls[i] = server.URL + "/mcp"
	}
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	return f
}

// run runs what is due.
func (f *fixture) run(t *testing.T) {
	t.Helper()
	_, err := f.scheduler.RunDue(t.Context(), core.Scope{})
	require.NoError(t, err)
}

// bearer sends a token.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// client is the library's own, with a token.
func client(t *testing.T, url, token string) *sdk.ClientSession {
	t.Helper()
	c := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	session, err := c.Connect(t.Context(), &sdk.StreamableClientTransport{
		Endpoint: url, HTTPClient: &http.Client{Transport: bearer(token)}, DisableStandaloneSSE: true, MaxRetries: -1,
	}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// call calls a tool, and returns its text.
func call(t *testing.T, c *sdk.ClientSession, tool string, arguments any) (text string, failed bool) {
	t.Helper()
	r, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: arguments})
	require.NoError(t, err)
	require.Len(t, r.Content, 1)
	content, ok := r.Content[0].(*sdk.TextContent)
	require.True(t, ok)
	return content.Text, r.IsError
}

// args are arguments.
type args map[string]any

func names(t *testing.T, c *sdk.ClientSession) (all []string, size int) {
	t.Helper()
	list, err := c.ListTools(t.Context(), nil)
	require.NoError(t, err)
	var own []*sdk.Tool
	for _, tool := range list.Tools {
		all = append(all, tool.Name)
		if tool.Name != "ask" && tool.Name != "digest" && tool.Name != "give_back" {
			own = append(own, tool)
		}
	}
	data, err := json.Marshal(own)
	require.NoError(t, err)
	return all, len(data)
}

// The list of tools is in front of each answer of a model: it is short. A caller sees what it may call.
func TestTheListOfToolsIsShort(t *testing.T) {
	t.Parallel()
	f := setup(t, mcp.Config{})
	all, size := names(t, client(t, f.urls[0], "ada"))
	assert.ElementsMatch(t, []string{"schedule", "preview", "list_tasks", "explain", "pause", "resume", "run_now", "cancel", "signal", "ask", "digest", "give_back"}, all)
	assert.LessOrEqual(t, size, 4<<10)
	t.Logf("%d bytes of list, without the kinds of the server", size)
	some, _ := names(t, client(t, f.urls[0], "eye"))
	assert.ElementsMatch(t, []string{"preview", "list_tasks", "explain"}, some)
}

// A model schedules, looks and changes; each answer begins with a sentence, each error says how to mend the call.
func TestAModelSchedules(t *testing.T) {
	t.Parallel()
	f := setup(t, mcp.Config{})
	c := client(t, f.urls[0], "ada")
	for _, step := range []struct {
		tool   string
		args   args
		says   string
		failed bool
	}{
		{"schedule", args{"kind": "note", "id": "standup", "when": "every weekday at 9am in Europe/Berlin", "payload": args{"n": 1}}, `Task "standup" is scheduled: every weekday at 09:00 in Europe/Berlin; next: `, false},
		{"schedule", args{"kind": "note", "id": "standup", "when": "every weekday at 9am in Europe/Berlin", "payload": args{"n": 1}}, `Task "standup" existed already, just so: every weekday`, false},
		{"schedule", args{"kind": "note", "id": "standup", "every": "2h"}, `Task "standup" existed already, and is unchanged`, false},
		{"schedule", args{"kind": "note", "id": "standup", "every": "2h", "replace": true}, `Task "standup" was changed: every 2 hours`, false},
		{"schedule", args{"kind": "note", "id": "at once"}, `Task "at once" is scheduled, and is due now.`, false},
		{"cancel", args{"id": "at once"}, "", false},
		{"schedule", args{"kind": "note", "id": "once", "when": "in 2 hours"}, `Task "once" is scheduled: 20`, false},
		{"cancel", args{"id": "once"}, "", false},
		{"schedule", args{"kind": "memo"}, `kind "memo" is not known: use one of ask, digest, note, refund`, true},
		{"schedule", args{"kind": "note", "cron": "0 9 * * *"}, "zone is required with cron: use the user's, such as Europe/Berlin", true},
		{"schedule", args{"kind": "note", "when": "every day at 9 in Europe/Berlin"}, "when is ambiguous: 9 in the morning or in the evening?", true},
		{"schedule", args{"kind": "note", "when": "now", "at": "2031-01-02T03:04:05Z"}, "when", true},
		{"schedule", args{"kind": "note", "cadence": "daily"}, "cadence", true},
		{"preview", args{"when": "every monday at 18:30 in Asia/Tokyo"}, "every monday at 18:30 in Asia/Tokyo; next: ", false},
		{"preview", args{"cron": "61 9 * * *", "zone": "UTC"}, "cron", true},
		{"preview", args{}, "At once", false},
		{"list_tasks", args{}, "3 tasks.\nstandup | note | waiting | every 2 hours", false},
		{"list_tasks", args{"status": "sleeping"}, "status", true},
		{"list_tasks", args{"limit": 1000}, "limit must be 1 to 100", true},
		{"pause", args{"id": "standup", "for": "2h", "reason": "holiday"}, `Task "standup" is paused for 2h.`, false},
		{"explain", args{"id": "standup"}, "the task has been paused since ", false},
		{"pause", args{"id": "standup", "for": "soon"}, "for must be a duration", true},
		{"pause", args{"id": ""}, "id is required", true},
		{"resume", args{"id": "standup"}, `Task "standup" is resumed.`, false},
		{"run_now", args{"id": "standup"}, `Task "standup" is due now`, false},
		{"cancel", args{"id": "standup", "reason": "enough"}, `Task "standup" is cancelled.`, false},
		{"cancel", args{"id": "nowhere"}, "this agent has no such task: list_tasks has the ids", true},
		{"signal", args{"key": "go", "payload": args{"ok": true}}, `No task waits for "go" yet: the signal is kept`, false},
	} {
		text, failed := call(t, c, step.tool, step.args)
		assert.Contains(t, text, step.says, "%s %v", step.tool, step.args)
		assert.Equal(t, step.failed, failed, "%s %v: %s", step.tool, step.args, text)
	}
	info, err := f.scheduler.Task(t.Context(), "ada", "standup")
	require.NoError(t, err)
	assert.Contains(t, info.Reason, "enough")
	assert.Contains(t, info.Reason, "ada", "the credential is named, and not what the model says")
}

// The agent is that of the credential. One that is for several names it in the address.
func TestTheAgentIsThatOfTheCredential(t *testing.T) {
	t.Parallel()
	f := setup(t, mcp.Config{})
	_, failed := call(t, client(t, f.urls[0], "ada"), "schedule", args{"kind": "note", "id": "hers", "every": "1h"})
	require.False(t, failed)
	for _, tool := range []string{"explain", "pause", "resume", "run_now", "cancel"} {
		text, failed := call(t, client(t, f.urls[0], "bob"), tool, args{"id": "hers"})
		assert.True(t, failed, tool)
		assert.Contains(t, text, "no such task", tool)
		text, failed = call(t, client(t, f.urls[0], "eye"), tool, args{"id": "hers"})
		assert.Equal(t, tool != "explain", failed, "%s: %s", tool, text)
	}
	text, _ := call(t, client(t, f.urls[0]+"?agent=ada", "team"), "list_tasks", nil)
	assert.Contains(t, text, "hers")
	for url, want := range map[string]int{"": http.StatusBadRequest, "?agent=bob": http.StatusForbidden, "?agent=ada&agent=bob": http.StatusBadRequest, "?who=ada": http.StatusBadRequest} {
		assert.Equal(t, want, listed(t, f.urls[0]+url, "team"), url)
	}
	assert.Equal(t, http.StatusForbidden, listed(t, f.urls[0]+"?agent=bob", "ada"))
	assert.Equal(t, http.StatusForbidden, listed(t, f.urls[0], "clock"))
	assert.Equal(t, http.StatusUnauthorized, listed(t, f.urls[0], "guess"))
	_, err := client(t, f.urls[0], "bob").ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "duly://agents/ada/tasks"})
	require.ErrorContains(t, err, "not found")
	page, err := client(t, f.urls[0], "eye").ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "duly://agents/ada/tasks"})
	require.NoError(t, err)
	assert.Contains(t, page.Contents[0].Text, `"hers"`)
}

// A model has no more than the scopes of its address, whatever its credential has, or a server that asks for none.
func TestTheAddressBoundsTheModel(t *testing.T) {
	t.Parallel()
	f := setup(t, mcp.Config{})
	some, _ := names(t, client(t, f.urls[0]+"?scopes=read", "ada"))
	assert.ElementsMatch(t, []string{"preview", "list_tasks", "explain"}, some)
	text, failed := call(t, client(t, f.urls[0]+"?scopes=read,approve", "ada"), "schedule", args{"kind": "note"})
	assert.True(t, failed, text)
	for url, want := range map[string]int{"?scopes=work": http.StatusBadRequest, "?scopes=": http.StatusBadRequest, "?scopes=read,": http.StatusBadRequest, "?scopes=write": http.StatusForbidden} {
		assert.Equal(t, want, listed(t, f.urls[0]+url, "eye"), url)
	}
	open := httptest.NewServer(httpadapter.New(f.scheduler, httpadapter.Config{MCP: mcp.New(f.scheduler, mcp.Config{Kinds: kinds})}))
	t.Cleanup(open.Close)
	url := open.URL + "/mcp?agent=ada"
	id := begin(t, url, "give_back", `{}`)
	f.run(t)
	assert.Equal(t, "input_required", get(t, url, "ada", id)["status"], "who asks for no credential lets everybody do everything")
	assert.Equal(t, "working", get(t, url+"&scopes=read,write", "ada", id)["status"])
	refused, _ := ask(t, url+"&scopes=read,write", "ada", "tools/call", `"name":"signal","arguments":{"key":"approval","payload":{"decision":"approve"}},`+knowing)
	assert.Equal(t, true, refused["isError"], "%v", refused)
}

// listed asks for the tools, and returns the status of the answer.
func listed(t *testing.T, url, token string) int {
	t.Helper()
	status, _ := exchange(t, url, token, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, nil)
	return status
}

// exchange sends a request with headers.
func exchange(t *testing.T, url, token, body string, header http.Header) (status int, answer map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	require.NoError(t, err)
	maps.Copy(r.Header, header)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	res, err := (&http.Client{Transport: bearer(token)}).Do(r)
	require.NoError(t, err)
	defer func() { _ = res.Body.Close() }()
	_ = json.NewDecoder(res.Body).Decode(&answer)
	return res.StatusCode, answer
}
