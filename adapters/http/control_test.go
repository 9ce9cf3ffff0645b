package http_test

import (
	"context"
	"fmt"
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

func TestControlOfATask(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	f.call(t, "POST", "/v1/tasks", `{"agent_id":"a","id":"i","kind":"ok","every":"1h","delay":"1h"}`)
	const task = "/v1/agents/a/tasks/i"
	post := func(verb, body string) map[string]any {
		t.Helper()
		res, text := f.call(t, "POST", task+"/"+verb, body)
		require.Equal(t, http.StatusOK, res.StatusCode, text)
		return get[map[string]any](t, text)
	}
	for range 2 { // twice is fine
		got := post("pause", `{"reason":"rate limit","by":"ann","until":"2099-01-02T03:04:05Z"}`)
		assert.Equal(t, true, got["is_paused"])
		pause, ok := got["pauses"].([]any)[0].(map[string]any)
		require.True(t, ok)
		assert.Equal(t, "ann", pause["by"])
		assert.Equal(t, "rate limit", pause["reason"])
		assert.Equal(t, "2099-01-02T03:04:05.000Z", pause["until"])
	}
	_, body := f.call(t, "GET", task+"/explain", "")
	assert.Equal(t, "paused", get[struct{ Reasons []map[string]any }](t, body).Reasons[0]["code"])
	for range 2 {
		assert.Equal(t, false, post("resume", "")["is_paused"])
	}
	assert.LessOrEqual(t, post("run", "{}")["next_run"], time.Now().UTC().Format(time.RFC3339))
	_, body = f.call(t, "POST", "/v1/run-due", `{"agent_ids":["a"]}`)
	assert.EqualValues(t, 1, get[map[string]any](t, body)["completed"])

	got := post("cancel", `{"reason":"wrong"}`)
	assert.Equal(t, "cancelled", got["status"])
	assert.Equal(t, "cancelled: wrong", got["reason"])
	res, body := f.call(t, "POST", task+"/run", "")
	assert.Equal(t, http.StatusConflict, res.StatusCode, body)
	res, body = f.call(t, "DELETE", task, "")
	assert.Equal(t, http.StatusOK, res.StatusCode)
	assert.JSONEq(t, `{"agent_id":"a","id":"i","deleted":true}`, body)
	for _, verb := range []string{"pause", "resume", "run", "cancel", "replay"} {
		res, _ = f.call(t, "POST", task+"/"+verb, "")
		assert.Equal(t, http.StatusNotFound, res.StatusCode, verb)
	}
	res, _ = f.call(t, "DELETE", task, "")
	assert.Equal(t, http.StatusNotFound, res.StatusCode)
	res, _ = f.call(t, "GET", task+"/explain", "")
	assert.Equal(t, http.StatusNotFound, res.StatusCode)
}

// A task that is cancelled while it runs is shown as ending, takes no other order, and is cancelled whatever its handler says.
func TestCancelOfARun(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	const task = "/v1/agents/a/tasks/i"
	conflict := func(method, path, body, text string) {
		t.Helper()
		res, answer := f.call(t, method, path, body)
		assert.Equal(t, http.StatusConflict, res.StatusCode, answer)
		assert.Contains(t, answer, text)
	}
	const ending = `task \"i\" of agent \"a\" was cancelled and its run has not ended yet: try again once it has`
	core.Handle(f.scheduler, "cancelled", func(context.Context, *core.Task[any]) error {
		res, body := f.call(t, "POST", task+"/cancel", `{"by":"ann"}`)
		assert.Equal(t, http.StatusOK, res.StatusCode, body)
		got := get[map[string]any](t, body)
		assert.Equal(t, "in_progress", got["status"])
		assert.Equal(t, true, got["ending"])
		conflict("POST", "/v1/tasks", `{"agent_id":"a","id":"i","kind":"ok","on_conflict":"replace"}`, ending)
		conflict("POST", task+"/run", "", ending)
		conflict("POST", task+"/replay", "", "is in_progress: only failed tasks can be replayed")
		return nil
	})
	f.call(t, "POST", "/v1/tasks", `{"agent_id":"a","id":"i","kind":"cancelled"}`)
	_, body := f.call(t, "POST", "/v1/run-due", `{"agent_ids":["a"]}`)
	assert.EqualValues(t, 1, get[map[string]any](t, body)["cancelled"])
	_, body = f.call(t, "GET", task, "")
	got := get[map[string]any](t, body)
	assert.Equal(t, "cancelled", got["status"])
	assert.Equal(t, "cancelled by ann", got["reason"])
	conflict("POST", task+"/replay", "", "is cancelled: only failed tasks can be replayed")
	res, body := f.call(t, "POST", "/v1/tasks", `{"agent_id":"a","id":"i","kind":"ok","on_conflict":"replace"}`)
	assert.Equal(t, http.StatusCreated, res.StatusCode, body)
}

func TestWiderControl(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/v1/agents/a%2Fb": `{"agent_id":"a/b"}`, "/v1/kinds/ok": `{"kind":"ok"}`, "/v1/keys/openai": `{"limit_key":"openai"}`, "/v1": `{"all":true}`,
	} {
		f := setup(t, httpadapter.Config{})
		f.call(t, "POST", "/v1/tasks", `{"agent_id":"a/b","id":"i","kind":"ok","limit_key":"openai"}`)
		res, body := f.call(t, "POST", path+"/pause", fmt.Sprintf(`{"for":"1h","all":%t}`, path == "/v1"))
		assert.Equal(t, http.StatusOK, res.StatusCode, body)
		assert.JSONEq(t, `{"target":`+want+`,"is_paused":true}`, body)
		_, body = f.call(t, "POST", "/v1/run-due", `{"all":true}`)
		assert.EqualValues(t, 0, get[map[string]any](t, body)["ran"], path)
		_, body = f.call(t, "POST", path+"/resume", fmt.Sprintf(`{"all":%t}`, path == "/v1"))
		assert.JSONEq(t, `{"target":`+want+`,"is_paused":false}`, body)
		_, body = f.call(t, "POST", "/v1/run-due", `{"all":true}`)
		assert.EqualValues(t, 1, get[map[string]any](t, body)["completed"], path)
	}
}

