package attack_test

// Routes, scopes and agents: every operation of openapi.json is called with every credential.

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/hooks"
	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

// target is the API under attack, with a store that counts its calls. The tasks of ann exist.
type target struct {
	spy     *storetest.Spy
	handler http.Handler
	events  *httpadapter.Events
}

// The scopes of the API, none for calls that are open, the credential of GET /v1/cron, and the signatures of hooks.
const (
	open    = httpadapter.Scope("")
	read    = httpadapter.ScopeRead
	trigger = httpadapter.ScopeTrigger
	write   = httpadapter.ScopeWrite
	approve = httpadapter.ScopeApprove
	work    = httpadapter.ScopeWork
	cron    = httpadapter.Scope("cron")
	hooked  = httpadapter.Scope("hook")
)

func newTarget(t *testing.T, config httpadapter.Config) *target {
	t.Helper()
	return newTargetFor(t, nil, config)
}

// newTargetFor is a target whose scheduler asks an authorizer.
func newTargetFor(t *testing.T, authorizer core.Authorizer, config httpadapter.Config) *target {
	t.Helper()
	a := &target{spy: &storetest.Spy{Store: memstore.New(memstore.Config{})}, events: config.Events}
	s, err := core.New(a.spy, core.Config{
		Kinds: map[string]core.KindConfig{"seen": {Activity: &core.Activity{Delay: time.Hour}}}, Authorizer: authorizer,
	})
	require.NoError(t, err)
	core.Handle(s, "ok", func(context.Context, *core.Task[any]) error { return nil })
	for _, agent := range []string{"ann", "bob"} {
		_, err = s.Submit(t.Context(), core.NewTask{Agent: agent, ID: "i", Kind: "ok", Group: "g", Payload: "payload of " + agent})
		require.NoError(t, err)
	}
	a.handler = httpadapter.New(s, config)
	return a
}

