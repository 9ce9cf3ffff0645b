package http_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
)

// A request that is refused costs no call of the store.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{MaxBody: 1000, MaxTimeout: time.Minute})
	long := strings.Repeat("x", 257)
	for _, c := range []struct {
		method, path, body string
		status             int
		code, field        string
	}{
		{"POST", "/v1/run-due", `{}`, 400, "invalid", "agent_ids"},
		{"POST", "/v1/run-due", `{"all":false}`, 400, "invalid", "agent_ids"},
		{"POST", "/v1/run-due", `{"agent_ids":null}`, 400, "invalid", "agent_ids"},
		{"POST", "/v1/run-due", `{"agent_ids":[],"all":true}`, 400, "invalid", "all"},
		{"POST", "/v1/run-due", `{"agent_ids":["a",""]}`, 400, "invalid", "agent_ids[1]"},
		{"POST", "/v1/run-due", `{"agent_ids":["` + long + `"]}`, 400, "invalid", "agent_ids[0]"},
		{"POST", "/v1/run-due", `{"agent_ids":["a\u0000"]}`, 400, "invalid", "agent_ids[0]"},
		{"POST", "/v1/run-due", "{\"agent_ids\":[\"\xff\"]}", 400, "invalid", "body"},
		{"POST", "/v1/run-due", `{"agent_ids":"a"}`, 400, "invalid", "agent_ids"},
		{"POST", "/v1/run-due", `{"agent_ids":["a"],"agents":[]}`, 400, "invalid", "agents"},
		{"POST", "/v1/run-due", `{"ALL":true}`, 400, "invalid", "ALL"},
		{"POST", "/v1/run-due", `{"all":true,"max":-1}`, 400, "invalid", "max"},
		{"POST", "/v1/run-due", `{"all":true,"max":1.5}`, 400, "invalid", "max"},
		{"POST", "/v1/run-due", `{"all":true,"timeout_ms":-9223372036854775808}`, 400, "invalid", "timeout_ms"},
		{"POST", "/v1/run-due", `{"all":true,"timeout_ms":60001}`, 400, "invalid", "timeout_ms"},
		{"POST", "/v1/run-due", `{"all":true} {}`, 400, "invalid", "body"},
		{"POST", "/v1/run-due", `{"all":true`, 400, "invalid", "body"},
		{"POST", "/v1/run-due", `null`, 400, "invalid", "body"},
		{"POST", "/v1/run-due", `[]`, 400, "invalid", "body"},
		{"POST", "/v1/run-due", `{"agent_ids":["` + strings.Repeat(`a","`, 400) + `a"]}`, 413, "too_large", ""},
		{"POST", "/v1/tasks", `{"agent_id":"a","kind":"ok"}{}`, 400, "invalid", "task"},
		{"POST", "/v1/tasks", `{"agent_id":"a","kind":"ok","x":1}`, 400, "invalid", "x"},
		{"POST", "/v1/tasks", `{"agent_id":"a"}`, 400, "invalid", "kind"},
		{"POST", "/v1/tasks", `{"kind":"ok"}`, 400, "invalid", "agent_id"},
		{"POST", "/v1/tasks", `{"agent_id":"a","kind":"o k"}`, 400, "invalid", "kind"},
		{"POST", "/v1/tasks", `{"agent_id":"` + long + `","kind":"ok"}`, 400, "invalid", "agent_id"},
		{"POST", "/v1/tasks", `{"tasks":[{"agent_id":"a","kind":"ok","at":"soon"}]}`, 400, "invalid", "tasks[0].at"},
		{"POST", "/v1/tasks", `{"agent_id":"a","kind":"ok","payload":"` + long + long + long + long + `"}`, 413, "too_large", ""},
		{"GET", "/v1/tasks?status=completed", ``, 400, "invalid", "agent_id"},
		{"GET", "/v1/tasks?agent_id=a&agent_id=b", ``, 400, "invalid", "agent_id"},
		{"GET", "/v1/tasks?agent_id=a&state=failed", ``, 400, "invalid", "state"},
		{"GET", "/v1/tasks?agent_id=a&status=done", ``, 400, "invalid", "status"},
		{"GET", "/v1/tasks?agent_id=a&limit=0", ``, 400, "invalid", "limit"},
		{"GET", "/v1/tasks?agent_id=a&limit=1001", ``, 400, "invalid", "limit"},
		{"GET", "/v1/tasks?agent_id=a&limit=x", ``, 400, "invalid", "limit"},
		{"GET", "/v1/tasks?agent_id=%ff", ``, 400, "invalid", "agent_id"},
		{"GET", "/v1/tasks?agent_id=%zz", ``, 400, "invalid", "query"},
		{"GET", "/v1/tasks?agent_id=a&cursor=%00", ``, 400, "invalid", "cursor"},
		{"GET", "/v1/agents/a/tasks/" + long, ``, 400, "invalid", "id"},
		{"GET", "/v1/agents/%0a/tasks/i", ``, 400, "invalid", "agent_id"},
		{"GET", "/v1/agents/a/tasks/%ff/runs", ``, 400, "invalid", "id"},
		{"POST", "/v1/agents/a/tasks/%7f/replay", ``, 400, "invalid", "id"},
		{"GET", "/v1/groups/a/%c2%80", ``, 400, "invalid", "group"},
		{"GET", "/v1/agents//tasks/i", ``, 404, "no_route", ""},
		{"GET", "/v1/agents/a/tasks/", ``, 404, "no_route", ""},
		{"GET", "/v1/agents/a/tasks/..", ``, 404, "no_route", ""},
		{"GET", "/v1/tasks/", ``, 404, "no_route", ""},
		{"GET", "/", ``, 404, "no_route", ""},
		{"GET", "/v2/tasks", ``, 404, "no_route", ""},
		{"DELETE", "/v1/tasks", ``, 405, "method_not_allowed", ""},
		{"GET", "/v1/run-due", ``, 405, "method_not_allowed", ""},
		{"PUT", "/healthz", ``, 405, "method_not_allowed", ""},
	} {
		res, body := f.call(t, c.method, c.path, c.body)
		assert.Equal(t, c.status, res.StatusCode, "%s %s %s: %s", c.method, c.path, c.body, body)
		code, field, _ := problem(t, res, body)
		assert.Equal(t, c.code, code, "%s %s %s", c.method, c.path, c.body)
		assert.Equal(t, c.field, field, "%s %s %s", c.method, c.path, c.body)
		if c.code == "method_not_allowed" {
			assert.NotEmpty(t, res.Header.Get("Allow"))
		}
	}
	assert.Zero(t, f.store.calls.Load())
}

