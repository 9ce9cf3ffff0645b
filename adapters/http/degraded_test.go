package http_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/adaptertest"
	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// ask sends a request and holds the exchange against the description of the API.
func ask(t *testing.T, h http.Handler, method, path, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	res := &reply{StatusCode: w.Code, Header: w.Header()}
	isDescribed(t, r, []byte(body), res, w.Body.String())
	return w.Code, w.Body.String()
}

// Partitions that are away are named, and are no reason to take the process out of service or to lose a report.
func TestPartitionsThatAreAwayAreNamed(t *testing.T) {
	t.Parallel()
	store := &adaptertest.Partly{Store: memstore.New(memstore.Config{Partitions: 8})}
	s, err := core.New(store, core.Config{Concurrency: 7})
	require.NoError(t, err)
	core.Handle(s, "ok", func(context.Context, *core.Task[any]) error { return nil })
	h := httpadapter.New(s, httpadapter.Config{})
	for p := range store.Partitions() {
		_, err := s.Submit(t.Context(), core.NewTask{Agent: adaptertest.AgentOf(p, store.Partitions()), Kind: "ok"})
		require.NoError(t, err)
	}
	store.SetAway(2, 5)
	status, body := ask(t, h, "POST", "/v1/run-due", `{"all":true}`)
	assert.Equal(t, http.StatusOK, status)
	assert.Contains(t, body, `"completed":6`)
	assert.Contains(t, body, `"away":[2,5]`)
	status, body = ask(t, h, "GET", "/readyz", "")
	assert.Equal(t, http.StatusOK, status)
	assert.JSONEq(t, `{"status":"degraded","slots":{"total":7,"in_use":0},"abandoned":0,"away":[2,5]}`, body)
	store.SetAway()
	require.Eventually(t, func() bool {
		_, err := s.RunDue(t.Context(), core.Scope{})
		return err == nil && s.Ready() == nil
	}, 10*time.Second, time.Millisecond)
	_, body = ask(t, h, "GET", "/readyz", "")
	assert.JSONEq(t, `{"status":"ready","slots":{"total":7,"in_use":0},"abandoned":0}`, body)
}

// A process that claims nothing because of its handlers is not ready, whoever asks for its runs, and says why.
func TestAProcessWithStuckHandlersIsNotReady(t *testing.T) {
	t.Parallel()
	s, err := core.New(memstore.New(memstore.Config{Partitions: 8}), adaptertest.Stuck)
	require.NoError(t, err)
	h := httpadapter.New(s, httpadapter.Config{})
	letGo := adaptertest.Stick(t, s)
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "stuck"})
	require.NoError(t, err)
	for method, path := range map[string]string{"GET": "/readyz", "POST": "/v1/run-due"} {
		body := ""
		if method == "POST" {
			body = `{"all":true}`
		}
		status, answer := ask(t, h, method, path, body)
		assert.Equal(t, http.StatusServiceUnavailable, status, path)
		assert.Contains(t, answer, `"code":"abandoned"`, path)
		assert.Contains(t, answer, "1 handlers ignore that their context is cancelled", path)
	}
	letGo()
	require.Eventually(t, func() bool { return s.Ready() == nil }, 10*time.Second, time.Millisecond)
	status, _ := ask(t, h, "GET", "/readyz", "")
	assert.Equal(t, http.StatusOK, status)
}