// call makes one request; a stream is cut off at once.
func (a *target) call(t *testing.T, token, method, path, body string) *httptest.ResponseRecorder {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if strings.HasPrefix(path, "/v1/events") {
		cancel()
	}
	r := httptest.NewRequestWithContext(ctx, method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	switch token {
	case "":
	case "signed":
		r.Header.Set("X-Signature", hex.EncodeToString(digest([]byte(hookSecret), body)))
	case "signed otherwise":
		r.Header.Set("X-Signature", hex.EncodeToString(digest([]byte("another secret of a hook"), body)))
	default:
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, r)
	return w
}

// request is how an operation is called about an agent. AGENT is replaced by its name.
type request struct {
	path, body string
	wide       bool              // it is about all agents: a credential for some may not
	nobody     bool              // it is about no agent: a credential for any may
	also       httpadapter.Scope // in place of the one that the call needs; empty for none
}

// operation is what the table knows of a call: what scope it needs, and how it is made.
type operation struct {
	scope    httpadapter.Scope
	requests []request
}

// plain are the operations whose path says all: those with {agent} are about it, those of wide are about everybody.
var (
	wide = []string{
		"post /v1/kinds/{kind}/pause", "post /v1/kinds/{kind}/resume", "post /v1/keys/{key}/pause", "post /v1/keys/{key}/resume",
		"get /v1/agents", "get /v1/pauses", "get /v1/profiles", "get /v1/limits", "get /v1/budgets", "get /v1/kinds", "get /v1/processes", "get /v1/doctor", "post /v1/audit", "get /v1/stats", "get /metrics", "get /product/scheduler/allstatus",
	}
	unguarded = []string{"get /healthz", "get /readyz", "get /openapi.json", "get /v1/openapi.json"}
)

// named are the operations that name an agent in a query or a body, or need another scope than their method says.
var named = map[string]operation{
	"post /v1/run-due": {trigger, []request{{body: `{"agent_ids":["AGENT"]}`}, {body: `{"all":true}`, wide: true}}},
	"get /v1/cron":     {cron, []request{{}}},
	"post /v1/hooks/{name}": {hooked, []request{
		{path: "/v1/hooks/tell", body: `{"agent":"AGENT"}`},
		{path: "/v1/hooks/order", body: `{"agent":"AGENT"}`},
		{path: "/v1/hooks/tell?agent=ann", body: `{"agent":"AGENT","of":"ann"}`},
	}},
	"post /v1/work/claim":  {work, []request{{body: `{"kinds":["ok"],"agent_ids":["AGENT"]}`}}},
	"post /v1/work/keep":   {work, []request{{body: `{"runs":[]}`, nobody: true}}}, // its tickets say whose runs they are about
	"post /v1/work/return": {work, []request{{body: `{"runs":[]}`, nobody: true}}},
	"post /v1/tasks": {write, []request{
		{body: `{"agent_id":"AGENT","kind":"ok"}`},
		{body: `{"tasks":[{"agent_id":"AGENT","kind":"ok"}]}`},
		{body: `{"agent_id":"AGENT","user_id":"AGENT","kind":"ok"}`},
	}},
	"post /v1/next":                            {read, []request{{body: `{"cron":"@daily"}`, nobody: true}}},
	"get /v1/presets":                          {read, []request{{nobody: true}}},
	"put /v1/limits":                           {write, []request{{body: `{"kind":"ok","concurrency":1000}`, wide: true}}},
	"delete /v1/limits":                        {write, []request{{path: "/v1/limits?kind=ok", wide: true}}},
	"put /v1/budgets":                          {write, []request{{body: `{"kind":"ok","unit":"tokens","per":"day","amount":1000000}`, wide: true}}},
	"delete /v1/budgets":                       {write, []request{{path: "/v1/budgets?kind=ok&unit=tokens&per=day", wide: true}}},
	"get /v1/tasks":                            {read, []request{{path: "/v1/tasks?agent_id=AGENT"}, {path: "/v1/tasks?status=failed", wide: true}, {path: "/v1/tasks?overdue=true&kind=ok", wide: true}}},
	"post /v1/tasks/replay":                    {write, []request{{body: `{"agent_id":"AGENT","since":"1d","confirm":true}`}, {body: `{"kind":"ok","confirm":true}`, wide: true}}},
	"post /v1/tasks/cancel":                    {write, []request{{body: `{"agent_id":"AGENT","kind":"none","confirm":true}`}, {body: `{"kind":"none","confirm":true}`, wide: true}}},
	"post /v1/tasks/delete":                    {write, []request{{body: `{"agent_id":"AGENT","kind":"none","confirm":true}`}, {body: `{"status":["failed"],"confirm":true}`, wide: true}}},
	"post /v1/tasks/run":                       {write, []request{{body: `{"agent_id":"AGENT","confirm":true}`}, {body: `{"overdue":true,"confirm":true}`, wide: true}}},
	"post /v1/tasks/pause":                     {write, []request{{body: `{"agent_id":"AGENT","dry_run":true}`}, {body: `{"all":true,"dry_run":true}`, wide: true}}},
	"post /v1/tasks/resume":                    {write, []request{{body: `{"agent_id":"AGENT","confirm":true}`}, {body: `{"all":true,"confirm":true}`, wide: true}}},
	"post /v1/pause":                           {write, []request{{body: `{"all":true}`, wide: true}}},
	"post /v1/resume":                          {write, []request{{body: `{"all":true}`, wide: true}}},
	"post /v1/signals/{agent}/{key}":           {approve, []request{{path: "/v1/signals/AGENT/k", also: write}}},
	"patch /v1/agents/{agent}/tasks/{id}":      {write, []request{{path: "/v1/agents/AGENT/tasks/i", body: `{"level":2}`}}},
	"get /v1/jobs":                             {read, []request{{path: "/v1/jobs?agent_id=AGENT"}}},
	"get /v1/events":                           {read, []request{{path: "/v1/events?agent_id=AGENT"}}},
	"post /v1/activity":                        {write, []request{{body: `{"kind":"seen","user_id":"AGENT","agent_id":"AGENT"}`}}},
	"post /product/scheduler/submit":           {write, []request{{body: `{"user_id":"AGENT","label":"ok","content":""}`}, {body: `[{"user_id":"AGENT","label":"ok","content":""}]`}}},
	"get /product/scheduler/status":            {read, []request{{path: "/product/scheduler/status?user_id=AGENT"}}},
	"get /product/scheduler/task_queue_status": {read, []request{{path: "/product/scheduler/task_queue_status?user_id=AGENT"}}},
	"post /product/scheduler/wait":             {read, []request{{path: "/product/scheduler/wait?user_name=AGENT&timeout_seconds=0"}}},
	"get /product/scheduler/wait/stream":       {read, []request{{path: "/product/scheduler/wait/stream?user_name=AGENT&timeout_seconds=0"}}},
}

// operations are all calls of openapi.json. One that nobody has thought about fails the test.
func operations(t *testing.T) map[string]operation {
	t.Helper()
	data, err := os.ReadFile("../../adapters/http/openapi.json")
	require.NoError(t, err)
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	require.NoError(t, json.Unmarshal(data, &doc))
	all := map[string]operation{}
	for path, methods := range doc.Paths {
		for method := range methods {
			name := method + " " + path
			one, known := named[name]
			if !known {
				one = operation{scope: write, requests: []request{{wide: slices.Contains(wide, name)}}}
				switch {
				case slices.Contains(unguarded, name):
					one.scope = open
				case method == "get":
					one.scope = read
				}
				require.True(t, one.scope == open || one.requests[0].wide || strings.Contains(path, "{agent}"),
					"%s is in no list of this test: who may make it?", name)
			}
			one.requests = slices.Clone(one.requests)
			for i := range one.requests {
				if one.requests[i].path == "" {
					one.requests[i].path = strings.NewReplacer("{agent}", "AGENT", "{id}", "i", "{kind}", "ok", "{key}", "k", "{group}", "g").Replace(path)
				}
			}
			all[name] = one
		}
	}
	require.Greater(t, len(all), 30)
	return all
}

// credential is a token, and what it is for.
type credential struct {
	token  string
	scopes []httpadapter.Scope // nil for all
	agents []string            // nil for all
	starts []string            // beginnings of agents, besides these
}

// may reports whether a credential covers a request about an agent.
func (c *credential) may(one operation, r request, agent string) bool {
	if one.scope == open {
		return true
	}
	if one.scope == cron || c.token == "cron" {
		return one.scope == cron && c.token == "cron"
	}
	if one.scope == hooked || strings.HasPrefix(c.token, "signed") {
		return one.scope == hooked && c.token == "signed" && agent == "ann"
	}
	if c.token == "" || c.token == "guessed" || c.scopes != nil && !slices.Contains(c.scopes, one.scope) && !slices.Contains(c.scopes, r.also) {
		return false
	}
	if r.nobody {
		return true
	}
	begins := func(start string) bool { return strings.HasPrefix(agent, start) }
	return c.agents == nil && c.starts == nil || !r.wide && (slices.Contains(c.agents, agent) || slices.ContainsFunc(c.starts, begins))
}

var credentials = []credential{
	{token: ""},
	{token: "guessed"},
	{token: "cron"},
	{token: "signed"},
	{token: "signed otherwise"},
	{token: "root"},
	{token: "named"},
	{token: "nothing", scopes: []httpadapter.Scope{}},
	{token: "reads", scopes: []httpadapter.Scope{read}},
	{token: "triggers", scopes: []httpadapter.Scope{trigger}},
	{token: "writes", scopes: []httpadapter.Scope{write}},
	{token: "works", scopes: []httpadapter.Scope{work}},
	{token: "ann works", agents: []string{"ann"}, scopes: []httpadapter.Scope{work}},
	{token: "approves", scopes: []httpadapter.Scope{approve}},
	{token: "ann approves", agents: []string{"ann"}, scopes: []httpadapter.Scope{approve}},
	{token: "reads and writes", scopes: []httpadapter.Scope{read, write}},
	{token: "ann", agents: []string{"ann"}},
	{token: "ann reads", agents: []string{"ann"}, scopes: []httpadapter.Scope{read}},
	{token: "ann writes", agents: []string{"ann"}, scopes: []httpadapter.Scope{write}},
	{token: "both", agents: []string{"ann", "bob"}},
	{token: "nobody", agents: []string{}},
	{token: "star", agents: []string{"*"}}, // a name like any other: it is no wildcard
	{token: "pattern", starts: []string{"an", "x"}},
	{token: "any", starts: []string{""}}, // each agent, and nothing that is about all
	{token: "pattern and one", starts: []string{"ni"}, agents: []string{"bob"}, scopes: []httpadapter.Scope{read}},
	{token: "an", agents: []string{"an", "annn", "ANN", "ann ", "a"}},
}

// hookSecret signs what is sent to hooks.
const hookSecret = "the secret of all hooks"

// inbound are hooks for ann alone, whose messages say whom they are about.
func inbound() *hooks.Hooks {
	plain := hooks.Config{Name: "tell", Scheme: hooks.HMAC, Secrets: []string{hookSecret}, Agents: []string{"ann"}, Signal: &hooks.Signal{Agent: "{/agent}", Key: "k"}}
	order := plain
	order.Name, order.Signal, order.Task = "order", nil, &core.NewTask{Agent: "{/agent}", Kind: "ok"}
	all, err := hooks.New(plain, order)
	if err != nil {
		panic(err)
	}
	return all
}

// config is the API with all credentials.
func config() httpadapter.Config {
	c := httpadapter.Config{
		Hooks:  inbound(),
		Tokens: []string{"root"}, CronSecret: "cron", Events: httpadapter.NewEvents(), MaxTimeout: time.Second,
		Metrics:  http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("figures")) }),
		Profiles: func(context.Context, string, int) ([]core.Profile, string, error) { return nil, "", nil },
	}
	for _, one := range credentials[6:] {
		g := httpadapter.Grant{Name: one.token, Scopes: one.scopes, Agents: one.agents}
		for _, start := range one.starts {
			g.Patterns = append(g.Patterns, start+"*")
		}
		c.Scoped = append(c.Scoped, httpadapter.Token{Token: one.token, Grant: g})
	}
	return c
}

