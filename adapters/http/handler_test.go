package http_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
)

func TestTheLifeOfATask(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	const task = `{"agent_id":"a","id":"i","kind":"ok","payload":{"n":1},"group":"g"}`
	res, body := f.call(t, "POST", "/v1/tasks", task)
	assert.Equal(t, http.StatusCreated, res.StatusCode)
	assert.Equal(t, "application/json", res.Header.Get("Content-Type"))
	submitted := get[struct{ Tasks []map[string]any }](t, body).Tasks
	require.Len(t, submitted, 1)
	assert.Contains(t, submitted[0], "due_at")
	delete(submitted[0], "due_at")
	assert.Equal(t, map[string]any{"id": "i", "agent_id": "a", "kind": "ok", "status": "waiting", "created": true}, submitted[0])

	res, body = f.call(t, "POST", "/v1/tasks", task)
	assert.Equal(t, http.StatusOK, res.StatusCode, "nothing is new")
	assert.Contains(t, body, `"created":false`)

	res, body = f.call(t, "POST", "/v1/run-due", `{"agent_ids":["a"]}`)
	assert.Equal(t, http.StatusOK, res.StatusCode)
	report := get[map[string]any](t, body)
	assert.EqualValues(t, 1, report["completed"])
	assert.Contains(t, report, "next_due_at")

	res, body = f.call(t, "GET", "/v1/agents/a/tasks/i", "")
	assert.Equal(t, http.StatusOK, res.StatusCode)
	got := get[map[string]any](t, body)
	assert.Equal(t, "completed", got["status"])
	assert.Equal(t, map[string]any{"n": 1.0}, got["result"])

	_, body = f.call(t, "GET", "/v1/agents/a/tasks/i/runs", "")
	assert.Equal(t, "success", get[struct{ Runs []map[string]any }](t, body).Runs[0]["outcome"])
	_, body = f.call(t, "GET", "/v1/groups/a/g", "")
	assert.JSONEq(t, `{"status":"completed","live":0,"completed":1,"failed":0,"cancelled":0}`, body)
	_, body = f.call(t, "GET", "/v1/stats", "")
	assert.EqualValues(t, 1, get[map[string]any](t, body)["completed"])
}

func TestSubmitTakesManyTasksOrNone(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	res, body := f.call(t, "POST", "/v1/tasks",
		`{"tasks":[{"agent_id":"a","id":"1","kind":"ok"},{"agent_id":"b","id":"2","kind":"ok","delay":"1h"}]}`)
	assert.Equal(t, http.StatusCreated, res.StatusCode)
	assert.Len(t, get[struct{ Tasks []any }](t, body).Tasks, 2)

	res, body = f.call(t, "POST", "/v1/tasks",
		`{"tasks":[{"agent_id":"a","id":"1","kind":"ok"},{"agent_id":"c","id":"3","kind":"ok"}]}`)
	assert.Equal(t, http.StatusCreated, res.StatusCode, "one of them is new")
	assert.Contains(t, body, `"created":false`)

	before := f.store.calls.Load()
	res, body = f.call(t, "POST", "/v1/tasks",
		`{"tasks":[{"agent_id":"d","id":"1","kind":"ok"},{"agent_id":"d","kind":"ok","every":"1ms"}]}`)
	code, field, _ := problem(t, res, body)
	assert.Equal(t, "invalid", code)
	assert.Equal(t, "tasks[1].every", field)
	assert.Equal(t, before, f.store.calls.Load())

	res, body = f.call(t, "POST", "/v1/tasks", `{"tasks":[]}`)
	assert.Equal(t, http.StatusOK, res.StatusCode)
	assert.JSONEq(t, `{"tasks":[]}`, body)
	assert.Equal(t, before, f.store.calls.Load())
}

