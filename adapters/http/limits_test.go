package http_test

// Limits over HTTP: set, listed, lifted and refused.

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// A limit is set as a whole, shown as it was sent, bounds what runs, and is lifted by its name.
func TestLimits(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	_, body := f.call(t, "GET", "/v1/limits", "")
	assert.JSONEq(t, `{"limits":[]}`, body)
	for _, c := range [][2]string{
		{`{"kind":"ok","rate":"1/24h","burst":0}`, `{"kind":"ok","rate":"1/24h","burst":0,"running":0,"waiting":0}`},
		{`{"kind":"ok","rate":"1/24h"}`, `{"kind":"ok","rate":"1/24h","burst":1,"running":0,"waiting":0}`},
		{
			`{"limit_key":"openai:*","each":"key","concurrency":5,"rate":"60/1m0s","burst":10}`,
			`{"limit_key":"openai:*","each":"key","concurrency":5,"rate":"60/1m","burst":10,"running":0,"waiting":0}`,
		},
		{`{"each":"agent","concurrency":2}`, `{"each":"agent","concurrency":2,"running":0,"waiting":0}`},
		{`{"concurrency":9}`, `{"concurrency":9,"running":0,"waiting":0}`},
		{`{"kind":"ok","rate":"1/24h","burst":0}`, `{"kind":"ok","rate":"1/24h","burst":0,"running":0,"waiting":0}`},
	} {
		res, body := f.call(t, "PUT", "/v1/limits", c[0])
		require.Equal(t, http.StatusOK, res.StatusCode, body)
		assert.JSONEq(t, c[1], body)
	}
	for _, id := range []string{"1", "2", "3"} {
		f.call(t, "POST", "/v1/tasks", `{"agent_id":"a","id":"`+id+`","kind":"ok"}`)
	}
	_, body = f.call(t, "POST", "/v1/run-due", `{"all":true}`)
	assert.EqualValues(t, 1, get[map[string]any](t, body)["ran"])
	_, body = f.call(t, "GET", "/v1/agents/a/tasks/2/explain", "")
	assert.Equal(t, "limited", get[struct{ Reasons []map[string]any }](t, body).Reasons[0]["code"])
	_, body = f.call(t, "GET", "/v1/limits", "")
	all := get[struct{ Limits []map[string]any }](t, body).Limits
	require.Len(t, all, 4)
	assert.Equal(t, map[string]any{"kind": "ok", "rate": "1/24h", "burst": 0., "running": 0., "waiting": 2.}, all[3])

	_, body = f.call(t, "DELETE", "/v1/limits?kind=ok", "")
	assert.JSONEq(t, `{"kind":"ok","deleted":true}`, body)
	_, body = f.call(t, "DELETE", "/v1/limits?limit_key=openai%3A%2A&each=key", "")
	assert.JSONEq(t, `{"limit_key":"openai:*","each":"key","deleted":true}`, body)
	_, body = f.call(t, "DELETE", "/v1/limits", "")
	assert.JSONEq(t, `{"deleted":true}`, body, "the one on everything, and no other")
	_, body = f.call(t, "POST", "/v1/run-due", `{"all":true}`)
	assert.EqualValues(t, 2, get[map[string]any](t, body)["ran"])
	res, body := f.call(t, "DELETE", "/v1/limits?kind=ok", "")
	assert.Equal(t, http.StatusNotFound, res.StatusCode)
	assert.Contains(t, body, `no limit on kind \"ok\" exists: GET /v1/limits lists all limits`)
}

