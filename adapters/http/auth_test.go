package http_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
)

// readCounter counts how often a body is read.
type readCounter struct {
	io.Reader

	reads atomic.Int64
}

func (r *readCounter) Read(p []byte) (int, error) {
	r.reads.Add(1)
	return r.Reader.Read(p)
}

func TestATokenIsRequired(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{Tokens: []string{"old token", "new"}})
	for header, want := range map[string]int{
		"":                 http.StatusUnauthorized,
		"Bearer":           http.StatusUnauthorized,
		"Bearer ":          http.StatusUnauthorized,
		"Bearer wrong":     http.StatusUnauthorized,
		"Bearer ne":        http.StatusUnauthorized,
		"Bearer neww":      http.StatusUnauthorized,
		"Basic new":        http.StatusUnauthorized,
		"new":              http.StatusUnauthorized,
		"Bearer new":       http.StatusCreated,
		"bearer  new":      http.StatusCreated,
		"Bearer old token": http.StatusCreated,
	} {
		body := &readCounter{Reader: strings.NewReader(`{"agent_id":"a","kind":"ok"}`)}
		r := httptest.NewRequest(http.MethodPost, "/v1/tasks", body)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", header)
		before := f.store.calls.Load()
		res, text := f.do(t, r)
		assert.Equal(t, want, res.StatusCode, header)
		if want != http.StatusUnauthorized {
			continue
		}
		code, _, _ := problem(t, res, text)
		assert.Equal(t, "unauthorized", code)
		assert.Equal(t, "Bearer", res.Header.Get("WWW-Authenticate"))
		assert.Equal(t, "close", res.Header.Get("Connection"))
		assert.Zero(t, body.reads.Load())
		assert.Equal(t, before, f.store.calls.Load())
	}
	assert.NotContains(t, f.logs.String(), "new")
	for _, path := range []string{"/v1/stats", "/v1/nothing", "/"} {
		res, _ := f.call(t, "GET", path, "")
		assert.Equal(t, http.StatusUnauthorized, res.StatusCode, "nor is it told what there is")
	}
	before := f.store.calls.Load()
	for _, path := range []string{"/healthz", "/readyz"} {
		res, _ := f.call(t, "GET", path, "")
		assert.Equal(t, http.StatusOK, res.StatusCode)
	}
	assert.Equal(t, before, f.store.calls.Load())
}

func TestAnEmptyTokenIsAMistake(t *testing.T) {
	t.Parallel()
	assert.PanicsWithValue(t, "httpadapter: Tokens[1] is empty", func() {
		httpadapter.New(nil, httpadapter.Config{Tokens: []string{"a", " "}})
	})
}

func TestBrowsersAreKeptOut(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{LocalOnly: true})
	for _, c := range []struct {
		host, origin, site string
		want               int
	}{
		{"localhost:8080", "", "", http.StatusCreated},
		{"127.0.0.1:8080", "", "", http.StatusCreated},
		{"[::1]:8080", "", "", http.StatusCreated},
		{"[::1]", "http://[::1]", "same-origin", http.StatusCreated},
		{"localhost", "http://localhost", "", http.StatusCreated},
		{"localhost:8080", "https://evil.example", "", http.StatusForbidden},
		{"localhost:8080", "", "cross-site", http.StatusForbidden},
		{"evil.example:8080", "http://evil.example:8080", "same-origin", http.StatusForbidden},
		{"127.0.0.1.evil.example", "", "", http.StatusForbidden},
	} {
		r := httptest.NewRequest(http.MethodPost, "/v1/tasks", strings.NewReader(`{"agent_id":"a","id":"i","kind":"ok"}`))
		r.Host = c.host
		r.Header.Set("Content-Type", "application/json")
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		if c.site != "" {
			r.Header.Set("Sec-Fetch-Site", c.site)
		}
		before := f.store.calls.Load()
		res, body := f.do(t, r)
		if c.want == http.StatusForbidden {
			assert.Equal(t, c.want, res.StatusCode, "%+v", c)
			code, _, _ := problem(t, res, body)
			assert.Equal(t, "forbidden", code)
			assert.Equal(t, before, f.store.calls.Load())
		} else {
			assert.Less(t, res.StatusCode, 300, "%+v: %s", c, body)
		}
	}
}

func TestHealthAndReadiness(t *testing.T) {
	t.Parallel()
	var down atomic.Bool
	f := setup(t, httpadapter.Config{Version: "v1.2.3", Ready: func(context.Context) error {
		if down.Load() {
			return errors.New("dial tcp 10.1.2.3: refused")
		}
		return nil
	}})
	_, body := f.call(t, "GET", "/healthz", "")
	assert.JSONEq(t, `{"status":"ok","version":"v1.2.3"}`, body)
	_, body = f.call(t, "GET", "/readyz", "")
	assert.JSONEq(t, `{"status":"ready","slots":{"total":5,"in_use":0},"abandoned":0}`, body)
	down.Store(true)
	res, body := f.call(t, "GET", "/readyz", "")
	assert.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
	code, _, _ := problem(t, res, body)
	assert.Equal(t, "unavailable", code)
	assert.NotContains(t, body, "10.1.2.3")
	res, _ = f.call(t, "GET", "/healthz", "")
	assert.Equal(t, http.StatusOK, res.StatusCode, "a process is healthy without its store")
}
