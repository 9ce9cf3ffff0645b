package http_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
)

// Metrics are of all agents together: whoever may read all of them is let in, and nobody else reaches the handler.
func TestWhoMayScrape(t *testing.T) {
	t.Parallel()
	scrapes := 0
	f := setup(t, httpadapter.Config{Tokens: []string{"root"}, Scoped: []httpadapter.Token{
		{Token: "reader", Grant: httpadapter.Grant{Scopes: []httpadapter.Scope{httpadapter.ScopeRead}}},
		{Token: "ticker", Grant: httpadapter.Grant{Scopes: []httpadapter.Scope{httpadapter.ScopeTrigger}}},
		{Token: "ann", Grant: httpadapter.Grant{Agents: []string{"ann"}}},
	}, Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		scrapes++
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write([]byte("duly_ticks_total 1\n"))
	})})
	for _, c := range []struct {
		token, method string
		want, scrapes int
	}{
		{"root", "GET", 200, 1},
		{"reader", "GET", 200, 1},
		{"reader", "HEAD", 200, 1},
		{"reader", "POST", 405, 0},
		{"ticker", "GET", 403, 0},
		{"ann", "GET", 403, 0},
		{"guess", "GET", 401, 0},
	} {
		scrapes = 0
		res, body := f.with(t, c.token, c.method, "/metrics", "")
		assert.Equal(t, c.want, res.StatusCode, "%v %s", c, body)
		assert.Equal(t, c.scrapes, scrapes, "%v", c)
	}
	res, _ := f.call(t, "GET", "/metrics", "")
	assert.Equal(t, 401, res.StatusCode)
	assert.Zero(t, scrapes)
	assert.Zero(t, f.store.calls.Load())

	res, body := setup(t, httpadapter.Config{}).call(t, "GET", "/metrics", "")
	assert.Equal(t, 404, res.StatusCode, body)
}

// A server without credentials, for this machine only, shows its metrics as it does all else: to nobody who comes by a name.
func TestALocalServerShowsItsMetrics(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{LocalOnly: true, Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte("duly_ticks_total 1\n"))
	})})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1:8080/metrics", nil)
	res, body := f.do(t, r)
	assert.Equal(t, 200, res.StatusCode, body)
	assert.Equal(t, "duly_ticks_total 1\n", body)
	r.Host = "evil.example"
	res, _ = f.do(t, r)
	assert.Equal(t, 403, res.StatusCode)
}