func TestTheMethodsOfAPath(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	res, _ := f.call(t, "PATCH", "/v1/tasks", "")
	assert.Equal(t, "GET, HEAD, POST", res.Header.Get("Allow"))
	res, _ = f.call(t, "OPTIONS", "/v1/run-due", "")
	assert.Equal(t, "POST", res.Header.Get("Allow"))
	res, _ = f.call(t, "HEAD", "/v1/stats", "")
	assert.Equal(t, http.StatusOK, res.StatusCode)
}

// HEAD is for what ends by itself and changes nothing: not for streams, nor for a GET that runs tasks.
func TestStreamsAndTheCronPathHaveNoHead(t *testing.T) {
	t.Parallel()
	stopping := make(chan struct{})
	close(stopping) // a stream would end at once
	f := setup(t, httpadapter.Config{Events: httpadapter.NewEvents(), CronSecret: "tick", Metrics: http.NotFoundHandler(), Stopping: stopping})
	for _, path := range []string{"/v1/events", "/v1/cron", "/product/scheduler/wait/stream?user_name=u"} {
		res, body := f.with(t, "tick", "HEAD", path, "")
		assert.Equal(t, 405, res.StatusCode, "%s: %s", path, body)
		assert.Equal(t, "GET", res.Header.Get("Allow"), path)
	}
	assert.Zero(t, f.store.calls.Load())
	res, _ := f.with(t, "tick", "HEAD", "/metrics", "")
	assert.Equal(t, 404, res.StatusCode, "it is asked")
}

