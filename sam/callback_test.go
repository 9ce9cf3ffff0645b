package main_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

const webhookSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// A message of a queue names who is told of its end; the next tick tells, signed.
func TestTheFunctionDeliversCallbacks(t *testing.T) {
	t.Parallel()
	got := make(chan *http.Request, 10)
	bodies := make(chan string, 10)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- r
		bodies <- string(body)
	}))
	t.Cleanup(srv.Close)
	w := newWorld(t, "DULY_CALLBACKS=https://hooks.example.com/, "+srv.URL+"/ends/", "DULY_WEBHOOK_SECRET="+webhookSecret)
	e := w.environment(20 * time.Second)
	failed := w.answer(e, fmt.Sprintf(`{"Records":[
		{"eventSource":"aws:sqs","messageId":"m1","body":"{\"agent_id\":\"ada\",\"id\":\"1\",\"kind\":\"note\",\"callback\":\"%s/ends/1\"}"},
		{"eventSource":"aws:sqs","messageId":"m2","body":"{\"agent_id\":\"ada\",\"id\":\"2\",\"kind\":\"note\",\"callback\":\"%s/other\"}"}]}`, srv.URL, srv.URL))
	assert.Equal(t, map[string]any{"batchItemFailures": []any{map[string]any{"itemIdentifier": "m2"}}}, failed, "it is not allowed")
	w.answer(e, tick)
	w.answer(e, tick)
	require.Len(t, got, 1)
	assert.NotEmpty(t, (<-got).Header.Get("Webhook-Signature"))
	assert.Contains(t, <-bodies, `"status":"completed"`)
	delivery, err := w.scheduler.Task(t.Context(), "ada", w.task("1").CallbackTask)
	require.NoError(t, err)
	assert.Equal(t, core.StatusCompleted, delivery.Status)
}
