package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/handlers/webhook"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is a server that keeps what it gets and answers as it is told.
type receiver struct {
	*httptest.Server

	mu  sync.Mutex
	got []message
}

type message struct {
	header http.Header
	body   []byte
}

func newReceiver(t *testing.T, answer http.HandlerFunc) *receiver {
	t.Helper()
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		r.got = append(r.got, message{header: req.Header, body: body})
		r.mu.Unlock()
		w.Header().Set("Connection", "close") // no idle connection is left behind
		answer(w, req)
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) messages() []message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.got
}

// world is a scheduler with a webhook for the kind x.
type world struct {
	*testing.T

	s *core.Scheduler
}

func newWorld(t *testing.T, c webhook.Config) *world {
	t.Helper()
	h, err := webhook.New(c)
	require.NoError(t, err)
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{
		MaxResult: 1000, Default: core.KindConfig{Backoff: time.Millisecond, MaxBackoff: time.Millisecond, Timeout: 5 * time.Second},
	})
	require.NoError(t, err)
	core.Handle(s, "x", h.Run)
	return &world{T: t, s: s}
}

// once submits a task, runs it once and returns what became of it.
func (w *world) once(task core.NewTask) core.TaskInfo {
	w.Helper()
	task.Agent, task.ID, task.Kind = "a", "i", "x"
	_, err := w.s.Submit(w.Context(), task)
	require.NoError(w, err)
	return w.again()
}

// again runs the task once when it is due.
func (w *world) again() core.TaskInfo {
	w.Helper()
	before, err := w.s.Task(w.Context(), "a", "i")
	require.NoError(w, err)
	var info core.TaskInfo
	require.Eventually(w, func() bool {
		_, err := w.s.RunDue(w.Context(), core.Scope{MaxTasks: 1})
		var failed *core.RunsError
		require.True(w, err == nil || errors.As(err, &failed), "%v", err)
		info, err = w.s.Task(w.Context(), "a", "i")
		require.NoError(w, err)
		return info.RunCount > before.RunCount
	}, 10*time.Second, time.Millisecond)
	return info
}

// The receiver can tell by the signature that a message is ours, and by its id that it is repeated.
func TestMessagesAreSigned(t *testing.T) {
	t.Parallel()
	key := []byte("0123456789abcdef0123456789abcdef")
	for name, prefix := range map[string]string{"with the prefix": "whsec_", "without": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
			w := newWorld(t, webhook.Config{URL: rec.URL, AllowLoopback: true, Secret: prefix + base64.StdEncoding.EncodeToString(key)})
			w.once(core.NewTask{Payload: "hi", Traceparent: "00-abc"})
			w.again()
			got := rec.messages()
			require.Len(t, got, 2)
			for _, m := range got {
				id, at := m.header.Get("webhook-id"), m.header.Get("webhook-timestamp")
				assert.Regexp(t, "^msg_[0-9a-f]{32}$", id)
				mac := hmac.New(sha256.New, key)
				_, _ = io.WriteString(mac, id+"."+at+"."+string(m.body))
				assert.Equal(t, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)), m.header.Get("webhook-signature"))
				assert.Equal(t, "application/json", m.header.Get("Content-Type"))
				assert.Equal(t, "00-abc", m.header.Get("Traceparent"))
				assert.Equal(t, "a/i", m.header.Get("Duly-Parent"), "for what it submits")
			}
			assert.Equal(t, got[0].header.Get("webhook-id"), got[1].header.Get("webhook-id"))
		})
	}
	rec := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
	newWorld(t, webhook.Config{URL: rec.URL, AllowLoopback: true}).once(core.NewTask{})
	assert.Empty(t, rec.messages()[0].header.Get("webhook-signature"), "no secret, no signature")
}

// The time of a message is that of the clock that is given.
func TestTheClockStampsMessages(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
	newWorld(t, webhook.Config{URL: rec.URL, AllowLoopback: true, Clock: stopped{}}).once(core.NewTask{})
	assert.Equal(t, "1800000000", rec.messages()[0].header.Get("webhook-timestamp"))
}

type stopped struct{ core.SystemClock }

func (stopped) Now() time.Time { return time.Unix(1_800_000_000, 0) }