func TestTheBodyHasToBeJSON(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	for contentType, want := range map[string]int{
		"application/json":                  http.StatusCreated,
		"Application/JSON; charset=utf-8":   http.StatusCreated,
		"":                                  http.StatusUnsupportedMediaType,
		"text/plain":                        http.StatusUnsupportedMediaType,
		"application/x-www-form-urlencoded": http.StatusUnsupportedMediaType,
		"application/json, text/plain":      http.StatusUnsupportedMediaType,
	} {
		r := httptest.NewRequest(http.MethodPost, "/v1/tasks", strings.NewReader(`{"agent_id":"a","kind":"ok"}`))
		r.Header.Set("Content-Type", contentType)
		res, body := f.do(t, r)
		assert.Equal(t, want, res.StatusCode, contentType)
		if want != http.StatusCreated {
			code, _, _ := problem(t, res, body)
			assert.Equal(t, "unsupported_media_type", code)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/v1/tasks", http.NoBody)
	r.Header.Set("Content-Type", "application/json")
	res, body := f.do(t, r)
	_, field, _ := problem(t, res, body)
	assert.Equal(t, "body", field)
}

// Ids may be anything that is valid UTF-8 without control characters, also what has a meaning in a path.
func TestHostileIDs(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	for i, id := range []string{
		":", "{", "}", "{}", "%", "%2F", "/", "//", "a/b", ".", "..", "../..", "?", "#", "&=", " ", "+", "'", `"`, `\`, "<b>", "é", "日本", "\u202e",
		"tasks", "replay", "*", strings.Repeat("x", 256),
	} {
		agent := id + "@"
		if i%2 == 0 {
			agent = id
		}
		task, err := json.Marshal(core.NewTask{Agent: agent, ID: id, Kind: "failing", MaxAttempts: 1, Group: id})
		require.NoError(t, err)
		if len(agent) > 256 {
			continue
		}
		res, body := f.call(t, "POST", "/v1/tasks", string(task))
		require.Equal(t, http.StatusCreated, res.StatusCode, body)
		agents, err := json.Marshal(map[string]any{"agent_ids": []string{agent}})
		require.NoError(t, err)
		_, body = f.call(t, "POST", "/v1/run-due", string(agents))
		assert.EqualValues(t, 1, get[map[string]any](t, body)["failed"], id)
		for _, tail := range [][]string{{}, {"runs"}} {
			res, body = f.call(t, "GET", path(append([]string{"v1", "agents", agent, "tasks", id}, tail...)...), "")
			assert.Equal(t, http.StatusOK, res.StatusCode, "%q: %s", id, body)
		}
		res, body = f.call(t, "GET", path("v1", "groups", agent, id), "")
		assert.Equal(t, http.StatusOK, res.StatusCode, "%q: %s", id, body)
		res, body = f.call(t, "GET", "/v1/tasks?agent_id="+url.QueryEscape(agent)+"&group="+url.QueryEscape(id), "")
		assert.Equal(t, http.StatusOK, res.StatusCode)
		assert.Equal(t, id, get[struct{ Tasks []struct{ ID string } }](t, body).Tasks[0].ID)
		res, body = f.call(t, "POST", path("v1", "agents", agent, "tasks", id, "replay"), "")
		assert.Equal(t, http.StatusOK, res.StatusCode, "%q: %s", id, body)
	}
}

// Whatever is posted, the answer is whole, and none of the caller's mistakes is taken for one of ours.
func FuzzRequests(f *testing.F) {
	for _, body := range []string{
		`{"agent_ids":["a"]}`, `{"all":true,"max":1,"timeout_ms":5}`, `{"agent_id":"a","kind":"ok"}`, `{"tasks":[{}]}`, `{"all":true}x`, "\xff",
	} {
		f.Add("POST", "/v1/run-due", body)
		f.Add("POST", "/v1/tasks", body)
	}
	f.Add("GET", "/v1/tasks?agent_id=a&limit=5&cursor=%2F", "")
	f.Add("GET", "/v1/agents/%2e%2e/tasks/%2f%00", "")
	f.Add("GET", "/v1/groups/a/b%20c", "")
	f.Fuzz(func(t *testing.T, method, target, body string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || u.Host != "" || strings.ContainsAny(method, " \r\n\t") {
			t.Skip()
		}
		fix := setup(t, httpadapter.Config{MaxTimeout: 10 * time.Millisecond})
		r := &http.Request{
			Method: method, URL: u, Host: "localhost", Header: http.Header{"Content-Type": {"application/json"}},
			Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
		}
		res, answer := fix.do(t, r.WithContext(t.Context()))
		assert.True(t, json.Valid([]byte(answer)), answer)
		assert.Less(t, res.StatusCode, 500, answer)
		assert.GreaterOrEqual(t, res.StatusCode, 200)
		if res.StatusCode >= 300 {
			problem(t, res, answer)
		}
	})
}