// What makes no sense is refused by the name of its field before the store is called.
func TestLimitsAreRefused(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	for body, field := range map[string]string{
		`{}`:                                      "concurrency",
		`{"kind":"ok"}`:                           "concurrency",
		`{"kind":"ok","concurrency":0}`:           "concurrency",
		`{"kind":"ok","concurrency":-1}`:          "concurrency",
		`{"kind":"ok","concurrency":1.5}`:         "concurrency",
		`{"kind":"ok","concurrency":"5"}`:         "concurrency",
		`{"kind":"ok","rate":60}`:                 "rate",
		`{"kind":"ok","rate":""}`:                 "rate",
		`{"kind":"ok","rate":"60"}`:               "rate",
		`{"kind":"ok","rate":"0/1m"}`:             "rate",
		`{"kind":"ok","rate":"60/1us"}`:           "rate",
		`{"kind":"ok","rate":"1/1s","burst":-1}`:  "burst",
		`{"kind":"ok","rate":"1/1s","burst":"1"}`: "burst",
		`{"kind":"ok","concurrency":1,"burst":1}`: "rate",
		`{"kind":"a b","concurrency":1}`:          "kind",
		`{"kind":"","concurrency":1}`:             "kind",
		`{"kind":["ok"],"concurrency":1}`:         "kind",
		`{"key":"k","concurrency":1}`:             "key",
		`{"limit_key":"a*b","concurrency":1}`:     "limit_key",
		`{"each":"task","concurrency":1}`:         "each",
		`{"each":"key","concurrency":1}`:          "limit_key",
		`{"concurrency":1,"running":1}`:           "running",
		`[]`:                                      "body",
	} {
		before := f.store.calls.Load()
		res, answer := f.call(t, "PUT", "/v1/limits", body)
		assert.Equal(t, http.StatusBadRequest, res.StatusCode, "%s %s", body, answer)
		assert.Equal(t, field, get[map[string]any](t, answer)["field"], "%s %s", body, answer)
		assert.Equal(t, before, f.store.calls.Load(), body)
	}
	for query, field := range map[string]string{"key=k": "key", "kind=": "kind", "kind=a&kind=b": "kind", "kind=a+b": "kind", "each=task": "each", "each=key": "limit_key"} {
		res, answer := f.call(t, "DELETE", "/v1/limits?"+query, "")
		assert.Equal(t, http.StatusBadRequest, res.StatusCode, query)
		assert.Equal(t, field, get[map[string]any](t, answer)["field"], query)
	}
	for _, c := range [][3]string{{"GET", "/v1/limits?kind=ok", ""}, {"DELETE", "/v1/limits?kind=ok", `{"kind":"ok"}`}, {"PUT", "/v1/limits", ""}} {
		res, answer := f.call(t, c[0], c[1], c[2])
		assert.True(t, res.StatusCode >= 400 && res.StatusCode < 500, "%v %s", c, answer)
	}
	res, _ := f.call(t, "POST", "/v1/limits", `{"kind":"ok","concurrency":1}`)
	assert.Equal(t, "DELETE, GET, HEAD, PUT", res.Header.Get("Allow"))
}

// A store in memory with several partitions takes no limit over agents, and the caller learns why.
func TestLimitsInMemoryNeedOnePartition(t *testing.T) {
	t.Parallel()
	s, err := core.New(memstore.New(memstore.Config{Partitions: 2}), core.Config{})
	require.NoError(t, err)
	f := &fixture{scheduler: s, handler: httpadapter.New(s, httpadapter.Config{})}
	res, body := f.call(t, "PUT", "/v1/limits", `{"kind":"ok","concurrency":1}`)
	assert.Equal(t, http.StatusBadRequest, res.StatusCode)
	assert.Contains(t, body, "Partitions must be 1")
}

// What bounds one agent is set and lifted with its profile alone.
func TestALimitOfOneAgentIsNotLifted(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	for _, path := range []string{"/v1/limits?kind=k&agent_id=ann", "/v1/budgets?kind=k&unit=runs&per=day&agent_id=ann"} {
		res, body := f.call(t, "DELETE", path, "")
		assert.Equal(t, 400, res.StatusCode, body)
		assert.Contains(t, body, `"agent_id"`)
	}
}
