package gcf_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/gcf"
	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
)

// What is for nobody else goes to Config.HTTP as it came.
func TestOtherRequestsAreForwarded(t *testing.T) {
	t.Parallel()
	verified := false
	var got *http.Request
	f := setup(t, gcf.Config{
		Verify: func(*http.Request) error { verified = true; return errors.New("no") },
		HTTP: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r
			body, _ := io.ReadAll(r.Body)
			_ = json.NewEncoder(w).Encode(map[string]string{"path": r.URL.Path, "body": string(body)})
		}),
	})
	for path, media := range map[string]string{"/v1/tasks": "application/json", "/": "application/json", "": "text/plain", "/x": ""} {
		for _, body := range []string{`{"agent_id":"a"}`, `{"message":1}`, `{"kind":"tick"}`} {
			r := request(t, "/", body, "Content-Type", media)
			r.URL.Path = path
			status, answer := f.call(t, r)
			assert.Equal(t, 200, status)
			assert.Equal(t, map[string]any{"path": path, "body": body}, answer)
		}
	}
	assert.False(t, verified, "it has tokens of its own")
	deadline, ok := got.Context().Deadline()
	assert.True(t, ok)
	assert.Less(t, time.Until(deadline), gcf.DefaultTimeout-gcf.DefaultMargin+time.Second)
	require.Error(t, got.Context().Err(), "it ends with the request")
	none := setup(t, gcf.Config{})
	status, answer := none.call(t, request(t, "/v1/stats", ""))
	assert.Equal(t, 404, status)
	assert.Equal(t, "no_route", answer["code"])
}

// ci takes every request for one of a credential.
type ci struct{}

func (ci) Verify(*http.Request) (*httpadapter.Grant, error) {
	return &httpadapter.Grant{Name: "ci"}, nil
}

// Who orders something through a function is its credential, whomever the request names.
func TestByIsTheCredential(t *testing.T) {
	t.Parallel()
	f := setup(t, gcf.Config{})
	function, err := gcf.New(f.scheduler, gcf.Config{Verify: gcf.Private, HTTP: httpadapter.New(f.scheduler, httpadapter.Config{Verifiers: []httpadapter.Verifier{ci{}}})})
	require.NoError(t, err)
	w := httptest.NewRecorder()
	function.ServeHTTP(w, request(t, "/v1/pause", `{"all":true,"by":"root-operator"}`, "Content-Type", "application/json"))
	require.Equal(t, 200, w.Code, w.Body)
	pauses, _, err := f.scheduler.Pauses(t.Context(), 10, "")
	require.NoError(t, err)
	require.Len(t, pauses, 1)
	assert.Equal(t, core.Order{By: "ci", Note: "root-operator"}, pauses[0].Order)
}

// A call that is refused costs no call of the store, and is told nothing.
func TestWhoeverIsNotAllowedIsRefused(t *testing.T) {
	t.Parallel()
	config := gcf.Config{Verify: func(r *http.Request) error {
		if r.Header.Get("Authorization") == "Bearer right" {
			return nil
		}
		return errors.New("a secret reason")
	}}
	f := setup(t, config)
	for name, send := range senders {
		if strings.HasPrefix(name, "event function") {
			continue // there is no request: Google lets the sender in
		}
		for _, data := range append([]string{`{"kind":"tick"}`, `{"agent_id":"ada","kind":"ok"}`}, nonsense...) {
			status, answer := send(t, f, data)
			assert.Equal(t, 401, status, name)
			assert.NotContains(t, answer, "secret")
		}
	}
	status, _ := f.scheduled(t, "", "duly", at)
	assert.Equal(t, 401, status)
	assert.Contains(t, f.logs.String(), "a secret reason")
	assert.Zero(t, f.store.claims()+f.store.submits())
	r := request(t, "/", "", "X-CloudScheduler", "true", "Authorization", "Bearer right")
	status, _ = f.call(t, r)
	assert.Equal(t, 200, status)
}

// A message that is too large is so each time that it is sent: it is nonsense like any other.
func TestLongMessagesAreRefusedAndAcknowledged(t *testing.T) {
	t.Parallel()
	long := `{"kind":"tick"}` + strings.Repeat(" ", 400)
	for name, send := range senders {
		if strings.HasPrefix(name, "event function") {
			continue // the framework has read it
		}
		f := setup(t, gcf.Config{MaxBody: 400})
		status, answer := send(t, f, long)
		assert.Equal(t, 200, status, name)
		assert.Contains(t, answer, "too large", name)
		assert.Contains(t, f.logs.String(), "too large", name)

		dead := setup(t, gcf.Config{MaxBody: 400, DeadLetter: true})
		status, answer = send(t, dead, long)
		assert.Equal(t, 413, status, name)
		assert.Contains(t, answer, "too_large", name)

		closed := setup(t, gcf.Config{MaxBody: 400, Verify: func(*http.Request) error { return errors.New("no") }})
		status, _ = send(t, closed, long)
		assert.Equal(t, map[bool]int{true: 413, false: 401}[name == "wrapped push"], status, "%s: at / it might be for Config.HTTP", name)
		assert.Zero(t, f.store.claims()+dead.store.claims()+closed.store.claims())
	}
}

// The sender gets its answer, however much it has left to send.
func TestALongMessageIsReadToItsEnd(t *testing.T) {
	t.Parallel()
	f := setup(t, gcf.Config{})
	for _, headers := range [][]string{{"Content-Type", "application/json"}, {"X-Goog-Pubsub-Message-Id", "m1"}} {
		r := request(t, "/", "", headers...)
		rest := strings.NewReader(strings.Repeat("x", 10<<20))
		r.Body = io.NopCloser(rest)
		status, answer := f.call(t, r)
		assert.Equal(t, 200, status)
		assert.Contains(t, answer, "refused")
		assert.Zero(t, rest.Len())
	}
}

// Others are told: Cloud Scheduler does not send it for a week, and callers of the API want to know.
func TestLongBodiesOfOthersAreRefused(t *testing.T) {
	t.Parallel()
	f := setup(t, gcf.Config{MaxBody: 400, HTTP: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		_ = json.NewEncoder(w).Encode(map[string]int64{"read": n})
	})})
	status, answer := f.scheduled(t, strings.Repeat(" ", 401), "duly", at)
	assert.Equal(t, 413, status)
	assert.Equal(t, "too_large", answer["code"])
	assert.Zero(t, f.store.claims())
	_, answer = f.call(t, request(t, "/v1/tasks", strings.Repeat(" ", 401), "Content-Type", "application/json"))
	assert.EqualValues(t, 401, answer["read"], "Config.HTTP has a limit of its own")
}
