package webhook_test

// Headers and tokens by which a server knows who calls, and what becomes of them elsewhere.

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/handlers/webhook"
)

// A run, a batch and the question of a gate have the headers of the configuration, beside those that duly sets.
func TestHeadersAreSent(t *testing.T) {
	t.Parallel()
	for _, m := range allThree(t, webhook.Config{Headers: map[string]string{"x-vercel-protection-bypass": "bypass-secret", "X-Team": "core"}, Bearer: "t0ken-of-ann"}) {
		assert.Equal(t, "bypass-secret", m.header.Get("X-Vercel-Protection-Bypass"))
		assert.Equal(t, "core", m.header.Get("X-Team"))
		assert.Equal(t, "Bearer t0ken-of-ann", m.header.Get("Authorization"))
		assert.Equal(t, "application/json", m.header.Get("Content-Type"))
		assert.NotEmpty(t, m.header.Get("Webhook-Id"))
	}
	for _, m := range allThree(t, webhook.Config{Identity: prover(func(r *http.Request, body []byte) error {
		r.Header.Set("X-Proof", string(body))
		return nil
	})}) {
		assert.NotEmpty(t, m.body)
		assert.Equal(t, string(m.body), m.header.Get("X-Proof"))
	}
}

// allThree sends a run, a batch and a question with a configuration, and returns them.
func allThree(t *testing.T, c webhook.Config) []message {
	t.Helper()
	rec := newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/batch" {
			_, _ = io.WriteString(w, "[null]")
		}
	})
	config := func(path string) webhook.Config {
		c := c
		c.URL, c.AllowLoopback = rec.URL+path, true
		return c
	}
	one, err := webhook.New(config("/one"))
	require.NoError(t, err)
	many, err := webhook.New(config("/batch"))
	require.NoError(t, err)
	gate, err := webhook.NewGate(webhook.GateConfig{Config: config("/gate")})
	require.NoError(t, err)
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{Kinds: map[string]core.KindConfig{"many": {Batch: 5}}})
	require.NoError(t, err)
	core.Handle(s, "one", one.Run)
	core.Gate(s, "one", gate.Ask)
	core.HandleBatch(s, "many", many.RunBatch)
	for _, kind := range []string{"one", "many"} {
		_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: kind, Kind: kind})
		require.NoError(t, err)
	}
	_, err = s.RunDue(t.Context(), core.Scope{})
	require.NoError(t, err)
	require.Len(t, rec.messages(), 3)
	return rec.messages()
}

// What duly sets itself nobody else sets, what is no header of HTTP is refused, and no error has a value.
func TestHeadersThatAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"Webhook-Id", "webhook-timestamp", "WEBHOOK-SIGNATURE", "Webhook-Other", "Content-Type", "content-length", "Host", "Duly-Parent", "duly-value-tenant",
		"User-Agent", "Traceparent", "If-None-Match", "Connection", "Transfer-Encoding", "Expect", "Accept-Encoding", "X-Amz-Date",
	} {
		_, err := webhook.New(webhook.Config{URL: "https://a.example", Headers: map[string]string{name: "value-of-it"}})
		var wrong *core.ConfigError
		require.ErrorAs(t, err, &wrong, name)
		assert.Equal(t, "Headers[\""+name+"\"] has a name that duly uses itself: "+http.CanonicalHeaderKey(name), wrong.Error())
	}
	for _, c := range []struct {
		config webhook.Config
		want   string
	}{
		{webhook.Config{Headers: map[string]string{"": "v-secret"}}, "must have a name of letters"},
		{webhook.Config{Headers: map[string]string{"X Y": "v-secret"}}, "must have a name of letters"},
		{webhook.Config{Headers: map[string]string{"X:": "v-secret"}}, "must have a name of letters"},
		{webhook.Config{Headers: map[string]string{"Ü": "v-secret"}}, "must have a name of letters"},
		{webhook.Config{Headers: map[string]string{"X": ""}}, `Headers["X"] must have a value`},
		{webhook.Config{Headers: map[string]string{"X": "v-secret\r\nY: z"}}, "without control characters"},
		{webhook.Config{Headers: map[string]string{"X": "v-secret\x00"}}, "without control characters"},
		{webhook.Config{Headers: map[string]string{"X": " v-secret"}}, "without space around it"},
		{webhook.Config{Headers: map[string]string{"X-A": "v-secret", "x-a": "v-secret"}}, "is given twice"},
		{webhook.Config{Bearer: "v-secret\n"}, "Bearer must be a token without spaces and control characters"},
		{webhook.Config{Bearer: "v-secret and more"}, "Bearer must be a token"},
		{webhook.Config{Bearer: "v-secret", Headers: map[string]string{"authorization": "v-secret"}}, "not several: the header Authorization, a bearer token"},
		{webhook.Config{Bearer: "v-secret", Identity: prover(nil)}, "not several: a bearer token, an identity"},
		{webhook.Config{URL: "https://ann:v-secret@a.example", Bearer: "v-secret"}, "not several: the user in the URL, a bearer token"},
	} {
		if c.config.URL == "" {
			c.config.URL = "https://a.example"
		}
		_, err := webhook.New(c.config)
		require.ErrorAs(t, err, new(*core.ConfigError), c.want)
		require.ErrorContains(t, err, c.want)
		assert.NotContains(t, err.Error(), "v-secret")
	}
	_, err := webhook.New(webhook.Config{URL: "https://ann:pass@a.example"})
	require.NoError(t, err, "one proof")
}

