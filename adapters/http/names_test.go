package http_test

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
)

// foreign has, for each call that the API describes, requests that name ann somewhere, or nobody: none is for a credential
// that covers bob. Calls without one are open, or about what all have in common.
var foreign = map[string][][2]string{ // each request is its path and its body
	"post /v1/run-due": {{"/v1/run-due", `{"agent_ids":["ann"]}`}, {"/v1/run-due", `{"agent_ids":["bob","ann"]}`}, {"/v1/run-due", `{"all":true}`}},
	"post /v1/tasks": {
		{"/v1/tasks", `{"agent_id":"ann","kind":"ok"}`},
		{"/v1/tasks", `{"tasks":[{"agent_id":"bob","kind":"ok"},{"agent_id":"ann","kind":"ok"}]}`},
		{"/v1/tasks", `{"agent_id":"bob","user_id":"ann","kind":"ok"}`},
		{"/v1/tasks", `{"tasks":[{"agent_id":"bob","kind":"ok"},{"agent_id":"bob","user_id":"ann","kind":"ok"}]}`},
	},
	"post /v1/work/claim":                       {{"/v1/work/claim", `{"kinds":["ok"],"agent_ids":["ann"]}`}, {"/v1/work/claim", `{"kinds":["ok"],"agent_ids":["bob","ann"]}`}},
	"post /v1/tasks/replay":                     {{"/v1/tasks/replay", `{"agent_id":"ann","since":"1d"}`}, {"/v1/tasks/replay", `{"all":true,"confirm":true}`}},
	"post /v1/tasks/cancel":                     {{"/v1/tasks/cancel", `{"agent_id":"ann"}`}, {"/v1/tasks/cancel", `{"all":true,"confirm":true}`}},
	"post /v1/tasks/delete":                     {{"/v1/tasks/delete", `{"agent_id":"ann"}`}, {"/v1/tasks/delete", `{"status":["failed"]}`}},
	"post /v1/tasks/run":                        {{"/v1/tasks/run", `{"agent_id":"ann"}`}, {"/v1/tasks/run", `{"all":true,"confirm":true}`}},
	"post /v1/tasks/pause":                      {{"/v1/tasks/pause", `{"agent_id":"ann"}`}, {"/v1/tasks/pause", `{"all":true,"confirm":true}`}},
	"post /v1/tasks/resume":                     {{"/v1/tasks/resume", `{"agent_id":"ann"}`}, {"/v1/tasks/resume", `{"all":true,"confirm":true}`}},
	"get /v1/tasks":                             {{"/v1/tasks?agent_id=ann"}, {"/v1/tasks"}},
	"get /v1/agents/{agent}/tasks/{id}":         {{"/v1/agents/ann/tasks/i"}},
	"patch /v1/agents/{agent}/tasks/{id}":       {{"/v1/agents/ann/tasks/i", `{"level":1}`}},
	"delete /v1/agents/{agent}/tasks/{id}":      {{"/v1/agents/ann/tasks/i"}},
	"post /v1/agents/{agent}/tasks/{id}/pause":  {{"/v1/agents/ann/tasks/i/pause"}},
	"post /v1/agents/{agent}/tasks/{id}/resume": {{"/v1/agents/ann/tasks/i/resume"}},
	"post /v1/agents/{agent}/tasks/{id}/run":    {{"/v1/agents/ann/tasks/i/run"}},
	"post /v1/agents/{agent}/tasks/{id}/cancel": {{"/v1/agents/ann/tasks/i/cancel"}},
	"post /v1/agents/{agent}/tasks/{id}/replay": {{"/v1/agents/ann/tasks/i/replay"}},
	"get /v1/agents/{agent}/tasks/{id}/explain": {{"/v1/agents/ann/tasks/i/explain"}},
	"get /v1/agents/{agent}/tasks/{id}/runs":    {{"/v1/agents/ann/tasks/i/runs"}},
	"post /v1/agents/{agent}/pause":             {{"/v1/agents/ann/pause"}},
	"post /v1/agents/{agent}/resume":            {{"/v1/agents/ann/resume"}},
	"post /v1/kinds/{kind}/pause":               {{"/v1/kinds/ok/pause"}},
	"post /v1/kinds/{kind}/resume":              {{"/v1/kinds/ok/resume"}},
	"post /v1/keys/{key}/pause":                 {{"/v1/keys/k/pause"}},
	"post /v1/keys/{key}/resume":                {{"/v1/keys/k/resume"}},
	"post /v1/pause":                            {{"/v1/pause", `{"all":true}`}},
	"post /v1/resume":                           {{"/v1/resume", `{"all":true}`}},
	"post /v1/signals/{agent}/{key}":            {{"/v1/signals/ann/k"}, {"/v1/signals/ann/k", `{"payload":1}`}},
	"post /v1/activity": {
		{"/v1/activity", `{"kind":"seen","user_id":"ann"}`},
		{"/v1/activity", `{"kind":"seen","user_id":"ann","device_id":"bob"}`},
		{"/v1/activity", `{"kind":"seen","user_id":"ann","agent_id":"default"}`},
		{"/v1/activity", `{"kind":"seen","user_id":"ann","agent_id":"bob"}`},
		{"/v1/activity", `{"kind":"seen","user_id":"bob","agent_id":"ann"}`},
		{"/v1/activity", `{"kind":"seen_by_user","user_id":"bob","agent_id":"ann"}`},
	},
	"get /v1/agents/{agent}/tasks/{id}/output": {{"/v1/agents/ann/tasks/i/output"}},
	"get /v1/jobs":                             {{"/v1/jobs?agent_id=ann"}, {"/v1/jobs"}},
	"get /v1/agents":                           {{"/v1/agents"}},
	"get /v1/pauses":                           {{"/v1/pauses"}},
	"get /v1/profiles":                         {{"/v1/profiles"}},
	"get /v1/limits":                           {{"/v1/limits"}},
	"get /v1/kinds":                            {{"/v1/kinds"}},
	"post /v1/audit":                           {{"/v1/audit"}, {"/v1/audit", `{"repair":true}`}},
	"get /v1/doctor":                           {{"/v1/doctor"}},
	"get /v1/processes":                        {{"/v1/processes"}},
	"put /v1/limits":                           {{"/v1/limits", `{"kind":"ok","concurrency":1}`}},
	"delete /v1/limits":                        {{"/v1/limits?kind=ok"}},
	"get /v1/budgets":                          {{"/v1/budgets"}},
	"put /v1/budgets":                          {{"/v1/budgets", `{"kind":"ok","unit":"tokens","per":"day","amount":1000}`}},
	"delete /v1/budgets":                       {{"/v1/budgets?kind=ok&unit=tokens&per=day"}},
	"get /v1/agents/{agent}":                   {{"/v1/agents/ann"}},
	"put /v1/agents/{agent}":                   {{"/v1/agents/ann", `{"zone":"UTC"}`}},
	"delete /v1/agents/{agent}":                {{"/v1/agents/ann"}},
	"get /v1/agents/{agent}/export":            {{"/v1/agents/ann/export"}},
	"post /v1/agents/{agent}/import":           {{"/v1/agents/ann/import", `{"agent_id":"bob"}`}},
	"delete /v1/agents/{agent}/profile":        {{"/v1/agents/ann/profile"}},
	"get /v1/groups/{agent}/{group}":           {{"/v1/groups/ann/g"}},
	"get /v1/stats":                            {{"/v1/stats"}},
	"get /v1/events":                           {{"/v1/events?agent_id=ann"}},
	"get /metrics":                             {{"/metrics"}},
	"get /product/scheduler/status":            {{"/product/scheduler/status?user_id=ann"}, {"/product/scheduler/status?user_id=ann&task_id=i"}, {"/product/scheduler/status?user_id=ann&user_id=bob"}},
	"get /product/scheduler/allstatus":         {{"/product/scheduler/allstatus"}},
	"get /product/scheduler/task_queue_status": {{"/product/scheduler/task_queue_status?user_id=ann"}},
	"post /product/scheduler/wait":             {{"/product/scheduler/wait?user_name=ann"}, {"/product/scheduler/wait?user_name=ann", `{"user_name":"bob"}`}},
	"get /product/scheduler/wait/stream":       {{"/product/scheduler/wait/stream?user_name=ann"}},
	"post /product/scheduler/submit": {
		{"/product/scheduler/submit", `{"user_id":"ann","label":"ok","content":""}`},
		{"/product/scheduler/submit", `{"user_id":"bob","agent_id":"ann","label":"ok","content":""}`},
		{"/product/scheduler/submit", `{"user_id":"ann","agent_id":"bob","label":"ok","content":""}`},
		{"/product/scheduler/submit", `[{"user_id":"bob","label":"ok","content":""},{"user_id":"ann","label":"ok","content":""}]`},
		{"/product/scheduler/submit", `[{"user_id":"bob","label":"ok","content":""},{"user_id":"ann","agent_id":"bob","label":"ok","content":""}]`},
	},
}

