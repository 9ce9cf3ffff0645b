package main_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	main "github.com/seed-6f6f2c11/duly/sam"
)

// run runs one task of the kind hook so many times, with webhooks set by variables, and returns what became of it.
func run(t *testing.T, attempts int64, vars map[string]string) core.TaskInfo {
	t.Helper()
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	require.NoError(t, err)
	require.NoError(t, main.Webhooks(s, func(name string) string { return vars[name] }))
	_, err = s.Submit(t.Context(), core.NewTask{
		Agent: "ada", ID: "1", Kind: "hook", Payload: map[string]int{"n": 1}, Backoff: time.Millisecond,
	})
	require.NoError(t, err)
	var task core.TaskInfo
	require.Eventually(t, func() bool {
		_, err = s.RunDueTasks(t.Context(), []string{"ada"})
		var failed *core.RunsError
		require.True(t, err == nil || errors.As(err, &failed), "%v", err)
		task, err = s.Task(t.Context(), "ada", "1")
		require.NoError(t, err)
		return task.RunCount >= attempts
	}, 10*time.Second, 2*time.Millisecond)
	return task
}

func TestWebhook(t *testing.T) {
	t.Parallel()
	key := []byte("a key of some length")
	ids := make(chan string, 2)
	var attempts atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		id, at := r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp")
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + at + "." + string(body)))
		assert.Equal(t, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)), r.Header.Get("Webhook-Signature"))
		var got map[string]any
		assert.NoError(t, json.Unmarshal(body, &got))
		assert.Equal(t, []any{"1", "ada", "hook", map[string]any{"n": 1.0}}, []any{got["id"], got["agent_id"], got["kind"], got["payload"]})
		ids <- id
		if attempts.Add(1)%2 == 1 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, `{"done":true}`)
	}))
	t.Cleanup(srv.Close)
	for _, secret := range []string{string(key), "whsec_" + base64.StdEncoding.EncodeToString(key)} {
		task := run(t, 2, map[string]string{
			"DULY_WEBHOOKS": `{"hook":"` + srv.URL + `"}`, "DULY_WEBHOOK_SECRET": secret, "DULY_WEBHOOKS_ALLOW_PRIVATE": "true",
		})
		assert.Equal(t, core.StatusCompleted, task.Status, task.LastError)
		assert.JSONEq(t, `{"done":true}`, string(task.Result))
		first, second := <-ids, <-ids
		assert.Regexp(t, "^msg_[0-9a-f]{32}$", first)
		assert.Equal(t, first, second, "one occurrence, one id, however often it is tried")
	}
}

func TestWebhookOutcomes(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]core.Status{
		200: core.StatusCompleted, 204: core.StatusCompleted, 302: core.StatusWaiting, 400: core.StatusFailed,
		408: core.StatusWaiting, 410: core.StatusCancelled, 429: core.StatusWaiting, 503: core.StatusWaiting,
	} {
		var calls atomic.Int64
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			calls.Add(1)
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(status)
		}))
		task := run(t, 1, map[string]string{"DULY_WEBHOOKS": `{"hook":"` + srv.URL + `"}`, "DULY_WEBHOOKS_ALLOW_PRIVATE": "1"})
		srv.Close()
		assert.Equal(t, want, task.Status, status)
		assert.EqualValues(t, 1, calls.Load(), "no redirect is followed")
	}
}

// What is not public is not dialled, whatever name it has.
func TestWebhooksStayOutside(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was called") }))
	t.Cleanup(srv.Close)
	task := run(t, 1, map[string]string{"DULY_WEBHOOKS": `{"hook":"` + srv.URL + `/secret-path"}`})
	assert.Equal(t, core.StatusWaiting, task.Status)
	assert.Contains(t, task.LastError, "127.0.0.1 is not a public address")
	assert.NotContains(t, task.LastError, "secret-path")
	for address, public := range map[string]bool{
		"10.0.0.1:443": false, "169.254.169.254:80": false, "[::1]:443": false, "[::ffff:127.0.0.1]:443": false, "[fd00::1]:443": false,
		"100.64.0.1:443": false, "0.0.0.0:443": false, "nonsense": false, "192.0.78.9:443": true, "[2606:4700::1]:443": true,
	} {
		assert.Equal(t, public, main.Guard(false)("tcp", address, nil) == nil, address)
	}
}

func TestWebhookSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		vars map[string]string
		want string
	}{
		{map[string]string{"DULY_WEBHOOKS": `{"a":"ftp://x"}`}, `URL of "a" must begin with https://`},
		{map[string]string{"DULY_WEBHOOKS": `{"a":"https:///path"}`}, `URL of "a" must begin with https://`},
		{map[string]string{"DULY_WEBHOOKS": `{"a":"http://x"}`}, `URL of "a" must begin with https://`},
		{map[string]string{"DULY_WEBHOOKS": `nonsense`}, "must be JSON"},
		{map[string]string{"DULY_WEBHOOK_SECRET": "whsec_!"}, "DULY_WEBHOOK_SECRET is not base64"},
		{map[string]string{"DULY_WEBHOOKS_ALLOW_PRIVATE": "maybe"}, "must be true or false"},
	} {
		s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
		require.NoError(t, err)
		err = main.Webhooks(s, func(name string) string { return c.vars[name] })
		assert.ErrorContains(t, err, c.want)
	}
}