// Every operation with every credential, about an agent that exists and one that does not: what is not covered is 401 or 403, with no
// store call and the same answer for both agents; what is covered is neither.
func TestEveryRouteWithEveryCredential(t *testing.T) {
	t.Parallel()
	a, tried := newTarget(t, config()), 0
	for name, one := range operations(t) {
		method, _, _ := strings.Cut(name, " ")
		for i := range credentials {
			c := &credentials[i]
			for _, r := range one.requests {
				refusals := map[string]bool{}
				for _, agent := range []string{"ann", "bob", "nix", "*"} {
					path, body := strings.ReplaceAll(r.path, "AGENT", agent), strings.ReplaceAll(r.body, "AGENT", agent)
					before := a.spy.Calls()
					w := a.call(t, c.token, strings.ToUpper(method), path, body)
					what := method + " " + path + " " + body + " as " + c.token + ": " + w.Body.String()
					tried++
					if c.may(one, r, agent) {
						assert.NotContains(t, []int{401, 403}, w.Code, what)
						assert.Less(t, w.Code, 500, what)
						continue
					}
					want := 403
					if c.token == "" || c.token == "guessed" || (c.token == "cron") != (one.scope == cron) || (c.token == "signed") != (one.scope == hooked) || c.token == "signed otherwise" {
						want = 401
					}
					assert.Equal(t, want, w.Code, what)
					assert.Equal(t, before, a.spy.Calls(), "refused before any store call: %s", what)
					assert.NotContains(t, w.Body.String(), "payload of")
					refusals[strings.ReplaceAll(w.Body.String(), `\"`+agent+`\"`, "AGENT")] = true
				}
				assert.LessOrEqual(t, len(refusals), 1, "the answer does not tell whether an agent exists: %s as %s", name, c.token)
			}
		}
	}
	assert.Greater(t, tried, 2000)
}