// A server gets all that is known of the run.
func TestMessages(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
	w := newWorld(t, webhook.Config{URL: rec.URL, AllowLoopback: true})
	info := w.once(core.NewTask{
		Payload: map[string]string{"text": "hi"}, Group: "g", Level: core.LevelHigh, TraceID: "t", Traceparent: "p", SessionID: "s",
		UserID: "u", Labels: map[string]string{"tier": "gold"}, Info: []byte(`{"k":1}`), Tags: []string{"x"},
	})
	var got map[string]any
	require.NoError(t, json.Unmarshal(rec.messages()[0].body, &got))
	fence, ok := got["fence"].(float64)
	assert.True(t, ok && fence > 0)
	delete(got, "fence")
	due := info.Due.Format("2006-01-02T15:04:05.000Z")
	assert.Equal(t, map[string]any{
		"agent_id": "a", "id": "i", "kind": "x", "group": "g", "level": 1.0, "attempt": 1.0, "call": 1.0, "crashes": 0.0, "trace_id": "t",
		"traceparent": "p", "session_id": "s", "user_id": "u", "labels": map[string]any{"tier": "gold"},
		"payload": map[string]any{"text": "hi"}, "info": map[string]any{"k": 1.0}, "tags": []any{"x"},
		"due_at": due, "occurrence": due, "submitted_at": due,
	}, got)
}

func TestStatusCodes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		header string
		body   string
		want   core.Status
		last   model.Outcome
		err    string
		reason string
		wait   time.Duration
	}{
		"ok":                {200, "", `{"n": 1}`, core.StatusCompleted, model.OutcomeSuccess, "", "", 0},
		"no content":        {204, "", ``, core.StatusCompleted, model.OutcomeSuccess, "", "", 0},
		"moved":             {301, "", "", core.StatusFailed, model.OutcomeFailed, "301 Moved Permanently: redirects are not followed", "no_retry", 0},
		"see elsewhere":     {307, "", "", core.StatusFailed, model.OutcomeFailed, "307 Temporary Redirect: redirects are not followed", "no_retry", 0},
		"bad request":       {400, "", "no\nsuch thing", core.StatusFailed, model.OutcomeFailed, "400 Bad Request: no\nsuch thing", "no_retry", 0},
		"timed out":         {408, "", "", core.StatusWaiting, model.OutcomeFailed, "408 Request Timeout", "", 0},
		"gone":              {410, "", "", core.StatusCancelled, model.OutcomeCancelled, "410 Gone", "handler", 0},
		"too early":         {425, "", "", core.StatusWaiting, model.OutcomeFailed, "425 Too Early", "", 0},
		"too early until":   {425, "60", "", core.StatusWaiting, model.OutcomeSnoozed, "425 Too Early", "", time.Minute},
		"too many":          {429, "120", "", core.StatusWaiting, model.OutcomeSnoozed, "429 Too Many", "", 2 * time.Minute},
		"too many, no hint": {429, "", "", core.StatusWaiting, model.OutcomeFailed, "429 Too Many", "", 0},
		"nonsense as hint":  {429, "soon", "", core.StatusWaiting, model.OutcomeFailed, "429 Too Many", "", 0},
		"unavailable until": {503, "a date", "", core.StatusWaiting, model.OutcomeSnoozed, "503 Service", "", time.Hour},
		"far away":          {503, "4000000000", "", core.StatusWaiting, model.OutcomeSnoozed, "503 Service", "", 24 * time.Hour},
		"failed, with hint": {500, "60", "", core.StatusWaiting, model.OutcomeSnoozed, "500 Internal", "", time.Minute},
		"refused with hint": {403, "60", "", core.StatusFailed, model.OutcomeFailed, "403 Forbidden", "no_retry", 0},
		"server error":      {500, "", strings.Repeat("x", 5000), core.StatusWaiting, model.OutcomeFailed, "500 Internal Server Error: xxx", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			elsewhere := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
			rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", elsewhere.URL)
				if c.header == "a date" {
					w.Header().Set("Retry-After", time.Now().Add(c.wait+time.Second).UTC().Format(http.TimeFormat))
				} else if c.header != "" {
					w.Header().Set("Retry-After", c.header)
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})
			task := newWorld(t, webhook.Config{URL: rec.URL + "/?key=hunter2", AllowLoopback: true}).once(core.NewTask{})
			assert.Equal(t, c.want, task.Status)
			assert.Equal(t, c.last, task.LastOutcome)
			assert.Contains(t, task.LastError, c.err)
			assert.Equal(t, c.reason, task.Reason)
			assert.Less(t, len(task.LastError), 500)
			assert.NotContains(t, task.LastError, "hunter2")
			if c.status == http.StatusOK {
				assert.JSONEq(t, c.body, string(task.Result))
			} else {
				assert.Empty(t, task.Result)
			}
			if c.wait > 0 {
				assert.WithinDuration(t, time.Now().Add(c.wait), task.NextRun, 30*time.Second)
			}
			assert.Len(t, rec.messages(), 1)
			assert.Empty(t, elsewhere.messages(), "redirects are not followed")
		})
	}
}

