package http_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
)

// keyed submits with the header Idempotency-Key.
func (f *fixture) keyed(t *testing.T, body string, keys ...string) (int, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "http://localhost/v1/tasks", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for _, key := range keys {
		r.Header.Add("Idempotency-Key", key)
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

type placedJSON struct {
	Tasks []struct {
		ID      string
		Created bool
	}
}

// A key makes a request one: repeated it changes nothing, and with another content it is refused before anything is written.
func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	const two = `{"tasks":[{"agent_id":"a","kind":"ok","delay":"1h"},{"agent_id":"a","kind":"ok","id":"own","delay":"1h"},{"agent_id":"b","kind":"ok","payload":1}]}`
	status, text := f.keyed(t, two, "k1")
	require.Equal(t, http.StatusCreated, status, text)
	first := get[placedJSON](t, text)
	assert.Equal(t, "own", first.Tasks[1].ID)
	assert.NotEqual(t, first.Tasks[0].ID, first.Tasks[2].ID)
	status, text = f.keyed(t, two, "k1")
	require.Equal(t, http.StatusOK, status, text)
	again := get[placedJSON](t, text)
	for i := range again.Tasks {
		assert.Equal(t, first.Tasks[i].ID, again.Tasks[i].ID)
		assert.False(t, again.Tasks[i].Created)
	}
	status, text = f.keyed(t, strings.Replace(two, `"payload":1`, `"payload":2`, 1), "k1")
	require.Equal(t, http.StatusConflict, status, text)
	assert.Contains(t, text, "was already used for another request")
	status, text = f.keyed(t, `{"tasks":[{"agent_id":"a","kind":"other","delay":"1h"},{"agent_id":"a","kind":"ok"},{"agent_id":"c","kind":"ok"}]}`, "k1")
	require.Equal(t, http.StatusConflict, status, text)
	_, text = f.call(t, "GET", "/v1/tasks?agent_id=c", "")
	assert.Contains(t, text, `"tasks":[]`, "a refusal writes nothing")
	status, text = f.keyed(t, two, "k2")
	require.Equal(t, http.StatusCreated, status, text)
	assert.NotEqual(t, first.Tasks[0].ID, get[placedJSON](t, text).Tasks[0].ID)

	for want, keys := range map[string][]string{
		"is given twice": {"a", "b"}, "must not be empty": {""}, "is 256 bytes long: the limit is 255": {strings.Repeat("k", 256)},
	} {
		status, text = f.keyed(t, two, keys...)
		assert.Equal(t, http.StatusBadRequest, status)
		assert.Contains(t, text, want)
	}
	status, text = f.keyed(t, `{"tasks":[{"agent_id":"a","kind":"ok"},{"agent_id":"","kind":"ok"}]}`, "k3")
	assert.Equal(t, http.StatusBadRequest, status)
	assert.Contains(t, text, "tasks[1].agent_id")
}

// A task that exists with another content says so.
func TestAKnownTaskThatDiffers(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	const task = `{"agent_id":"a","id":"i","kind":"ok","delay":"1h","payload":{"n":1}}`
	f.call(t, "POST", "/v1/tasks", task)
	_, text := f.call(t, "POST", "/v1/tasks", task)
	assert.NotContains(t, text, "differs")
	_, text = f.call(t, "POST", "/v1/tasks", strings.Replace(task, `{"n":1}`, `{"n":2}`, 1))
	assert.Contains(t, text, `"created":false,"differs":true`)
}
