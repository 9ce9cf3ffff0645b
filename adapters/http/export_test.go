package http_test

// Exports and imports over HTTP.

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// sendLines sends lines to be imported.
func (f *fixture) sendLines(t *testing.T, agent, token, media, lines string) (*reply, string) {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/v1/agents/"+agent+"/import", strings.NewReader(lines))
	r.Header.Set("Content-Type", media)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return f.do(t, r)
}

func TestExportAndImport(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{MaxBody: 10_000})
	res, body := f.call(t, "GET", "/v1/agents/a/export", "")
	assert.Equal(t, http.StatusNotFound, res.StatusCode)
	assert.Contains(t, body, "the agent has no live task, no profile and no pause")
	f.call(t, "PUT", "/v1/agents/a", `{"zone":"Asia/Tokyo"}`)
	f.call(t, "POST", "/v1/tasks", `{"tasks":[{"agent_id":"a","id":"1","kind":"ok","cron":"@daily"},{"agent_id":"a","id":"2","kind":"ok","manual":true,"paused":true}]}`)
	res, lines := f.call(t, "GET", "/v1/agents/a/export", "")
	require.Equal(t, http.StatusOK, res.StatusCode)
	assert.Equal(t, "application/x-ndjson", res.Header.Get("Content-Type"))
	assert.Equal(t, 3, strings.Count(lines, "\n"))

	for _, want := range []string{
		`{"new":3,"same":0,"differs":0,"refused":0,"errors":[]}`, `{"new":0,"same":3,"differs":0,"refused":0,"errors":[]}`,
	} {
		res, body = f.sendLines(t, "b", "", "application/x-ndjson", lines)
		require.Equal(t, http.StatusOK, res.StatusCode, body)
		assert.JSONEq(t, want, body)
	}
	res, body = f.sendLines(t, "c", "", "application/jsonl", `{"task":{"kind":"ok","id":"1","evry":"1h"}}`)
	assert.Equal(t, http.StatusOK, res.StatusCode)
	assert.JSONEq(t, `{"new":0,"same":0,"differs":0,"refused":1,"errors":[{"line":1,"code":"invalid","field":"task.evry","error":"task.evry is not a field of a task: values of your own go into labels"}]}`, body)
	res, _ = f.sendLines(t, "c", "", "application/json", lines)
	assert.Equal(t, http.StatusUnsupportedMediaType, res.StatusCode)
	res, _ = f.sendLines(t, "c", "", "application/x-ndjson", strings.Repeat(lines, 100))
	assert.Equal(t, http.StatusRequestEntityTooLarge, res.StatusCode)
	res, _ = f.call(t, "GET", "/v1/agents/a/export?x=1", "")
	assert.Equal(t, http.StatusBadRequest, res.StatusCode)
}

// What fails behind the first page cuts the connection, so that nobody takes a part for the whole.
func TestAnExportThatFailsIsCutOff(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	f.call(t, "POST", "/v1/tasks", `{"agent_id":"a","id":"1","kind":"ok","delay":"1h"}`)
	f.store.err = &store.Error{Verb: "read", Err: errors.New("away")}
	res, _ := f.call(t, "GET", "/v1/agents/a/export", "")
	assert.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
	f.store.err = nil
	r := httptest.NewRequest(http.MethodGet, "/v1/agents/a/export", http.NoBody)
	assert.PanicsWithValue(t, http.ErrAbortHandler, func() { f.handler.ServeHTTP(gone{httptest.NewRecorder()}, r) })
}

// gone is a client that has gone away.
type gone struct{ *httptest.ResponseRecorder }

func (gone) Write([]byte) (int, error) { return 0, errors.New("gone") }

// The agent of the path is what a caller needs rights for, whichever the lines name.
func TestImportsNeedTheirAgent(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{Scoped: []httpadapter.Token{
		{Token: "b", Grant: httpadapter.Grant{Scopes: []httpadapter.Scope{httpadapter.ScopeWrite}, Agents: []string{"b"}}},
	}})
	lines := `{"agent_id":"a"}` + "\n" + `{"task":{"agent_id":"a","kind":"ok","id":"1","delay":"1h"}}`
	res, _ := f.sendLines(t, "a", "b", "application/x-ndjson", lines)
	assert.Equal(t, http.StatusForbidden, res.StatusCode)
	res, body := f.sendLines(t, "b", "b", "application/x-ndjson", lines)
	require.Equal(t, http.StatusOK, res.StatusCode, body)
	assert.Contains(t, body, `"new":1`)
	r := httptest.NewRequest(http.MethodGet, "/v1/agents/b/export", http.NoBody)
	r.Header.Set("Authorization", "Bearer b")
	res, _ = f.do(t, r)
	assert.Equal(t, http.StatusForbidden, res.StatusCode, "writing is not reading")
}
