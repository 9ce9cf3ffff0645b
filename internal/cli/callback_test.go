package cli_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// callbackFile has a kind that succeeds and one that fails, and allows callbacks to a receiver on this machine.
func callbackFile(t *testing.T, allow, more string) string {
	t.Helper()
	return file(t, fmt.Sprintf(`handlers:
  fine: { exec: [sh, -c, "echo '{\"n\": 7}'"] }
  fails: { exec: [sh, -c, "echo >&2 no use; exit 65"] }
callbacks: { allow: [%q], secret_env: CALLBACK_SECRET, backoff: 1ms%s }
`, allow, more))
}

const callbackKey = "0123456789abcdef0123456789abcdef"

// newCallbackWorld has the secret that messages are signed with.
func newCallbackWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.env = append(w.env, "CALLBACK_SECRET=whsec_"+base64.StdEncoding.EncodeToString([]byte(callbackKey)))
	return w
}

// signed demands that a message is signed as Standard Webhooks describe it.
func signed(t *testing.T, m message) {
	t.Helper()
	mac := hmac.New(sha256.New, []byte(callbackKey))
	mac.Write([]byte(m.header.Get("Webhook-Id") + "." + m.header.Get("Webhook-Timestamp") + "." + m.body))
	assert.Equal(t, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)), m.header.Get("Webhook-Signature"))
}

// duly serve tells a receiver that fails twice how tasks have ended, signed, with one id for all attempts.
func TestServeDeliversCallbacks(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) <= 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	w := newCallbackWorld(t)
	config := callbackFile(t, rec.URL+"/ends/", "")
	d := w.start(t, "serve", "-c", config, "--http", "127.0.0.1:0")
	url := d.url(t)
	_, body := call(t, http.MethodPost, url+"/v1/tasks", "",
		fmt.Sprintf(`{"agent_id":"a","id":"1","kind":"fine","labels":{"order":"7"},"callback":%q}`, rec.URL+"/ends/?token=hunter2"))
	require.Contains(t, body, `"created":true`)
	s := w.scheduler(t)
	var delivery core.TaskInfo
	require.Eventually(t, func() bool {
		_, _ = call(t, http.MethodPost, url+"/v1/run-due", "", `{"all":true}`)
		info, err := s.Task(t.Context(), "a", "1")
		require.NoError(t, err)
		delivery, err = s.Task(t.Context(), "a", info.CallbackTask)
		return err == nil && delivery.Status == core.StatusCompleted
	}, 20*time.Second, 5*time.Millisecond)
	got := rec.messages()
	require.Len(t, got, 3)
	for _, m := range got {
		signed(t, m)
		assert.Equal(t, got[0].header.Get("Webhook-Id"), m.header.Get("Webhook-Id"))
		assert.Equal(t, got[0].body, m.body)
	}
	_, shown := call(t, http.MethodGet, url+"/v1/agents/a/tasks/1", "", "")
	told, known := parse[map[string]any](t, got[2].body), parse[map[string]any](t, shown)
	for name, value := range known {
		assert.Equal(t, value, told[name], name)
	}
	assert.Equal(t, map[string]any{"n": 7.0}, told["result"])
	assert.Equal(t, map[string]any{"order": "7"}, told["labels"])
	assert.Equal(t, 3, delivery.Attempt)
	assert.Contains(t, w.ok(t, "explain", "a", delivery.ID), "completed")
	d.stop(t, syscall.SIGTERM)
	assert.NotContains(t, d.log(), "hunter2")
}

// A receiver that never takes it leaves a dead letter; what is not allowed is refused by every way in, and nothing is written.
func TestCallbacksThatAreNotTaken(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, func(w http.ResponseWriter, req *http.Request) {
		if req.URL.Path == "/moved" {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(http.StatusTemporaryRedirect)
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
	})
	w := newCallbackWorld(t)
	config := callbackFile(t, rec.URL+"/", ", max_attempts: 3")
	w.ok(t, "submit", "--agent", "a", "--kind", "fails", "--id", "1", "--callback", rec.URL+"/down", "-c", config)
	w.ok(t, "submit", "--agent", "a", "--kind", "fine", "--id", "2", "--callback", rec.URL+"/moved", "-c", config)
	s := w.scheduler(t)
	dead := func(id string) core.TaskInfo {
		var delivery core.TaskInfo
		require.Eventually(t, func() bool {
			w.duly(t, "run-due", "--all", "-c", config)
			info, err := s.Task(t.Context(), "a", id)
			require.NoError(t, err)
			delivery, err = s.Task(t.Context(), "a", info.CallbackTask)
			return err == nil && delivery.Status == core.StatusFailed
		}, 20*time.Second, 5*time.Millisecond)
		return delivery
	}
	down := dead("1")
	assert.Equal(t, 3, down.Attempt)
	assert.Contains(t, down.LastError, "500 Internal Server Error")
	assert.Contains(t, dead("2").LastError, "redirects are not followed")
	for _, m := range rec.messages() {
		signed(t, m)
		if task := parse[map[string]any](t, m.body); task["id"] == "1" {
			assert.Equal(t, "failed", task["status"])
			assert.Contains(t, task["last_error"], "no use")
		}
	}
	listed := parse[tasksJSON](t, w.ok(t, "list", "--agent", "a", "--kind", model.KindCallback, "--status", "failed", "--json"))
	assert.Len(t, listed.Tasks, 2)

	oneLine(t, w.duly(t, "submit", "--agent", "a", "--kind", "fine", "--id", "3", "--callback", "https://evil.example/?k=hunter2", "-c", config), 2,
		"callback", "must begin with a URL that is allowed here: "+rec.URL)
	r := w.duly(t, "submit", "--agent", "a", "--kind", "fine", "--id", "3", "--callback", rec.URL+"/")
	oneLine(t, r, 2, "is not enabled: name the URLs that may be called under callbacks in duly.yaml")
	assert.Equal(t, 3, w.duly(t, "status", "a", "3").code)
	assert.False(t, strings.Contains(r.stderr, "hunter2"))
}