// What a server answers is kept: JSON as it is, text as text, and of what is too large the beginning, which says so.
func TestResults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ answer, want string }{
		"JSON":               {` {"a": [1, 2]} `, `{"a":[1,2]}`},
		"text":               {"thanks", `"thanks"`},
		"not UTF-8":          {"a\xffb", `"a\ufffdb"`},
		"JSON but not UTF-8": {"\"a\xffb\"", `"\"a\ufffdb\""`},
		"large JSON":         {`["` + strings.Repeat("x", 2000) + `"]`, `{"truncated":true,"text":"[\"` + strings.Repeat("x", 498) + `"}`},
		"large text":         {strings.Repeat("x", 2000), `{"truncated":true,"text":"` + strings.Repeat("x", 500) + `"}`},
		"text that grows":    {strings.Repeat("\x01", 900), `{"truncated":true,"text":"` + strings.Repeat(`\u0001`, 125) + `"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, c.answer) })
			task := newWorld(t, webhook.Config{URL: rec.URL, AllowLoopback: true}).once(core.NewTask{})
			assert.Equal(t, core.StatusCompleted, task.Status, task.LastError)
			assert.JSONEq(t, c.want, string(task.Result))
		})
	}
}

// A server steers its run with headers.
func TestSteering(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		headers map[string]string
		body    string
		task    core.NewTask
		status  core.Status
		last    model.Outcome
		wait    time.Duration
		err     string
	}{
		"snooze":          {map[string]string{"Duly-Snooze": "10m"}, `{"kept":1}`, core.NewTask{}, core.StatusWaiting, model.OutcomeSnoozed, 10 * time.Minute, ""},
		"yield":           {map[string]string{"Duly-Yield": "5m"}, `{"page":2}`, core.NewTask{}, core.StatusWaiting, model.OutcomeYielded, 5 * time.Minute, ""},
		"yield no JSON":   {map[string]string{"Duly-Yield": "5m"}, `page 2`, core.NewTask{}, core.StatusFailed, model.OutcomeFailed, 0, "duly-yield needs a checkpoint that is JSON"},
		"yield too much":  {map[string]string{"Duly-Yield": "5m"}, `"` + strings.Repeat("x", 1000) + `"`, core.NewTask{}, core.StatusFailed, model.OutcomeFailed, 0, "the checkpoint of duly-yield is larger than the limit of 1000 bytes"},
		"await":           {map[string]string{"Duly-Await": "yes"}, `{"page":2}`, core.NewTask{}, core.StatusWaiting, model.OutcomeAwaiting, 0, ""},
		"await so long":   {map[string]string{"Duly-Await": `{"key": "yes", "timeout": "1h"}`}, ``, core.NewTask{}, core.StatusWaiting, model.OutcomeAwaiting, time.Hour, ""},
		"await what":      {map[string]string{"Duly-Await": `{"kee": "yes"}`}, ``, core.NewTask{}, core.StatusFailed, model.OutcomeFailed, 0, `duly-await must be a key, or JSON`},
		"await no time":   {map[string]string{"Duly-Await": `{"key": "yes", "timeout": "soon"}`}, ``, core.NewTask{}, core.StatusFailed, model.OutcomeFailed, 0, `the timeout of duly-await must be a duration`},
		"await no JSON":   {map[string]string{"Duly-Await": "yes"}, `page 2`, core.NewTask{}, core.StatusFailed, model.OutcomeFailed, 0, "duly-await needs a checkpoint that is JSON"},
		"next in":         {map[string]string{"Duly-Next-In": "3h"}, ``, core.NewTask{Every: time.Minute}, core.StatusWaiting, model.OutcomeSuccess, 3 * time.Hour, ""},
		"progress":        {map[string]string{"Duly-Progress": `{"done":3}`}, `1`, core.NewTask{}, core.StatusCompleted, model.OutcomeSuccess, 0, ""},
		"bad progress":    {map[string]string{"Duly-Progress": `a lot`}, ``, core.NewTask{}, core.StatusFailed, model.OutcomeFailed, 0, `duly-progress must be JSON, not "a lot"`},
		"not a duration":  {map[string]string{"Duly-Snooze": "soon"}, ``, core.NewTask{}, core.StatusFailed, model.OutcomeFailed, 0, `duly-snooze must be a duration such as 10m, not "soon"`},
		"negative":        {map[string]string{"Duly-Snooze": "-1s"}, ``, core.NewTask{}, core.StatusFailed, model.OutcomeFailed, 0, `duly-snooze must be a duration such as 10m, not "-1s"`},
		"too far away":    {map[string]string{"Duly-Snooze": "200000h"}, ``, core.NewTask{}, core.StatusFailed, model.OutcomeFailed, 0, `duly-snooze must be a duration`},
		"two of them":     {map[string]string{"Duly-Snooze": "1s", "Duly-Next-In": "1s"}, ``, core.NewTask{}, core.StatusFailed, model.OutcomeFailed, 0, `exclude each other`},
		"unknown":         {map[string]string{"Duly-Snoze": "1s"}, ``, core.NewTask{}, core.StatusFailed, model.OutcomeFailed, 0, `duly-snoze is unknown: use duly-snooze, duly-yield, duly-await, duly-next-in, duly-progress or duly-usage`},
		"not of a 2xx":    {map[string]string{"Duly-Snooze": "1h", "X-Status": "500"}, ``, core.NewTask{}, core.StatusWaiting, model.OutcomeFailed, 0, "500 Internal"},
		"others' headers": {map[string]string{"X-Duly-Snooze": "1h"}, ``, core.NewTask{}, core.StatusCompleted, model.OutcomeSuccess, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
				for name, value := range c.headers {
					w.Header().Set(name, value)
				}
				if c.headers["X-Status"] != "" {
					w.WriteHeader(http.StatusInternalServerError)
				}
				_, _ = io.WriteString(w, c.body)
			})
			task := newWorld(t, webhook.Config{URL: rec.URL, AllowLoopback: true}).once(c.task)
			assert.Equal(t, c.status, task.Status)
			assert.Equal(t, c.last, task.LastOutcome)
			assert.Contains(t, task.LastError, c.err)
			if c.wait > 0 {
				assert.WithinDuration(t, time.Now().Add(c.wait), task.NextRun, 30*time.Second)
			}
			if name == "progress" {
				assert.JSONEq(t, `{"done":3}`, string(task.Progress))
			}
		})
	}
}

// The checkpoint that a server left is in the message of the next run of the occurrence.
func TestCheckpoints(t *testing.T) {
	t.Parallel()
	calls := 0
	rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls == 1 {
			w.Header().Set("Duly-Yield", "0s")
			_, _ = io.WriteString(w, `{"page": 2}`)
		}
	})
	w := newWorld(t, webhook.Config{URL: rec.URL, AllowLoopback: true})
	w.once(core.NewTask{})
	assert.Equal(t, core.StatusCompleted, w.again().Status)
	got := rec.messages()
	require.Len(t, got, 2)
	assert.NotContains(t, string(got[0].body), "checkpoint")
	assert.Contains(t, string(got[1].body), `"checkpoint":{"page":2}`)
	assert.Contains(t, string(got[1].body), `"attempt":1`)
}

// What a task was told that a server has let wait is in the message of its next run, with the checkpoint.
func TestAwaits(t *testing.T) {
	t.Parallel()
	calls := 0
	rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		if calls++; calls == 1 {
			w.Header().Set("Duly-Await", `{"key": "approval", "timeout": "48h"}`)
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, `{"page": 2}`)
		}
	})
	w := newWorld(t, webhook.Config{URL: rec.URL, AllowLoopback: true})
	task := w.once(core.NewTask{})
	require.NotNil(t, task.Awaiting)
	_, err := w.s.Signal(t.Context(), task.Agent, "approval", json.RawMessage(`{"by":"ann"}`))
	require.NoError(t, err)
	assert.Equal(t, core.StatusCompleted, w.again().Status)
	got := rec.messages()
	require.Len(t, got, 2)
	assert.NotEqual(t, got[0].header.Get("Webhook-Id"), got[1].header.Get("Webhook-Id"), "whoever passes over repeats must not pass over the answer")
	assert.NotContains(t, string(got[0].body), "heard")
	assert.Contains(t, string(got[1].body), `"heard":{"key":"approval","told":true,"payload":{"by":"ann"},"timed_out":false,"how":"process","by":`)
	assert.Contains(t, string(got[1].body), `"checkpoint":{"page":2}`)
}

// A call that the receiver has put off is another one; one that it failed at is repeated. A task without a payload has none.
func TestMessageIDsAreThoseOfCalls(t *testing.T) {
	t.Parallel()
	calls := 0
	rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		switch calls++; calls {
		case 1, 3:
			w.WriteHeader(http.StatusBadGateway)
		case 2:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	})
	w := newWorld(t, webhook.Config{URL: rec.URL, AllowLoopback: true})
	w.once(core.NewTask{})
	for range 3 {
		w.again()
	}
	got := rec.messages()
	require.Len(t, got, 4)
	id := func(i int) string { return got[i].header.Get("Webhook-Id") }
	assert.Equal(t, id(0), id(1), "it failed")
	assert.NotEqual(t, id(1), id(2), "it is to be called again")
	assert.Equal(t, id(2), id(3), "it failed again")
	for i := range got {
		assert.NotContains(t, string(got[i].body), "payload")
	}
}

// What is inside is not reached by a name or address, unless that is allowed.
func TestNothingInsideIsCalled(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
	_, port, _ := strings.Cut(strings.TrimPrefix(rec.URL, "http://"), ":")
	for _, host := range []string{"10.0.0.1", "169.254.169.254", "0.0.0.0", "[fd00::1]", "127.0.0.1", "localhost", "[64:ff9b::a9fe:a9fe]"} {
		t.Run(host, func(t *testing.T) {
			t.Parallel()
			task := newWorld(t, webhook.Config{URL: "http://" + host + ":" + port + "/?key=hunter2", Insecure: true}).once(core.NewTask{})
			assert.Contains(t, task.LastError, "is not a public address: set allow_private")
			assert.NotContains(t, task.LastError, "hunter2")
		})
	}
	assert.Empty(t, rec.messages())
	for name, c := range map[string]webhook.Config{
		"private":  {URL: "http://0.0.0.0:" + port, Insecure: true, AllowPrivate: true},
		"loopback": {URL: "http://127.0.0.1:" + port, AllowLoopback: true},
	} {
		task := newWorld(t, c).once(core.NewTask{})
		assert.Equal(t, core.StatusCompleted, task.Status, "%s: %s", name, task.LastError)
	}
}

func TestConfigsAreChecked(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"":                       "URL must be an http or https URL",
		"ftp://agents.example":   "URL must be an http or https URL",
		"https:///hunter2":       "URL must be an http or https URL",
		"https://%zz":            "URL must be an http or https URL",
		"http://agents.example/": "Insecure must be set for http: what is sent to agents.example could be read on the way",
		"http://127.0.0.1/":      "Insecure must be set for http: what is sent to 127.0.0.1 could be read on the way",
	} {
		_, err := webhook.New(webhook.Config{URL: url})
		require.EqualError(t, err, want)
		assert.ErrorAs(t, err, new(*core.ConfigError))
	}
}

// A server that hangs costs its run no more than its timeout.
func TestAServerThatHangs(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	task := newWorld(t, webhook.Config{URL: rec.URL, AllowLoopback: true}).once(core.NewTask{Timeout: 100 * time.Millisecond})
	assert.Equal(t, core.StatusWaiting, task.Status)
	assert.Contains(t, task.LastError, core.ErrTimeout.Error())
}

// An answer that breaks off is none.
func TestAnAnswerThatBreaksOff(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "{")
	})
	task := newWorld(t, webhook.Config{URL: rec.URL, AllowLoopback: true}).once(core.NewTask{})
	assert.Equal(t, core.StatusWaiting, task.Status)
	assert.Contains(t, task.LastError, "webhook: read the answer")
	assert.Empty(t, task.Result)
}
