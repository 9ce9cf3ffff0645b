package http_test

// The questions about all agents over HTTP, and the commands for what they find.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/operate"
)

// dead has a task of each of some agents fail for good.
func (f *fixture) dead(t *testing.T, agents ...string) {
	t.Helper()
	core.Handle(f.scheduler, "fails", func(context.Context, *core.Task[any]) error { return errors.New("no") })
	for _, agent := range agents {
		res, body := f.call(t, "POST", "/v1/tasks", fmt.Sprintf(`{"agent_id":%q,"id":"t","kind":"fails","max_attempts":1,"limit_key":"openai:x"}`, agent))
		require.Equal(t, http.StatusCreated, res.StatusCode, body)
	}
	f.call(t, "POST", "/v1/run-due", `{"all":true}`)
}

func TestTasksOfAllAgents(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	f.dead(t, "a", "b", "c")
	f.call(t, "POST", "/v1/tasks", `{"agent_id":"d","id":"1","kind":"ok","delay":"1h"}`)
	f.call(t, "POST", "/v1/tasks", `{"agent_id":"d","id":"2","kind":"ok","limit_key":"openai:x","session_id":"s"}`)
	for path, want := range map[string]int{
		"/v1/tasks?status=failed": 3, "/v1/tasks?agent_id=a&status=failed&status=cancelled": 1, "/v1/tasks?status=failed&since=1d": 3, "/v1/tasks?status=failed&until=1d": 0, "/v1/tasks?status=failed&kind=ok": 0,
		"/v1/tasks?status=failed&agent_id=a&since=PT10M": 1, "/v1/tasks?status=failed&key=openai:x&limit=2": 2, "/v1/tasks?overdue=true": 1,
		"/v1/tasks": 2, "/v1/tasks?key=openai:x": 1, "/v1/tasks?status=in_progress": 0, "/v1/tasks?overdue=false": 2, "/v1/tasks?status=failed&since=2020-01-01T00:00:00Z": 3,
		"/v1/tasks?session_id=s": 1, "/v1/tasks?status=failed&text=NO": 3, "/v1/tasks?status=failed&text=yes": 0, "/v1/tasks?status=failed&cause=no": 3, "/v1/tasks?status=failed&cause=n": 0,
		"/v1/tasks?due_by=%2B30m": 1, "/v1/tasks?due_by=%2B2h": 2, "/v1/tasks?due_by=1h": 0, "/v1/tasks?due_by=2020-01-01T00:00:00Z": 0, "/v1/tasks?asking=true": 0,
	} {
		res, body := f.call(t, "GET", path, "")
		require.Equal(t, http.StatusOK, res.StatusCode, body)
		assert.Equal(t, want, strings.Count(body, `"status"`), "%s: %s", path, body)
	}
	for path, want := range map[string]string{
		"/v1/tasks?overdue=1": "overdue must be true or false", "/v1/tasks?status=failed&since=yesterday": "since must be a time", "/v1/tasks?since=1d": "since and until are about when tasks ended",
		"/v1/tasks?status=failed&since=-1d": "since must be a time", "/v1/tasks?status=failed&cursor=x": "cursor is invalid", "/v1/tasks?status=failed&until=999999w": "until must be a time",
		"/v1/tasks?due_by=soon": "due_by must be a time", "/v1/tasks?due_by=%2B-1h": "due_by must be a time", "/v1/tasks?asking=true&held=true": "asking is about tasks that wait for a person",
	} {
		res, body := f.call(t, "GET", path, "")
		assert.Equal(t, http.StatusBadRequest, res.StatusCode, path)
		assert.Contains(t, body, want, path)
	}
}

