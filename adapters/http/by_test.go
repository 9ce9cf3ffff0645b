package http_test

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Who has ordered something is the credential that it was ordered with, by every call; whom the caller names is a note beside it.
func TestByIsTheCredential(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var events []core.Event
	f := setupWith(t, core.Config{OnEvent: func(e core.Event) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, e)
	}}, httpadapter.Config{Tokens: []string{"bare"}, Scoped: []httpadapter.Token{{Token: "secret", Grant: httpadapter.Grant{Name: "ci"}}}})
	as := func(token, path, body string) string {
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		res, answer := f.do(t, r)
		require.Less(t, res.StatusCode, 300, "%s: %s", path, answer)
		return answer
	}
	for _, id := range []string{"1", "2", "3", "4"} {
		as("secret", "/v1/tasks", `{"agent_id":"a","id":"`+id+`","kind":"ok","delay":"1h"}`)
	}
	as("secret", "/product/scheduler/submit", `{"user_id":"a","label":"ok","content":"x"}`)
	const forged = `"by":"root-operator","reason":"why"`
	task := "/v1/agents/a/tasks/"
	as("secret", task+"1/pause", `{`+forged+`}`)
	as("secret", task+"2/cancel", `{`+forged+`}`)
	as("secret", "/v1/tasks/pause", `{"agent_id":"a","limit":1000,"confirm":true,`+forged+`}`)
	as("secret", "/v1/tasks/cancel", `{"agent_id":"a","limit":1000,"count":4,`+forged+`}`)
	as("secret", "/v1/agents/a/pause", `{`+forged+`}`)
	as("secret", "/v1/pause", `{"all":true,`+forged+`}`)
	as("bare", "/v1/kinds/ok/pause", `{`+forged+`}`)
	as("secret", "/v1/signals/a/k", `{"payload":{"by":"root-operator"}}`)
	dump := `{"agent_id":"b","pause":{"by":"root-operator","reason":"why"}}` + "\n"
	r := httptest.NewRequest(http.MethodPost, "/v1/agents/b/import", strings.NewReader(dump))
	r.Header.Set("Authorization", "Bearer secret")
	r.Header.Set("Content-Type", "application/x-ndjson")
	res, answer := f.do(t, r)
	require.Equal(t, 200, res.StatusCode, answer)

	mu.Lock()
	defer mu.Unlock()
	kinds := map[model.EventType]int{}
	for _, e := range events {
		by, note := "ci", "root-operator"
		switch {
		case e.By == "" && slices.Contains([]model.EventType{model.EventStart, model.EventFinish}, e.Type):
			continue
		case e.Type == model.EventEnqueue, e.Type == model.EventSignal:
			note = ""
		case e.Kind == "ok" && e.Agent == "":
			by = "a credential without a name"
		}
		kinds[e.Type]++
		assert.Equal(t, [2]string{by, note}, [2]string{e.By, e.Note}, "%+v", e)
	}
	assert.Equal(t, map[model.EventType]int{model.EventEnqueue: 5, model.EventPause: 8, model.EventCancel: 5, model.EventSignal: 1}, kinds)
	info, err := f.scheduler.Task(t.Context(), "a", "2")
	require.NoError(t, err)
	assert.Equal(t, "cancelled by ci (root-operator): why", info.Reason)
	pauses, _, err := f.scheduler.Pauses(t.Context(), 10, "")
	require.NoError(t, err)
	require.NotEmpty(t, pauses)
	for _, p := range pauses {
		assert.NotEqual(t, "root-operator", p.By)
		assert.Equal(t, "root-operator", p.Note)
	}
}