// Every operation that is not open asks the authorizer of the scheduler, with who calls and what for. What it refuses is 403, with no store call
// and with its reason.
func TestEveryRouteAsksTheAuthorizer(t *testing.T) {
	t.Parallel()
	var asked []core.Access
	var callers []string
	refuses := false
	a := newTargetFor(t, core.AuthorizerFunc(func(_ context.Context, who core.Principal, what core.Access) error {
		if !refuses {
			return nil
		}
		asked, callers = append(asked, what), append(callers, who.Name)
		return errors.New("the tenant is suspended")
	}), config())
	refuses = true
	for name, one := range operations(t) {
		token, caller := "named", "named"
		switch one.scope {
		case open:
			continue
		case cron:
			token, caller = "cron", ""
		case hooked:
			token = "signed"
		default:
		}
		method, path, _ := strings.Cut(name, " ")
		want := map[httpadapter.Scope]model.Action{read: model.ActionRead, write: model.ActionControl, trigger: model.ActionRun, work: model.ActionRun, cron: model.ActionRun, approve: model.ActionApprove, hooked: model.ActionControl}[one.scope]
		if path == "/v1/tasks" && method == "post" || path == "/v1/activity" || path == "/product/scheduler/submit" {
			want = model.ActionSubmit
		}
		for _, r := range one.requests {
			if r.nobody {
				continue
			}
			asked, callers = nil, nil
			before := a.spy.Calls()
			agent := "ann"
			if one.scope == hooked {
				caller, want = "hook:tell", model.ActionControl
				if r.path == "/v1/hooks/order" {
					caller, want = "hook:order", model.ActionSubmit
				}
			}
			w := a.call(t, token, strings.ToUpper(method), strings.ReplaceAll(r.path, "AGENT", agent), strings.ReplaceAll(r.body, "AGENT", agent))
			assert.Equal(t, 403, w.Code, "%s: %s", name, w.Body)
			assert.Contains(t, w.Body.String(), "the tenant is suspended", name)
			assert.Equal(t, before, a.spy.Calls(), name)
			if assert.NotEmpty(t, asked, name) {
				if r.wide || one.scope == cron {
					agent = ""
				}
				assert.Equal(t, want, asked[0].Action, name)
				assert.Equal(t, agent, asked[0].Agent, name)
				assert.Equal(t, caller, callers[0], name)
			}
		}
	}
}

// A path that does not exist and a method that a path has not are told to nobody without a credential.
func TestWhatExistsIsToldToNobody(t *testing.T) {
	t.Parallel()
	a := newTarget(t, config())
	answers := map[string]bool{}
	for _, path := range []string{"/v1/stats", "/v1/nothing", "/", "/v1/agents/ann/tasks/i", "/v1/agents/ann/tasks/none", "/metrics", "/v1/cron", "/v1/cron/x"} {
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "CONNECT", "get", "FOO"} {
			before := a.spy.Calls()
			w := a.call(t, "guessed", method, path, "")
			assert.Equal(t, 401, w.Code, "%s %s", method, path)
			assert.Equal(t, before, a.spy.Calls())
			answers[w.Body.String()] = true
		}
	}
	assert.Len(t, answers, 1, "all have the same answer")
}