// unguarded are the calls that need no credential, or another one, or are about nobody.
var unguarded = map[string]bool{
	"post /v1/next": true, "get /v1/presets": true, "get /healthz": true, "get /readyz": true, "get /openapi.json": true, "get /v1/openapi.json": true, "get /v1/cron": true,
	"post /v1/hooks/{name}": true,                               // a signature says what it may do: internal/attack
	"post /v1/work/keep":    true, "post /v1/work/return": true, // their tickets name agents: TestATicketOfAnotherCredential
}

// A credential for one agent reaches nobody else by any name in a path, a query or a body; no store is asked.
func TestACredentialReachesNobodyElseByAnyName(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{
		Scoped: []httpadapter.Token{{Token: "bob", Grant: httpadapter.Grant{Agents: []string{"bob"}}}},
		Events: httpadapter.NewEvents(), Metrics: setup(t, httpadapter.Config{}).handler, Profiles: noProfiles,
	})
	data, err := os.ReadFile("openapi.json")
	require.NoError(t, err)
	var doc struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	require.NoError(t, json.Unmarshal(data, &doc))
	for path, methods := range doc.Paths {
		for method := range methods {
			name := method + " " + path
			if unguarded[name] {
				continue
			}
			require.NotEmpty(t, foreign[name], "%s is in no request of this test", name)
			for _, c := range foreign[name] {
				r := httptest.NewRequest(strings.ToUpper(method), c[0], strings.NewReader(c[1]))
				r.Header.Set("Authorization", "Bearer bob")
				r.Header.Set("Content-Type", "application/json")
				res, body := f.do(t, r)
				assert.Equal(t, 403, res.StatusCode, "%s %v: %s", method, c, body)
				assert.Zero(t, f.store.calls.Load(), "%s %v: refused before any store call", method, c)
			}
		}
	}
}

// Whoever may act for an agent and for a user may name both.
func TestACredentialForAnAgentAndAUser(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{Scoped: []httpadapter.Token{
		{Token: "both", Grant: httpadapter.Grant{Agents: []string{"helper", "ann"}}},
	}})
	for _, c := range []struct {
		path, body string
		want       int
	}{
		{"/v1/tasks", `{"agent_id":"helper","user_id":"ann","kind":"ok"}`, 201},
		{"/v1/tasks", `{"agent_id":"helper","kind":"ok"}`, 201},
		{"/v1/activity", `{"kind":"seen","user_id":"ann","agent_id":"helper"}`, 202},
		{"/v1/activity", `{"kind":"seen","user_id":"ann","agent_id":"default"}`, 202},
		{"/product/scheduler/submit", `{"user_id":"ann","agent_id":"helper","label":"ok","content":""}`, 200},
		{"/product/scheduler/submit", `{"agent_id":"helper","label":"ok","content":""}`, 200},
	} {
		res, body := f.with(t, "both", "POST", c.path, c.body)
		assert.Equal(t, c.want, res.StatusCode, "%v: %s", c, body)
	}
}
