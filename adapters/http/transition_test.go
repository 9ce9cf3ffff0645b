package http_test

// Changes over HTTP: what a rule of the scheduler refuses, and what a stream tells of commands.

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// A rule's refusal is a 403 that says which change it was and why.
func TestARuleRefusesOverHTTP(t *testing.T) {
	t.Parallel()
	f := setupWith(t, core.Config{Allow: func(_ context.Context, tr core.Transition) error {
		if tr.Type == model.EventDelete || tr.Kind == "bad" {
			return errors.New("the year is being closed")
		}
		return nil
	}}, httpadapter.Config{})
	res, _ := f.call(t, http.MethodPost, "/v1/tasks", `{"agent_id":"a","id":"1","kind":"ok","delay":"1h"}`)
	require.Equal(t, 201, res.StatusCode)
	for method, c := range map[string]struct{ path, body, want string }{
		http.MethodDelete: {"/v1/agents/a/tasks/1", "", `delete of task "1" of agent "a" (waiting) is not allowed: the year is being closed`},
		http.MethodPost:   {"/v1/tasks", `{"agent_id":"a","id":"2","kind":"bad"}`, `enqueue of task "2" of agent "a" is not allowed: the year is being closed`},
	} {
		res, body := f.call(t, method, c.path, c.body)
		assert.Equal(t, 403, res.StatusCode)
		code, _, detail := problem(t, res, body)
		assert.Equal(t, "forbidden", code)
		assert.Equal(t, c.want, detail)
	}
}

// Whoever listens for all agents hears of commands, with who gave them; one who listens for an agent hears of its own.
func TestCommandsAreStreamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		events := httpadapter.NewEvents()
		f := setupWith(t, core.Config{}, httpadapter.Config{Events: events})
		ctx, end := context.WithCancel(t.Context())
		all, of := httptest.NewRecorder(), httptest.NewRecorder()
		go f.handler.ServeHTTP(all, httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/events", nil))
		go f.handler.ServeHTTP(of, httptest.NewRequestWithContext(ctx, http.MethodGet, "/v1/events?agent_id=a", nil))
		synctest.Wait()
		for _, path := range []string{"/v1/pause", "/v1/kinds/ok/pause", "/v1/agents/a/pause", "/v1/agents/b/pause"} {
			res, body := f.call(t, http.MethodPost, path, fmt.Sprintf(`{"by":"eve","reason":"freeze","ahead":true,"all":%t}`, path == "/v1/pause"))
			require.Equal(t, 200, res.StatusCode, body)
		}
		time.Sleep(time.Second)
		end()
		synctest.Wait()
		assert.Equal(t, 4, strings.Count(all.Body.String(), "event: pause\n"))
		assert.Equal(t, 4, strings.Count(all.Body.String(), `"by":"eve","reason":"freeze"`))
		assert.Equal(t, 1, strings.Count(of.Body.String(), "event: pause\n"), of.Body)
		assert.Contains(t, of.Body.String(), `"agent_id":"a"`)
	})
}
