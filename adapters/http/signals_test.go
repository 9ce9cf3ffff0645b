package http_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
)

// Somebody tells a task to continue; whoever may not act for the agent is refused.
func TestSignals(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	core.Handle(f.scheduler, "asks", func(_ context.Context, t *core.Task[string]) error {
		if heard, waited := t.Heard(); waited {
			return t.SetResult(heard.Payload)
		}
		return core.Await(core.Signal{Key: "an/approval"}, nil)
	})
	f.call(t, "POST", "/v1/tasks", `{"agent_id":"a","id":"i","kind":"asks"}`)
	f.call(t, "POST", "/v1/run-due", `{"agent_ids":["a"]}`)
	_, body := f.call(t, "GET", "/v1/agents/a/tasks/i", "")
	assert.Contains(t, body, `"awaiting":{"key":"an/approval","fence":`)
	_, body = f.call(t, "GET", "/v1/agents/a/tasks/i/explain", "")
	assert.Equal(t, "signal", get[struct{ Reasons []map[string]any }](t, body).Reasons[0]["code"])

	const url = "/v1/signals/a/an%2Fapproval"
	for body, status := range map[string]int{`{"payload":{`: 400, `{"pay":1}`: 400, `[]`: 400} {
		res, text := f.call(t, "POST", url, body)
		assert.Equal(t, status, res.StatusCode, text)
	}
	res, body := f.call(t, "POST", url, `{"payload":{"by":"ann"}}`)
	require.Equal(t, http.StatusOK, res.StatusCode, body)
	assert.JSONEq(t, `{"resumed":1,"kept":false}`, body)
	_, body = f.call(t, "POST", "/v1/run-due", `{"agent_ids":["a"]}`)
	assert.EqualValues(t, 1, get[map[string]any](t, body)["completed"])
	_, body = f.call(t, "GET", "/v1/agents/a/tasks/i", "")
	assert.Equal(t, map[string]any{"by": "ann"}, get[map[string]any](t, body)["result"])

	res, body = f.call(t, "POST", url, "")
	assert.Equal(t, http.StatusAccepted, res.StatusCode)
	assert.JSONEq(t, `{"resumed":0,"kept":true}`, body)
	res, body = f.call(t, "POST", url, "")
	assert.Equal(t, http.StatusConflict, res.StatusCode, body)
}