// All that is paused is listed, whoever paused it.
func TestPausesAreListed(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	_, body := f.call(t, "GET", "/v1/pauses", "")
	assert.JSONEq(t, `{"pauses":[],"next_cursor":""}`, body)
	f.call(t, "POST", "/v1/kinds/ok/pause", `{"reason":"quota","by":"ann","for":"1h"}`)
	f.call(t, "POST", "/v1/agents/a%2Fb/pause", `{"ahead":true}`)
	_, body = f.call(t, "GET", "/v1/pauses?limit=1", "")
	first := get[struct {
		Pauses []map[string]any
		Next   string `json:"next_cursor"`
	}](t, body)
	require.Len(t, first.Pauses, 1)
	_, body = f.call(t, "GET", "/v1/pauses?limit=1&cursor="+url.QueryEscape(first.Next), "")
	all := append(first.Pauses, get[struct{ Pauses []map[string]any }](t, body).Pauses...)
	require.Len(t, all, 2)
	for _, p := range all {
		assert.NotEmpty(t, p["since"])
		if p["target"].(map[string]any)["kind"] == "ok" {
			assert.Equal(t, "quota", p["reason"])
			assert.Equal(t, "ann", p["by"])
			assert.NotEmpty(t, p["until"])
		} else {
			assert.Equal(t, map[string]any{"agent_id": "a/b"}, p["target"])
			assert.NotContains(t, p, "until")
		}
	}
	res, body := f.call(t, "GET", "/v1/pauses?limit=0x1", "")
	code, field, _ := problem(t, res, body)
	assert.Equal(t, []string{"invalid", "limit"}, []string{code, field})
}

func TestControlRefuses(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	for _, c := range []struct{ path, body, field string }{
		{"/v1/pause", `{"why":"x"}`, "why"},
		{"/v1/pause", `{"until":"tomorrow"}`, "until"},
		{"/v1/pause", `{"for":"soon"}`, "for"},
		{"/v1/pause", `{"all":true,"for":"-1h"}`, "for"},
		{"/v1/kinds/no%20spaces/pause", ``, "kind"},
		{"/v1/resume", `{"reason":"x"}`, "reason"},
		{"/v1/agents/a/tasks/i/cancel", `{"by":1}`, "by"},
		{"/v1/agents/a/tasks/i/run", `[]`, "body"},
		{"/v1/activity", `{}`, "kind"},
		{"/v1/activity", `{"kind":"seen","user_id":7}`, "user_id"},
	} {
		res, body := f.call(t, "POST", c.path, c.body)
		code, field, _ := problem(t, res, body)
		assert.Equal(t, "invalid", code, c)
		assert.Equal(t, c.field, field, c)
	}
	assert.Zero(t, f.store.calls.Load(), "no store call")
}

