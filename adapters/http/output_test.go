package http_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// The output of a run is JSON, or text where that is asked for; what follows an answer can be asked for.
func TestOutputOfATask(t *testing.T) {
	t.Parallel()
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	require.NoError(t, err)
	core.Handle(s, "k", func(_ context.Context, task *core.Task[any]) error {
		_, err := fmt.Fprintln(task.Output(), "page 1\npage 2")
		return err
	})
	for _, id := range []string{"t", "silent"} {
		_, err = s.Submit(t.Context(), core.NewTask{Agent: "ada", ID: id, Kind: map[string]string{"t": "k", "silent": "other"}[id]})
		require.NoError(t, err)
	}
	_, err = s.RunDue(t.Context(), core.Scope{})
	require.NoError(t, err)
	read := httpadapter.Token{Token: strings.Repeat("r", 32), Grant: httpadapter.Grant{Scopes: []httpadapter.Scope{httpadapter.ScopeRead}, Agents: []string{"ada"}}}
	work := httpadapter.Token{Token: strings.Repeat("w", 32), Grant: httpadapter.Grant{Scopes: []httpadapter.Scope{httpadapter.ScopeWork}}}
	h := httpadapter.New(s, httpadapter.Config{Scoped: []httpadapter.Token{read, work}})
	get := func(path, accept, token string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	const path = "/v1/agents/ada/tasks/t/output"
	w := get(path, "text/plain", read.Token)
	assert.Equal(t, http.StatusOK, w.Code)
	assert.Equal(t, "page 1\npage 2\n", w.Body.String())
	assert.Equal(t, "text/plain; charset=utf-8", w.Header().Get("Content-Type"))
	w = get(path, "application/json", read.Token)
	out, err := s.Output(t.Context(), "ada", "t", inspect.OutputFrom{})
	require.NoError(t, err)
	assert.JSONEq(t, fmt.Sprintf(`{"agent_id":"ada","id":"t","status":"completed","run":%d,"attempt":1,"started_at":%q,"text":"page 1\npage 2\n","left_out":0,"end":14,"complete":true,"before":null}`,
		out.Run, out.Started.Format("2006-01-02T15:04:05.999999999Z07:00")), w.Body.String())
	assert.Equal(t, "page 2\n", get(fmt.Sprintf("%s?run=%d&after=7", path, out.Run), "text/plain", read.Token).Body.String())
	assert.Equal(t, "page 1\npage 2\n", get(path+"?run=1&after=7", "text/plain", read.Token).Body.String(), "another run is answered as a whole")
	assert.JSONEq(t, `{"agent_id":"ada","id":"silent","status":"waiting","run":0,"attempt":0,"text":"","left_out":0,"end":0,"complete":false,"before":null}`,
		get("/v1/agents/ada/tasks/silent/output", "", read.Token).Body.String())
	for path, want := range map[string]int{
		"/v1/agents/ada/tasks/none/output": http.StatusNotFound, "/v1/agents/bob/tasks/t/output": http.StatusForbidden,
		path + "?after=x": http.StatusBadRequest, path + "?after=-1": http.StatusBadRequest, path + "?before=1": http.StatusBadRequest,
	} {
		assert.Equal(t, want, get(path, "", read.Token).Code, path)
	}
	assert.Equal(t, http.StatusForbidden, get(path, "", work.Token).Code, "it needs the scope read")
}
