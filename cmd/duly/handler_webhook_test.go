package main_test

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
	body   string
}

func newReceiver(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.got = append(r.got, message{header: req.Header, body: string(body)})
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
	for name, secret := range map[string]string{"encoded": "whsec_" + base64.StdEncoding.EncodeToString(key), "raw": string(key)} {
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

func TestAnswersOfWebhooks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		header string
		body   string
		want   core.Status
		last   core.Outcome
		err    string
		wait   time.Duration
	}{
		"ok":                {200, "", `{"n": 1}`, core.StatusCompleted, core.OutcomeSuccess, "", 0},
		"accepted, no JSON": {202, "", `thanks`, core.StatusCompleted, core.OutcomeSuccess, "", 0},
		"redirect":          {302, "", "", core.StatusWaiting, core.OutcomeFailed, "webhook: 302 Found", 0},
		"bad request":       {400, "", "no\nsuch thing", core.StatusFailed, core.OutcomeFailed, "webhook: 400 Bad Request: no\nsuch thing", 0},
		"gone":              {410, "", "", core.StatusCancelled, core.OutcomeCancelled, "webhook: 410 Gone", 0},
		"too many":          {429, "120", "", core.StatusWaiting, core.OutcomeSnoozed, "webhook: 429", 2 * time.Minute},
		"too many, no hint": {429, "", "", core.StatusWaiting, core.OutcomeFailed, "webhook: 429", 0},
		"unavailable until": {503, "a date", "", core.StatusWaiting, core.OutcomeSnoozed, "webhook: 503", time.Hour},
		"far away":          {503, "4000000000", "", core.StatusWaiting, core.OutcomeSnoozed, "webhook: 503", 24 * time.Hour},
		"server error":      {500, "", strings.Repeat("x", 5000), core.StatusWaiting, core.OutcomeFailed, "webhook: 500 Internal Server Error: xxx", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			elsewhere := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
			rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", elsewhere.URL)
				switch c.header {
				case "":
				case "a date":
					w.Header().Set("Retry-After", time.Now().Add(c.wait).UTC().Format(http.TimeFormat))
				default:
					w.Header().Set("Retry-After", c.header)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			task, _ := runOnce(t, newWorld(t), webhook1(t, rec.URL+"/?key=hunter2", ""), core.NewTask{})
			assert.Equal(t, c.want, task.Status)
			assert.Equal(t, c.last, task.LastOutcome)
			assert.Contains(t, task.LastError, c.err)
			assert.Less(t, len(task.LastError), 500)
			assert.NotContains(t, task.LastError, "hunter2")
			if c.status == http.StatusOK {
				assert.JSONEq(t, c.body, string(task.Result))
			} else {
				assert.Empty(t, task.Result)
			}
			if c.wait > 0 {
				assert.WithinDuration(t, time.Now().Add(c.wait), task.NextRun.Time(), 30*time.Second)
			}
			assert.Len(t, rec.messages(), 1)
			assert.Empty(t, elsewhere.messages(), "redirects are not followed")
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
			assert.Contains(t, task.LastError, "is not a public address: allow_private: true allows it")
			assert.NotContains(t, task.LastError, "hunter2")
		})
	}
	t.Run("allowed", func(t *testing.T) {
		t.Parallel()
		task, _ := runOnce(t, newWorld(t), webhook1(t, "http://0.0.0.0:"+port, ", insecure: true, allow_private: true"), core.NewTask{})
		assert.Equal(t, core.StatusCompleted, task.Status, task.LastError)
	})
}

func TestAWebhookThatHangs(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	rec := newReceiver(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	task, _ := runOnce(t, newWorld(t), webhook1(t, rec.URL, ", timeout: 200ms"), core.NewTask{})
	assert.Equal(t, core.StatusWaiting, task.Status)
	assert.Contains(t, task.LastError, "the handler ran into its timeout")
}