func TestActivity(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	const subject = `{"kind":"seen","user_id":"u","device_id":"d","agent_id":"a"}`
	res, body := f.call(t, "POST", "/v1/activity", subject)
	assert.Equal(t, http.StatusAccepted, res.StatusCode)
	got := get[map[string]any](t, body)
	assert.Equal(t, true, got["scheduled"])
	assert.Equal(t, "activity", got["reason"])
	assert.NotEmpty(t, got["due_at"])
	_, body = f.call(t, "POST", "/v1/activity", subject)
	got = get[map[string]any](t, body)
	assert.Equal(t, false, got["scheduled"])
	assert.Equal(t, "waiting", got["reason"])
	_, body = f.call(t, "GET", "/v1/agents/a/tasks/"+url.PathEscape(got["id"].(string)), "")
	assert.NotEmpty(t, get[map[string]any](t, body)["last_activity"])
	assert.NotEmpty(t, get[map[string]any](t, body)["updated_at"])
	res, body = f.call(t, "POST", "/v1/activity", `{"kind":"ok","user_id":"u"}`)
	code, field, _ := problem(t, res, body)
	assert.Equal(t, [2]string{"invalid", "kind"}, [2]string{code, field})
}

// A server that has no settings of the kind takes activity of a subject whose task is stored.
func TestActivityAtAServerWithoutTheKind(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	bare, err := core.New(f.store, core.Config{})
	require.NoError(t, err)
	ask := func(handler http.Handler, user string) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/activity", strings.NewReader(`{"kind":"seen","user_id":"`+user+`"}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
	server := httpadapter.New(bare, httpadapter.Config{})
	assert.Equal(t, http.StatusBadRequest, ask(server, "u"))
	f.call(t, "POST", "/v1/activity", `{"kind":"seen","user_id":"u"}`)
	assert.Equal(t, http.StatusAccepted, ask(server, "u"))
	assert.Equal(t, http.StatusBadRequest, ask(server, "v"))
}

func TestJobsAndAgents(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	f.call(t, "POST", "/v1/tasks", `{"tasks":[{"agent_id":"a","id":"job","kind":"ok","cron":"@daily"},{"agent_id":"a","id":"once","kind":"ok"},
		{"agent_id":"b","id":"once","kind":"ok"}]}`)
	_, body := f.call(t, "GET", "/v1/jobs?agent_id=a", "")
	jobs := get[struct{ Jobs []map[string]any }](t, body).Jobs
	require.Len(t, jobs, 1)
	assert.Equal(t, "job", jobs[0]["id"])
	assert.Equal(t, "cron", jobs[0]["schedule"])
	_, body = f.call(t, "GET", "/v1/jobs?agent_id=nobody", "")
	assert.JSONEq(t, `{"jobs":[],"next_cursor":""}`, body)
	_, body = f.call(t, "GET", "/v1/agents", "")
	agents := get[struct{ Agents []map[string]any }](t, body).Agents
	require.Len(t, agents, 2)
	assert.Contains(t, agents[0], "live")
	res, _ := f.call(t, "GET", "/v1/agents?limit=x", "")
	assert.Equal(t, http.StatusBadRequest, res.StatusCode)
	_, body = f.call(t, "GET", "/v1/stats", "")
	kinds := get[struct{ Kinds []map[string]any }](t, body).Kinds
	require.Len(t, kinds, 1)
	assert.EqualValues(t, 3, kinds[0]["depth"])
}

func TestConflictsAreAnswered(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	f.call(t, "POST", "/v1/tasks", `{"agent_id":"a","id":"i","kind":"ok","delay":"1h"}`)
	res, body := f.call(t, "POST", "/v1/tasks", `{"agent_id":"a","id":"i","kind":"ok","on_conflict":"fail"}`)
	code, _, _ := problem(t, res, body)
	assert.Equal(t, "conflict", code)
	assert.Equal(t, http.StatusConflict, res.StatusCode)
	res, body = f.call(t, "POST", "/v1/tasks", `{"agent_id":"a","id":"i","kind":"ok","on_conflict":"replace"}`)
	assert.Equal(t, http.StatusOK, res.StatusCode)
	assert.Contains(t, body, `"replaced":true`)
	res, body = f.call(t, "POST", "/v1/tasks", `{"agent_id":"a","kind":"off"}`)
	code, _, _ = problem(t, res, body)
	assert.Equal(t, "kind_disabled", code)
	assert.Equal(t, http.StatusConflict, res.StatusCode)
}