func TestRunDueTakesAgentsOrAll(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	f.call(t, "POST", "/v1/tasks", `{"tasks":[{"agent_id":"a","kind":"ok"},{"agent_id":"b","kind":"ok"},
		{"agent_id":"c","kind":"ok"},{"agent_id":"c","kind":"ok"},{"agent_id":"d","kind":"failing","max_attempts":1},{"agent_id":"e","kind":"unknown"}]}`)

	before := f.store.calls.Load()
	res, body := f.call(t, "POST", "/v1/run-due", `{"agent_ids":[]}`)
	assert.Equal(t, http.StatusOK, res.StatusCode)
	assert.JSONEq(t, `{"agents":0,"ran":0,"completed":0,"failed":0,"retried":0,"released":0,"skipped":0,"parked":0,"lost":0,
		"cancelled":0,"snoozed":0,"recovered":0,"left":0,"next_due_at":null,"more":false,"duration_ms":0}`, body)
	assert.Equal(t, before, f.store.calls.Load(), "without agents there is nothing to ask")

	_, body = f.call(t, "POST", "/v1/run-due", `{"agent_ids":["a","nobody"],"timeout_ms":60000}`)
	assert.EqualValues(t, 1, get[map[string]any](t, body)["ran"])
	_, body = f.call(t, "POST", "/v1/run-due", `{"agent_ids":["c"],"max":1}`)
	report := get[map[string]any](t, body)
	assert.EqualValues(t, 1, report["ran"])
	assert.Equal(t, true, report["more"])
	res, body = f.call(t, "POST", "/v1/run-due", `{"all":true}`)
	assert.Equal(t, http.StatusOK, res.StatusCode, "a failed handler is part of the report")
	report = get[map[string]any](t, body)
	assert.EqualValues(t, 3, report["ran"])
	assert.EqualValues(t, 1, report["failed"])
	assert.EqualValues(t, 1, report["parked"])

	res, body = f.call(t, "GET", "/v1/tasks?agent_id=d&status=failed", "")
	id := get[struct{ Tasks []struct{ ID string } }](t, body).Tasks[0].ID
	assert.Equal(t, http.StatusOK, res.StatusCode)
	replay := path("v1", "agents", "d", "tasks", id, "replay")
	res, body = f.call(t, "POST", replay, `{"payloads":1}`)
	assert.Equal(t, http.StatusBadRequest, res.StatusCode, "%s", body)
	res, body = f.call(t, "POST", replay, `{"payload":{"text":"another"}}`)
	assert.Equal(t, http.StatusOK, res.StatusCode)
	assert.Equal(t, "waiting", get[map[string]any](t, body)["status"])
	assert.Equal(t, map[string]any{"text": "another"}, get[map[string]any](t, body)["payload"])
	f.call(t, "POST", "/v1/run-due", `{"all":true}`)
	_, body = f.call(t, "POST", replay, "")
	assert.Equal(t, map[string]any{"text": "another"}, get[map[string]any](t, body)["payload"])
}

func TestListFiltersAndPages(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	f.call(t, "POST", "/v1/tasks", `{"tasks":[{"agent_id":"a","id":"1","kind":"ok"},{"agent_id":"a","id":"2","kind":"bad","group":"g"},
		{"agent_id":"a","id":"3","kind":"ok","group":"g"},{"agent_id":"a","id":"4","kind":"ok","delay":"1h"}]}`)
	f.call(t, "POST", "/v1/run-due", `{"agent_ids":["a"]}`)
	list := func(query string) (ids, next string) {
		res, body := f.call(t, "GET", "/v1/tasks?agent_id=a"+query, "")
		require.Equal(t, http.StatusOK, res.StatusCode, body)
		page := get[struct {
			Tasks []struct{ ID string }
			Next  *string `json:"next_cursor"`
		}](t, body)
		for _, task := range page.Tasks {
			ids = strings.TrimSpace(ids + " " + task.ID)
		}
		require.NotNil(t, page.Next, "the last page has one too")
		assert.NotContains(t, body, `"tasks":null`)
		return ids, *page.Next
	}
	for query, want := range map[string]string{
		"":                          "4 1 2 3", // what waits comes first
		"&status=completed":         "1 3",
		"&status=waiting,cancelled": "4 2",
		"&kind=bad":                 "2",
		"&group=g":                  "2 3",
		"&group=g&kind=ok":          "3",
		"&status=failed&limit=1000": "",
	} {
		ids, next := list(query)
		assert.Equal(t, want, ids, query)
		assert.Empty(t, next, query)
	}
	for _, filter := range []string{"", "&status=waiting,completed,cancelled"} {
		first, next := list(filter + "&limit=3")
		assert.Equal(t, "4 1 2", first)
		rest, last := list(filter + "&limit=3&cursor=" + url.QueryEscape(next))
		assert.Equal(t, "3", rest)
		assert.Empty(t, last)
	}
	first, next := list("&kind=ok&limit=2")
	assert.Equal(t, "4 1", first)
	rest, _ := list("&kind=ok&limit=2&cursor=" + url.QueryEscape(next))
	assert.Equal(t, "3", rest, "a page of a filter goes on behind its last task")
	res, body := f.call(t, "GET", "/v1/tasks?agent_id=a&cursor=4", "")
	assert.Equal(t, http.StatusBadRequest, res.StatusCode, body)
	assert.Contains(t, body, "cursor is invalid: use the one that the previous page ended with, or none")
}

// Over a real connection: HEAD has no body, the headers of each answer are there, and a body without end is refused.
func TestOverAConnection(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{MaxBody: 100})
	server := httptest.NewServer(f.handler)
	defer server.Close()
	defer server.Client().CloseIdleConnections()
	res, err := server.Client().Head(server.URL + "/v1/stats")
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	assert.Equal(t, http.StatusOK, res.StatusCode)
	assert.Positive(t, res.ContentLength)
	assert.Equal(t, "nosniff", res.Header.Get("X-Content-Type-Options"))
	assert.Equal(t, "no-store", res.Header.Get("Cache-Control"))

	endless, feed := io.Pipe()
	go func() {
		for err := error(nil); err == nil; {
			_, err = feed.Write(bytes.Repeat([]byte("["), 1000))
		}
	}()
	res, err = server.Client().Post(server.URL+"/v1/tasks", "application/json", endless)
	require.NoError(t, err)
	require.NoError(t, res.Body.Close())
	assert.Equal(t, http.StatusRequestEntityTooLarge, res.StatusCode)
	require.NoError(t, endless.Close())
}
