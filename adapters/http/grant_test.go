package http_test

import (
	"bufio"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// with sends a request with a bearer token.
func (f *fixture) with(t *testing.T, token, method, path, body string) (*reply, string) {
	t.Helper()
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return f.do(t, r)
}

func TestScopesAndAgents(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{Profiles: noProfiles, Tokens: []string{"root"}, Scoped: []httpadapter.Token{
		{Token: "reader", Grant: httpadapter.Grant{Scopes: []httpadapter.Scope{httpadapter.ScopeRead}}},
		{Token: "ticker", Grant: httpadapter.Grant{Scopes: []httpadapter.Scope{httpadapter.ScopeTrigger}}},
		{Token: "ann", Grant: httpadapter.Grant{Agents: []string{"ann", "helper"}}},
	}})
	const one = `{"agent_id":"ann","id":"i","kind":"ok"}`
	for _, c := range []struct {
		token, method, path, body string
		want                      int
	}{
		{"reader", "GET", "/v1/stats", "", 200},
		{"reader", "POST", "/v1/tasks", one, 403},
		{"reader", "POST", "/v1/run-due", `{"all":true}`, 403},
		{"ticker", "POST", "/v1/run-due", `{"all":true}`, 200},
		{"ticker", "GET", "/v1/stats", "", 403},
		{"ticker", "POST", "/v1/pause", "", 403},
		{"ann", "POST", "/v1/tasks", one, 201},
		{"ann", "POST", "/v1/tasks", `{"tasks":[` + one + `,{"agent_id":"bob","kind":"ok"}]}`, 403},
		{"ann", "GET", "/v1/agents/ann/tasks/i", "", 200},
		{"ann", "GET", "/v1/agents/bob/tasks/i", "", 403},
		{"ann", "DELETE", "/v1/agents/bob/tasks/i", "", 403},
		{"ann", "POST", "/v1/agents/bob/pause", "", 403},
		{"ann", "POST", "/v1/agents/ann/pause", "", 200},
		{"ann", "POST", "/v1/kinds/ok/pause", "", 403},
		{"ann", "POST", "/v1/keys/k/resume", "", 403},
		{"ann", "POST", "/v1/pause", "", 403},
		{"ann", "GET", "/v1/groups/bob/g", "", 403},
		{"ann", "GET", "/v1/tasks?agent_id=ann", "", 200},
		{"ann", "GET", "/v1/tasks?agent_id=bob", "", 403},
		{"ann", "GET", "/v1/jobs?agent_id=bob", "", 403},
		{"ann", "GET", "/v1/agents", "", 403},
		{"ann", "GET", "/v1/pauses", "", 403},
		{"ann", "GET", "/v1/profiles", "", 403},
		{"reader", "GET", "/v1/profiles", "", 200},
		{"ann", "GET", "/v1/limits", "", 403},
		{"ann", "GET", "/v1/kinds", "", 403},
		{"reader", "GET", "/v1/kinds", "", 200},
		{"ann", "GET", "/v1/processes", "", 403},
		{"reader", "GET", "/v1/processes", "", 200},
		{"ann", "PUT", "/v1/limits", `{"kind":"ok","concurrency":1}`, 403},
		{"ann", "DELETE", "/v1/limits?kind=ok", "", 403},
		{"reader", "GET", "/v1/limits", "", 200},
		{"reader", "PUT", "/v1/limits", `{"kind":"ok","concurrency":1}`, 403},
		{"reader", "DELETE", "/v1/limits?kind=ok", "", 403},
		{"ann", "GET", "/v1/stats", "", 403},
		{"ann", "POST", "/v1/run-due", `{"agent_ids":["ann"]}`, 200},
		{"ann", "POST", "/v1/run-due", `{"agent_ids":["ann","bob"]}`, 403},
		{"ann", "POST", "/v1/run-due", `{"all":true}`, 403},
		{"ann", "POST", "/v1/activity", `{"kind":"seen","user_id":"ann","agent_id":"helper"}`, 202},
		{"ann", "POST", "/v1/activity", `{"kind":"seen","user_id":"u","agent_id":"helper"}`, 403},
		{"ann", "POST", "/v1/activity", `{"kind":"seen","user_id":"u"}`, 403},
		{"root", "GET", "/v1/agents/bob/tasks/i", "", 404},
	} {
		before := f.store.calls.Load()
		res, body := f.with(t, c.token, c.method, c.path, c.body)
		assert.Equal(t, c.want, res.StatusCode, "%v %s", c, body)
		if c.want == 403 {
			assert.Equal(t, before, f.store.calls.Load(), "%v: refused before any store call", c)
		}
	}
	for _, bad := range []httpadapter.Token{{Token: " "}, {Token: "x", Grant: httpadapter.Grant{Scopes: []httpadapter.Scope{"admin"}}}} {
		assert.Panics(t, func() { httpadapter.New(nil, httpadapter.Config{Scoped: []httpadapter.Token{bad}}) })
	}
}