// What a mux around the handler calls its wildcards is nothing to duly: the agent is paused here, not a task.
func TestMountedUnderWildcards(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	_, err := f.scheduler.Submit(t.Context(), core.NewTask{Agent: "a", ID: "acme", Kind: "ok"}, core.NewTask{Agent: "a", ID: "2", Kind: "ok"})
	require.NoError(t, err)
	mux := http.NewServeMux()
	mux.HandleFunc("/{key}/{kind}/{id}/", func(w http.ResponseWriter, r *http.Request) {
		http.StripPrefix("/x/ok/acme", f.handler).ServeHTTP(w, r)
	})
	w := httptest.NewRecorder()
	mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/x/ok/acme/v1/agents/a/pause", nil))
	require.Equal(t, 200, w.Code, w.Body.String())
	pauses, _, err := f.scheduler.Pauses(t.Context(), 0, "")
	require.NoError(t, err)
	require.Len(t, pauses, 1)
	assert.Equal(t, core.Target{Agent: "a"}, pauses[0].Target)
}

// What does not exist is not paused, unless the caller says that it is to come.
func TestPausingWhatDoesNotExist(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	for _, path := range []string{"/v1/agents/nobody", "/v1/kinds/nothing"} {
		for _, verb := range []string{"/resume", "/pause"} {
			res, body := f.call(t, "POST", path+verb, "{}")
			assert.Equal(t, http.StatusNotFound, res.StatusCode, body)
			assert.Contains(t, body, `\"ahead\": true if it is still to be created`)
			res, body = f.call(t, "POST", path+verb, `{"ahead":true}`)
			assert.Equal(t, http.StatusOK, res.StatusCode, body)
			if verb == "/pause" {
				res, _ = f.call(t, "POST", path+verb, `{"reason":"it is paused, so it exists"}`)
				assert.Equal(t, http.StatusOK, res.StatusCode)
			}
		}
	}
	f.call(t, "POST", "/v1/tasks", `{"agent_id":"a","id":"i","kind":"ok","delay":"1h"}`)
	for body, field := range map[string]string{
		`{"for":"0s"}`: "for", `{"for":"-1s"}`: "for", `{"for":""}`: "for", `{"until":"1999-01-01T00:00:00Z"}`: "until",
		`{"until":"0001-01-01T00:00:00Z"}`: "until", `{"ahead":1}`: "ahead",
	} {
		res, text := f.call(t, "POST", "/v1/agents/a/pause", body)
		assert.Equal(t, http.StatusBadRequest, res.StatusCode, text)
		assert.Equal(t, field, get[map[string]any](t, text)["field"], body)
	}
	_, body := f.call(t, "GET", "/v1/agents/a/tasks/i", "")
	assert.Equal(t, false, get[map[string]any](t, body)["is_paused"])
	res, body := f.call(t, "POST", "/v1/agents/a/pause", `{"reason":"","by":""}`)
	assert.Equal(t, http.StatusOK, res.StatusCode, body)
}

// A parameter or member that is given is never taken for one that is left out.
func TestZeroIsNotLeftOut(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	for path, field := range map[string]string{
		"/v1/tasks?agent_id=": "agent_id", "/v1/tasks?agent_id=a&limit=0": "limit", "/v1/tasks?agent_id=a&limit=-1": "limit",
		"/v1/tasks?agent_id=a&limit=": "limit", "/v1/tasks?agent_id=a&cursor=": "cursor", "/v1/tasks?agent_id=a&status=": "status",
		"/v1/tasks?agent_id=a&kind": "kind", "/v1/agents?limit=0": "limit", "/v1/pauses?cursor=": "cursor", "/v1/jobs?agent_id=a&kind=": "kind",
	} {
		res, text := f.call(t, "GET", path, "")
		assert.Equal(t, http.StatusBadRequest, res.StatusCode, path)
		assert.Equal(t, field, get[map[string]any](t, text)["field"], path)
	}
	for _, c := range [][3]string{
		{"/v1/run-due", `{"all":true,"max":0}`, "max"},
		{"/v1/run-due", `{"all":true,"timeout_ms":0}`, "timeout_ms"},
		{"/v1/activity", `{"kind":"","user_id":"u"}`, "kind"},
		{"/v1/activity", `{"kind":"ok","user_id":""}`, "user_id"},
		{"/v1/activity", `{"kind":"ok","user_id":"u","device_id":""}`, "device_id"},
		{"/v1/tasks", `{"agent_id":"a","kind":"ok","level":0}`, "level"},
		{"/v1/tasks", `{"agent_id":"a","kind":"ok","id":"\ud800"}`, "task"},
	} {
		res, text := f.call(t, "POST", c[0], c[1])
		assert.Equal(t, http.StatusBadRequest, res.StatusCode, c[1])
		assert.Equal(t, c[2], get[map[string]any](t, text)["field"], c[1])
	}
}
