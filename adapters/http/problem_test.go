package http_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Every code has its status, and what goes wrong inside is not told outside.
func TestErrorsOfTheStore(t *testing.T) {
	t.Parallel()
	secret := errors.New("dial tcp 10.1.2.3:6379: password hunter2")
	for _, c := range []struct {
		err          error
		status       int
		code, detail string
	}{
		{&store.Error{Verb: "read", Err: secret}, 503, "unavailable", "Retry it with the same id."},
		{&store.Error{Verb: "read", Err: store.ErrFull}, 503, "store_full", "out of memory"},
		{core.ErrLeaseLost, 409, "lease_lost", "lease lost"},
		{&store.LimitError{Agent: "a", Limit: 5}, 429, "limit", `agent "a" has 5 live tasks`},
		{core.ErrNotFound, 404, "not_found", "not found"},
		{secret, 500, "internal", "internal error"},
	} {
		f := setup(t, httpadapter.Config{})
		f.store.err = c.err
		for _, call := range [][3]string{
			{"GET", "/v1/stats", ""},
			{"GET", "/v1/agents/a/tasks/i", ""},
			{"POST", "/v1/run-due", `{"agent_ids":["a"]}`},
			{"POST", "/v1/tasks", `{"agent_id":"a","kind":"ok","id":"i"}`},
		} {
			res, body := f.call(t, call[0], call[1], call[2])
			assert.Equal(t, c.status, res.StatusCode, body)
			code, _, detail := problem(t, res, body)
			assert.Equal(t, c.code, code)
			want := c.detail
			if call[0] == "GET" && c.code == "unavailable" { // nothing can have been stored
				want = "Redis is unavailable; nothing was read. Try again."
			}
			assert.Contains(t, detail, want)
			assert.NotContains(t, body, "hunter2")
		}
		if c.status == http.StatusServiceUnavailable && c.code == "unavailable" { // what a retry does depends on the ids
			res, body := f.call(t, "POST", "/v1/tasks", `{"tasks":[{"agent_id":"a","kind":"ok","id":"i"},{"agent_id":"a","kind":"ok"}]}`)
			_, _, detail := problem(t, res, body)
			assert.Contains(t, detail, "a retry may create tasks without an id a second time: give the tasks ids, or send the header Idempotency-Key")
		}
		assert.Equal(t, c.status >= 500, f.logs.Len() > 0, "faults of this side are logged")
	}
}

func TestErrorsOfTheTracker(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	for _, path := range []string{"/v1/agents/a/tasks/i", "/v1/agents/a/tasks/i/runs", "/v1/groups/a/g"} {
		res, body := f.call(t, "GET", path, "")
		code, _, _ := problem(t, res, body)
		assert.Equal(t, http.StatusNotFound, res.StatusCode)
		assert.Equal(t, "not_found", code)
	}
	f.call(t, "POST", "/v1/tasks", `{"agent_id":"a","id":"i","kind":"ok"}`)
	res, body := f.call(t, "POST", "/v1/agents/a/tasks/i/replay", "")
	code, _, detail := problem(t, res, body)
	assert.Equal(t, http.StatusConflict, res.StatusCode)
	assert.Equal(t, "conflict", code)
	assert.Contains(t, detail, "only failed tasks")
	for range 4 {
		f.call(t, "POST", "/v1/tasks", `{"agent_id":"a","kind":"ok"}`)
	}
	res, body = f.call(t, "POST", "/v1/tasks", `{"agent_id":"a","kind":"ok"}`)
	code, _, _ = problem(t, res, body)
	assert.Equal(t, http.StatusTooManyRequests, res.StatusCode)
	assert.Equal(t, "limit", code)
}

func TestPanicsAreAnswered(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	f.store.panic = "hunter2"
	res, body := f.call(t, "GET", "/v1/stats", "")
	assert.Equal(t, http.StatusInternalServerError, res.StatusCode)
	code, _, _ := problem(t, res, body)
	assert.Equal(t, "internal", code)
	assert.NotContains(t, body, "hunter2")
	assert.Contains(t, f.logs.String(), "hunter2")
	f.store.panic = http.ErrAbortHandler
	assert.Panics(t, func() { f.call(t, "GET", "/v1/stats", "") })
}
