package http_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
)

// below submits in the name of runs.
func (f *fixture) below(t *testing.T, path, body string, parents ...string) (*reply, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for _, parent := range parents {
		r.Header.Add("Duly-Parent", parent)
	}
	return f.do(t, r)
}

// A server that got a run submits in its name: depth and root are those of the store, whatever it says, and the breaker answers.
func TestSubmitsOfRuns(t *testing.T) {
	t.Parallel()
	f := setupWith(t, core.Config{MaxDepth: 2, MaxSpawned: 3}, httpadapter.Config{})
	const tasks = "/v1/tasks"
	task := func(agent, id string) string {
		return `{"agent_id":"` + agent + `","id":"` + id + `","kind":"ok","delay":"1h"}`
	}
	res, text := f.below(t, tasks, task("a", "root"), "")
	require.Equal(t, http.StatusCreated, res.StatusCode, text)
	res, text = f.below(t, tasks, task("a", "1"), "a/root")
	require.Equal(t, http.StatusCreated, res.StatusCode, text)
	res, text = f.below(t, "/product/scheduler/submit", `{"item_id":"2","user_id":"a","mem_cube_id":"c","label":"ok","content":"x"}`, "a/1")
	require.Less(t, res.StatusCode, 300, text)
	_, text = f.call(t, http.MethodGet, "/v1/agents/a/tasks/2", "")
	assert.Contains(t, text, `"submitted_by":{"agent_id":"a","id":"1"},"root":{"agent_id":"a","id":"root"},"depth":2`)

	before := f.store.calls.Load()
	res, text = f.below(t, tasks, `{"tasks":[`+task("b", "deep")+`,`+task("b", "too")+`]}`, "a/2")
	assert.Equal(t, http.StatusUnprocessableEntity, res.StatusCode, text)
	assert.Contains(t, text, `"code":"spawn_depth"`)
	assert.Contains(t, text, `have come to depth 3 below task \"root\" of agent \"a\", and the limit is 2`)
	assert.Empty(t, res.Header.Get("Retry-After"), "it never ends")
	assert.EqualValues(t, 1, f.store.calls.Load()-before, "the parent is read, and nothing else is asked")

	res, text = f.below(t, tasks, `{"tasks":[`+task("b", "3")+`,`+task("b", "4")+`]}`, "a/root")
	assert.Equal(t, http.StatusTooManyRequests, res.StatusCode, text)
	assert.Contains(t, text, `"code":"spawn_rate"`)
	at, err := http.ParseTime(res.Header.Get("Retry-After"))
	require.NoError(t, err)
	assert.False(t, at.IsZero())
	_, text = f.call(t, http.MethodGet, "/v1/tasks?agent_id=b", "")
	assert.Contains(t, text, `"tasks":[]`, "nothing is stored")

	for _, parents := range [][]string{{"a"}, {"a/"}, {"a/b/c"}, {"a/%zz"}, {"%01/x"}, {"a/unknown"}, {"nobody/1"}, {"a/root", "a/root"}, {strings.Repeat("x", 5000) + "/1"}} {
		res, text = f.below(t, tasks, task("c", "1"), parents...)
		assert.Equal(t, http.StatusBadRequest, res.StatusCode, "%v: %s", parents, text)
		assert.Contains(t, text, `"field":"Duly-Parent"`)
	}
	assert.Empty(t, f.logs.String(), "none of it is a fault of this side")
}
