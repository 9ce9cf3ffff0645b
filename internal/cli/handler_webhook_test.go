package cli_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// receiver is a webhook: it keeps what it gets and answers as it is told.
type receiver struct {
	*httptest.Server

	mu     sync.Mutex
	got    []message
	answer http.HandlerFunc
}

type message struct {
	header http.Header
	path   string
	body   string
}

func newReceiver(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.got = append(r.got, message{header: req.Header, path: req.URL.Path, body: string(body)})
		r.mu.Unlock()
		r.answer(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) messages() []message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got
}

func webhook1(t *testing.T, url, more string) string {
	t.Helper()
	return file(t, fmt.Sprintf("handlers: { x: { webhook: %q, max_attempts: 2, backoff: 1ms %s } }", url, more))
}

// The receiver can tell by the signature that a message is ours, and by its id that it is repeated.
func TestWebhooksAreSigned(t *testing.T) {
	t.Parallel()
	key := []byte("0123456789abcdef0123456789abcdef")
	for name, secret := range map[string]string{
		"with the prefix": "whsec_" + base64.StdEncoding.EncodeToString(key), "without": base64.StdEncoding.EncodeToString(key),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
			w := newWorld(t)
			w.env = append(w.env, "HOOK_SECRET="+secret)
			config := webhook1(t, rec.URL, ", secret_env: HOOK_SECRET")
			_, r := runOnce(t, w, config, core.NewTask{Payload: "hi", Traceparent: "00-abc"})
			assert.Equal(t, 4, r.code)
			assert.Equal(t, 4, w.duly(t, "run-due", "--agents", "a", "-c", config).code)
			got := rec.messages()
			require.Len(t, got, 2)
			for _, m := range got {
				id, at := m.header.Get("webhook-id"), m.header.Get("webhook-timestamp")
				mac := hmac.New(sha256.New, key)
				_, _ = io.WriteString(mac, id+"."+at+"."+m.body)
				assert.Equal(t, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)), m.header.Get("webhook-signature"))
				seconds, err := strconv.ParseInt(at, 10, 64)
				require.NoError(t, err)
				assert.WithinDuration(t, time.Now(), time.Unix(seconds, 0), time.Minute)
				assert.Equal(t, "application/json", m.header.Get("Content-Type"))
				assert.Equal(t, "00-abc", m.header.Get("Traceparent"))
				assert.Equal(t, "hi", parse[map[string]any](t, m.body)["payload"])
			}
			assert.Equal(t, got[0].header.Get("webhook-id"), got[1].header.Get("webhook-id"))
			assert.EqualValues(t, 1, parse[map[string]any](t, got[0].body)["attempt"])
			assert.EqualValues(t, 2, parse[map[string]any](t, got[1].body)["attempt"])
			assert.NotContains(t, r.stderr, string(key))
		})
	}
}

// What is inside is not reached by a name or address of a file, unless that says so.
func TestWebhooksDoNotReachInside(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
	_, port, _ := strings.Cut(strings.TrimPrefix(rec.URL, "http://"), ":")
	for host, more := range map[string]string{
		"10.0.0.1": ", insecure: true", "169.254.169.254": ", insecure: true", "0.0.0.0": ", insecure: true", "[fd00::1]": ", insecure: true",
	} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			task, _ := runOnce(t, newWorld(t), webhook1(t, "http://"+host+":"+port+"/?key=hunter2", more), core.NewTask{})
			assert.Contains(t, task.LastError, "is not a public address: set allow_private if it may be called")
			assert.NotContains(t, task.LastError, "hunter2")
		})
	}
	t.Run("allowed", func(t *testing.T) {
		t.Parallel()
		task, _ := runOnce(t, newWorld(t), webhook1(t, "http://0.0.0.0:"+port, ", insecure: true, allow_private: true"), core.NewTask{})
		assert.Equal(t, core.StatusCompleted, task.Status, task.LastError)
	})
}

// A secret that official verifiers could not use is refused before anything runs, and is not shown.
func TestSecretsOfWebhooksAreChecked(t *testing.T) {
	t.Parallel()
	config := file(t, "handlers: { x: { webhook: 'https://agents.example/', secret_env: HOOK_SECRET } }")
	for _, secret := range []string{"whsec_", "hunter2hunter2hunter2hunter2"} {
		w := newWorld(t)
		w.env = append(w.env, "HOOK_SECRET="+secret)
		r := w.duly(t, "run-due", "--all", "-c", config)
		oneLine(t, r, 2, "the environment variable HOOK_SECRET, named by secret_env, must be whsec_ and the base64 of 24 to 64 random bytes",
			"echo whsec_$(openssl rand -base64 32)")
		assert.NotContains(t, r.stderr, "hunter2")
	}
}

// What a server is to know callers by is looked at before the store is: a mistake in it is the answer, also where no Redis is.
func TestWhatProvesACallerIsCheckedFirst(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]string{
		"bearer_env: AGENTS_TOKEN":                "the environment variable AGENTS_TOKEN, named by bearer_env, is not set",
		"headers_env: { X-Key: API_KEY }":         "the environment variable API_KEY, named by headers_env, is not set",
		"headers: { Webhook-Id: hunter2 }":        "has a name that duly uses itself: Webhook-Id",
		"identity: { aws: { region: eu-north } }": "AWS_ACCESS_KEY_ID in the environment must be set",
	} {
		w := noRedis()
		w.env = append(w.env, "DULY_REDIS_URL=redis://127.0.0.1:1")
		r := w.duly(t, "run-due", "--all", "-c", file(t, "handlers: { x: { webhook: 'https://agents.example/', "+keys+" } }"))
		oneLine(t, r, 2, want)
		assert.NotContains(t, r.stderr, "hunter2")
	}
}
