package http_test

// Budgets over HTTP: set, listed, lifted and refused.

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
)

// A budget is set as a whole, bounds what runs, and is lifted by its name.
func TestBudgets(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	_, body := f.call(t, "GET", "/v1/budgets", "")
	assert.JSONEq(t, `{"budgets":[]}`, body)
	res, body := f.call(t, "PUT", "/v1/budgets", `{"kind":"ok","unit":"runs","per":"month","amount":1,"zone":"Europe/Berlin"}`)
	require.Equal(t, http.StatusOK, res.StatusCode, body)
	set := get[map[string]any](t, body)
	assert.NotEmpty(t, set["ends_at"])
	delete(set, "ends_at")
	assert.Equal(t, map[string]any{
		"kind": "ok", "unit": "runs", "per": "month", "amount": 1., "zone": "Europe/Berlin", "then": "hold", "used": 0., "used_up": 0., "waiting": 0., "shares": []any{},
	}, set)
	for _, id := range []string{"1", "2", "3"} {
		f.call(t, "POST", "/v1/tasks", `{"agent_id":"a","id":"`+id+`","kind":"ok"}`)
	}
	_, body = f.call(t, "POST", "/v1/run-due", `{"all":true}`)
	assert.EqualValues(t, 1, get[map[string]any](t, body)["ran"])
	_, body = f.call(t, "GET", "/v1/agents/a/tasks/2/explain", "")
	assert.Equal(t, "budget", get[struct{ Reasons []map[string]any }](t, body).Reasons[0]["code"])
	_, body = f.call(t, "DELETE", "/v1/budgets?kind=ok&unit=runs&per=month", "")
	assert.JSONEq(t, `{"kind":"ok","unit":"runs","per":"month","deleted":true}`, body)
	_, body = f.call(t, "POST", "/v1/run-due", `{"all":true}`)
	assert.EqualValues(t, 2, get[map[string]any](t, body)["ran"])
	res, body = f.call(t, "DELETE", "/v1/budgets?kind=ok&unit=runs&per=month", "")
	assert.Equal(t, http.StatusNotFound, res.StatusCode)
	assert.Contains(t, body, `GET /v1/budgets lists all budgets`)
}

// What makes no sense is refused by the name of its field before the store is called.
func TestBudgetsAreRefused(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	for body, field := range map[string]string{
		`{"unit":"tokens","per":"day"}`:                              "amount",
		`{"unit":"tokens","per":"day","amount":0}`:                   "amount must not be 0: give a larger one",
		`{"unit":"tokens","per":"day","amount":-1}`:                  "amount",
		`{"unit":"tokens","per":"day","amount":"5"}`:                 "amount",
		`{"unit":"tokens","per":"day","amount":1e300}`:               "amount",
		`{"per":"day","amount":5}`:                                   "unit",
		`{"unit":"to kens","per":"day","amount":5}`:                  "unit",
		`{"unit":"tokens","amount":5}`:                               "per",
		`{"unit":"tokens","per":"week","amount":5}`:                  "per",
		`{"unit":"tokens","per":"day","amount":5,"zone":"Mars"}`:     "zone",
		`{"unit":"tokens","per":"day","amount":5,"then":"stop"}`:     "then",
		`{"unit":"tokens","per":"day","amount":5,"each":"process"}`:  "each",
		`{"unit":"tokens","per":"day","amount":5,"used":5}`:          "used",
		`{"kind":"a b","unit":"tokens","per":"day","amount":5}`:      "kind",
		`{"limit_key":"a*b","unit":"tokens","per":"day","amount":5}`: "limit_key",
	} {
		res, said := f.call(t, "PUT", "/v1/budgets", body)
		assert.Equal(t, http.StatusBadRequest, res.StatusCode, body)
		assert.Contains(t, said, field, body)
	}
	_, body := f.call(t, "GET", "/v1/budgets", "")
	assert.JSONEq(t, `{"budgets":[]}`, body)
}