// signingKey is what signed sends are signed with.
var signingKey = []byte("a secret of at least sixteen bytes")

// signed is a request that is signed as Standard Webhooks are.
func signed(id, stamp, body string) *http.Request {
	mac := hmac.New(sha256.New, signingKey)
	fmt.Fprintf(mac, "%s.%s.%s", id, stamp, body)
	r := httptest.NewRequest(http.MethodPost, "/v1/tasks", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Webhook-Id", id)
	r.Header.Set("Webhook-Timestamp", stamp)
	r.Header.Set("Webhook-Signature", "v1,aGVsbG8= v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return r
}

// signedBy is a handler that takes signed requests.
func signedBy(t *testing.T, clock core.Clock) *fixture {
	t.Helper()
	return setup(t, httpadapter.Config{Clock: clock, Signed: []httpadapter.Signed{{
		Secrets: []string{"whsec_" + base64.StdEncoding.EncodeToString([]byte("another one, of an older time")), base64.StdEncoding.EncodeToString(signingKey)},
		Grant:   httpadapter.Grant{Scopes: []httpadapter.Scope{httpadapter.ScopeWrite}},
	}}})
}

func unix(at time.Time) string { return fmt.Sprint(at.Unix()) }

func TestSignedRequests(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	f := signedBy(t, &heldClock{now})
	const body = `{"agent_id":"a","kind":"ok"}`
	send := func(id string, at time.Time, change func(r *http.Request)) int {
		r := signed(id, unix(at), body)
		change(r)
		res, _ := f.do(t, r)
		return res.StatusCode
	}
	as := func(*http.Request) {}
	assert.Equal(t, 201, send("1", now, as))
	assert.Equal(t, 208, send("1", now, as), "carried out before")
	assert.Equal(t, 201, send("2", now.Add(-4*time.Minute), as))
	assert.Equal(t, 401, send("3", now.Add(-6*time.Minute), as), "too old")
	assert.Equal(t, 401, send("4", now.Add(6*time.Minute), as), "from the future")
	assert.Equal(t, 401, send("5", now, func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(body + " ")) }), "altered")
	assert.Equal(t, 401, send("6", now, func(r *http.Request) {
		r.Header.Set("Webhook-Signature", strings.ReplaceAll(r.Header.Get("Webhook-Signature"), "v1,", "v2,"))
	}), "another version")
	assert.Equal(t, 401, send("", now, as), "no id")
	assert.Equal(t, 401, send("7", now, func(r *http.Request) { r.Header.Set("Webhook-Id", "8") }), "another id")
	res, _ := f.call(t, "GET", "/v1/stats", "")
	assert.Equal(t, 401, res.StatusCode)
	for _, bad := range []httpadapter.Signed{{}, {Secrets: []string{"whsec_!"}}, {Secrets: []string{"c2hvcnQ="}}} {
		assert.Panics(t, func() { httpadapter.New(nil, httpadapter.Config{Signed: []httpadapter.Signed{bad}}) })
	}
}

// A message that is sent again keeps its id, and is signed anew: whoever was told to send it again is not taken for
// somebody who heard it.
func TestASignedRequestMayBeSentAgain(t *testing.T) {
	t.Parallel()
	clock := &heldClock{time.Unix(1_800_000_000, 0)}
	f := signedBy(t, clock)
	const body = `{"agent_id":"a","id":"1","kind":"ok"}`
	f.store.err = &store.Error{Verb: "submit", Err: errors.New("away")}
	res, _ := f.do(t, signed("msg_1", unix(clock.now), body))
	require.Equal(t, 503, res.StatusCode)
	f.store.err = nil
	clock.now = clock.now.Add(5 * time.Second)
	res, text := f.do(t, signed("msg_1", unix(clock.now), body))
	assert.Equal(t, 201, res.StatusCode, text)
}

// A signature is good once in all of its time, from the first moment that a clock ahead of this one gives it to the last.
func TestASignatureIsGoodOnce(t *testing.T) {
	t.Parallel()
	clock := &heldClock{time.Unix(1_800_000_000, 0)}
	f := signedBy(t, clock)
	stamp := unix(clock.now.Add(5 * time.Minute))
	const body = `{"agent_id":"a","kind":"ok"}`
	res, text := f.do(t, signed("1", stamp, body))
	require.Equal(t, 201, res.StatusCode, text)
	for range 11 {
		res, _ = f.do(t, signed("1", stamp, body))
		assert.Equal(t, 208, res.StatusCode, "at %s", clock.now)
		clock.now = clock.now.Add(time.Minute)
	}
	res, _ = f.do(t, signed("1", stamp, body))
	assert.Equal(t, 401, res.StatusCode, "too old")
	clock.now = clock.now.Add(-time.Minute)
	res, text = f.do(t, signed("2", stamp, body))
	assert.Equal(t, 201, res.StatusCode, "it was the last moment: %s", text)
}