// A redirect leads nowhere, so no other server gets a header.
func TestARedirectTakesNoHeaderAlong(t *testing.T) {
	t.Parallel()
	var elsewhere atomic.Int64
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	t.Cleanup(other.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		rec := newReceiver(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, other.URL, status) })
		info := newWorld(t, webhook.Config{URL: rec.URL, AllowLoopback: true, Bearer: "t0ken-of-ann", Headers: map[string]string{"X-Key": "key-of-ann"}}).once(core.NewTask{})
		assert.Equal(t, core.StatusFailed, info.Status)
		assert.Contains(t, info.LastError, "redirects are not followed")
	}
	assert.Zero(t, elsewhere.Load())
}

// A server may quote what it refuses: the task's error shows no value of a header, nor the part of one that fits.
func TestErrorsHideWhatWasSent(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("k", 100)
	for _, c := range []webhook.Config{
		{Bearer: long},
		{Headers: map[string]string{"Authorization": "Basic " + long}},
		{Headers: map[string]string{"X-Key": long}},
		{Identity: prover(func(r *http.Request, _ []byte) error { r.Header.Set("Authorization", "Bearer "+long); return nil })},
	} {
		rec := newReceiver(t, func(w http.ResponseWriter, r *http.Request) {
			_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, strings.Repeat("-", 250)+token+r.Header.Get("X-Key"))
		})
		c.URL, c.AllowLoopback = rec.URL, true
		info := newWorld(t, c).once(core.NewTask{})
		require.Len(t, rec.messages(), 1)
		assert.Contains(t, info.LastError, "401 Unauthorized: ---")
		assert.Contains(t, info.LastError, "***")
		assert.NotContains(t, info.LastError, "kkk")
	}
}

// prover is an identity of a test.
type prover func(r *http.Request, body []byte) error

func (p prover) Prove(r *http.Request, body []byte) error { return p(r, body) }

// An identity has the whole message before it, with the body, and its error is a failed attempt without a call of the server.
func TestIdentitiesComeLast(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
	fail := errors.New("no token today")
	var calls int
	w := newWorld(t, webhook.Config{URL: rec.URL, AllowLoopback: true, Headers: map[string]string{"X-Team": "core"}, Identity: prover(func(r *http.Request, body []byte) error {
		if calls++; calls == 1 {
			return fail
		}
		assert.True(t, json.Valid(body))
		for _, name := range []string{"X-Team", "Webhook-Id", "Traceparent", "Content-Type"} {
			assert.NotEmpty(t, r.Header.Get(name), name)
		}
		r.Header.Set("X-Proof", "yes")
		return nil
	})})
	info := w.once(core.NewTask{Traceparent: "00-abc", MaxAttempts: 2})
	assert.Equal(t, core.StatusWaiting, info.Status)
	assert.Equal(t, "webhook: no token today", info.LastError)
	assert.Empty(t, rec.messages())
	info = w.again()
	assert.Equal(t, core.StatusCompleted, info.Status, info.LastError)
	assert.Equal(t, "yes", rec.messages()[0].header.Get("X-Proof"))
}

// ended is a context that is over.
func ended(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