func TestBulkOverHTTP(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	f.dead(t, "a", "b", "c")
	step := func(verb, body string) operate.BulkStep {
		res, answer := f.call(t, "POST", "/v1/tasks/"+verb, body)
		require.Equal(t, http.StatusOK, res.StatusCode, answer)
		var s operate.BulkStep
		require.NoError(t, json.Unmarshal([]byte(answer), &s))
		return s
	}
	assert.Equal(t, 3, step("replay", `{"dry_run":true,"since":"1h","kind":"fails"}`).Matched)
	assert.Equal(t, 3, step("replay", `{"dry_run":true,"cause":"no"}`).Matched, "a filter of what is inside is a choice")
	assert.Zero(t, step("replay", `{"dry_run":true,"text":"yes"}`).Matched)
	s := step("replay", `{"limit":2,"all":true,"count":2}`)
	assert.Equal(t, 2, s.Changed)
	require.NotEmpty(t, s.Next)
	s = step("replay", fmt.Sprintf(`{"limit":2,"all":true,"confirm":true,"cursor":%q}`, s.Next))
	assert.Equal(t, 1, s.Changed)
	assert.Equal(t, 3, step("pause", `{"all":true,"confirm":true,"by":"ann","reason":"incident"}`).Changed)
	assert.Equal(t, 1, step("resume", `{"agent_id":"a","confirm":true}`).Changed)
	assert.Equal(t, 3, step("cancel", `{"status":["waiting"],"count":3}`).Changed)
	assert.Equal(t, 1, step("delete", `{"agent_id":"a","confirm":true}`).Changed)
	assert.Zero(t, step("run", `{"all":true,"dry_run":true}`).Matched)
	for body, want := range map[string]string{
		`{"status":"failed"}`: "status must be an array", `{"agent":"a"}`: "agent is not a field", `{"limit":0}`: "limit must not be 0", `{"limit":5000,"all":true}`: "limit must be between",
		`{"status":["completed"]}`: "status must not be completed", `{"since":"x"}`: "since must be a time", `{"agent_id":""}`: "agent_id must not be empty", `[]`: "body must be",
	} {
		res, answer := f.call(t, "POST", "/v1/tasks/replay", body)
		assert.Equal(t, http.StatusBadRequest, res.StatusCode, body)
		assert.Contains(t, answer, want, body)
	}
	res, _ := f.call(t, "POST", "/v1/tasks/explode", ``)
	assert.Equal(t, http.StatusNotFound, res.StatusCode)
}

// A request whose body got lost, or whose filter came to nothing, changes nothing, and a filter alone changes nothing before it was counted.
func TestNoBodyChangesTheFleet(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	for i := range 20 {
		f.call(t, "POST", "/v1/tasks", fmt.Sprintf(`{"agent_id":"a%d","id":"t","kind":"ok","delay":"1h"}`, i))
	}
	for _, path := range []string{"tasks/replay", "tasks/cancel", "tasks/delete", "tasks/run", "tasks/pause", "tasks/resume", "pause", "resume"} {
		for body, want := range map[string]string{
			``: "all must be true", `{}`: "all must be true", `{"agent_id":null}`: "", `{"all":false}`: "all must be true", `{"all":null}`: "all must be true", `{"labels":{},"confirm":true}`: "",
		} {
			res, answer := f.call(t, "POST", "/v1/"+path, body)
			assert.Equal(t, http.StatusBadRequest, res.StatusCode, "%s %s: %s", path, body, answer)
			assert.Contains(t, answer, want)
		}
	}
	res, answer := f.call(t, "POST", "/v1/tasks/cancel", `{"kind":"ok"}`)
	assert.Equal(t, http.StatusBadRequest, res.StatusCode)
	assert.Contains(t, answer, "this step would cancel 20")
	res, answer = f.call(t, "POST", "/v1/tasks/cancel", `{"kind":"ok","count":19}`)
	assert.Equal(t, http.StatusConflict, res.StatusCode)
	assert.Contains(t, answer, "count says 19, and 20 match")
	_, answer = f.call(t, "GET", "/v1/tasks", "")
	assert.Equal(t, 20, strings.Count(answer, `"is_paused":false`), "all wait, and none is paused: %s", answer)
	res, answer = f.call(t, "POST", "/v1/kinds/ok/pause", `{"all":true}`)
	assert.Equal(t, http.StatusBadRequest, res.StatusCode)
	assert.Contains(t, answer, "all must be left out")
	res, _ = f.call(t, "POST", "/v1/pause", `{"all":true}`)
	assert.Equal(t, http.StatusOK, res.StatusCode)
}

func TestEditOverHTTP(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	f.call(t, "POST", "/v1/tasks", `{"agent_id":"a","id":"t","kind":"ok","every":"1h","labels":{"tier":"gold"}}`)
	res, body := f.call(t, "PATCH", "/v1/agents/a/tasks/t", `{"every":"PT2H","level":1,"labels":null}`)
	require.Equal(t, http.StatusOK, res.StatusCode, body)
	for _, part := range []string{`"every":"2h0m0s"`, `"level":1`} {
		assert.Contains(t, body, part)
	}
	assert.NotContains(t, body, "gold")
	for body, want := range map[string]int{`{}`: 400, `{"id":"x"}`: 400, `{"level":7}`: 400, `x`: 400, `{"kind":"x y"}`: 400} {
		res, answer := f.call(t, "PATCH", "/v1/agents/a/tasks/t", body)
		assert.Equal(t, want, res.StatusCode, "%s: %s", body, answer)
	}
	res, _ = f.call(t, "PATCH", "/v1/agents/a/tasks/none", `{"level":1}`)
	assert.Equal(t, http.StatusNotFound, res.StatusCode)
}