// What is signed is one id, one time and one body: it cannot be cut at another dot.
func TestWhatIsSignedHasOneMeaning(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	f := signedBy(t, &heldClock{now})
	const body = `{"agent_id":"a","kind":"ok"}`
	for _, c := range [][2]string{
		{"m." + unix(now), unix(now)},
		{"m.", unix(now)},
		{"m", "+" + unix(now)},
		{"m", " " + unix(now)},
		{"m", "-" + unix(now)},
		{"m", unix(now) + ".0"},
		{"m", "0x6b49d200"},
		{"m", ""},
	} {
		res, _ := f.do(t, signed(c[0], c[1], body))
		assert.Equal(t, 401, res.StatusCode, c)
	}
	res, text := f.do(t, signed("m", unix(now), body))
	assert.Equal(t, 201, res.StatusCode, text)
}

// heldClock stands still until a test moves it.
type heldClock struct{ now time.Time }

func (c *heldClock) Now() time.Time { return c.now }

func (*heldClock) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

func TestCronSecret(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{Tokens: []string{"root"}, CronSecret: "tick tock"})
	f.with(t, "root", "POST", "/v1/tasks", `{"agent_id":"a","kind":"ok"}`)
	for token, want := range map[string]int{"tick tock": 200, "root": 401, "": 401} {
		res, _ := f.with(t, token, "GET", "/v1/cron", "")
		assert.Equal(t, want, res.StatusCode, token)
	}
	res, _ := f.with(t, "tick tock", "GET", "/v1/stats", "")
	assert.Equal(t, 401, res.StatusCode, "it opens nothing else")
	_, body := f.with(t, "root", "GET", "/v1/stats", "")
	assert.EqualValues(t, 1, get[map[string]any](t, body)["completed"])
	res, _ = setup(t, httpadapter.Config{}).call(t, "GET", "/v1/cron", "")
	assert.Equal(t, 404, res.StatusCode)
}

func TestEvents(t *testing.T) {
	t.Parallel()
	events := httpadapter.NewEvents()
	s, err := core.New(memstore.New(memstore.Config{Partitions: 8}), core.Config{})
	require.NoError(t, err)
	core.Handle(s, "ok", func(context.Context, *core.Task[any]) error { return nil })
	server := httptest.NewServer(httpadapter.New(s, httpadapter.Config{Events: events, Scoped: []httpadapter.Token{
		{Token: "ann", Grant: httpadapter.Grant{Agents: []string{"ann"}}},
	}}))
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	listen := func(query string) *http.Response {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/v1/events"+query, nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer ann")
		res, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		return res
	}
	refused := listen("?agent_id=bob")
	defer refused.Body.Close()
	assert.Equal(t, 403, refused.StatusCode)
	res := listen("")
	defer res.Body.Close()
	require.Equal(t, 200, res.StatusCode)
	assert.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() && lines.Text() != "" { // somebody listens once it begins
	}
	for _, agent := range []string{"bob", "ann"} {
		_, err := s.Submit(t.Context(), core.NewTask{Agent: agent, ID: "1", Kind: "ok"})
		require.NoError(t, err)
	}
	_, err = s.RunDue(t.Context(), core.Scope{})
	require.NoError(t, err)
	var names []string
	for len(names) < 4 && lines.Scan() {
		name, data, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "event":
			names = append(names, data)
		case "data":
			assert.Equal(t, "ann", get[map[string]any](t, data)["agent_id"], "the other agent's are not for it")
		}
	}
	assert.Equal(t, []string{"enqueue", "dequeue", "start", "finish"}, names)
}

// A listener that does not read holds up nobody, and gets it all once it reads.
func TestASlowListenerMissesNothing(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{Events: httpadapter.NewEvents()})
	ctx, cancel := context.WithCancel(t.Context())
	w := &gatedWriter{ResponseRecorder: httptest.NewRecorder(), gate: make(chan struct{}), first: make(chan struct{}), wrote: make(chan struct{}, 1)}
	done := make(chan struct{})
	go func() {
		f.handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/events", nil).WithContext(ctx))
		close(done)
	}()
	<-w.first
	for i := range 1000 {
		_, err := f.scheduler.Submit(t.Context(), core.NewTask{Agent: strconv.Itoa(i), ID: "1", Kind: "ok"})
		require.NoError(t, err)
	}
	close(w.gate)
	for strings.Count(w.text(), "event: enqueue") < 1000 {
		<-w.wrote
	}
	cancel()
	<-done
	assert.NotContains(t, w.text(), "missed")
}
