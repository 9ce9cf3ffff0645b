package lambda_test

import (
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

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/handlers/lambda"
	"github.com/seed-6f6f2c11/duly/internal/aws"
)

// cloud is Lambda as its reference describes Invoke: it keeps what comes, and answers as its function does.
type cloud struct {
	*httptest.Server

	mu       sync.Mutex
	function http.HandlerFunc
	got      []*http.Request
	events   []map[string]any
	signed   []bool
}

const secret = "secret-of-the-role"

// newCloud is the endpoint that the environment names.
func newCloud(t *testing.T, function http.HandlerFunc) *cloud {
	t.Helper()
	c := &cloud{function: function}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": c.URL, "AWS_REGION": "eu-north-1", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": secret, "AWS_SESSION_TOKEN": "session-of-the-role",
		"AWS_CONFIG_FILE": "/nowhere", "AWS_SHARED_CREDENTIALS_FILE": "/nowhere",
	} {
		t.Setenv(name, value)
	}
	return c
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var event map[string]any
	_ = json.Unmarshal(body, &event)
	c.mu.Lock()
	c.got, c.events, c.signed = append(c.got, r), append(c.events, event), append(c.signed, verified(r, body, c.URL))
	function := c.function
	c.mu.Unlock()
	function(w, r)
}

// verified does what AWS does: it signs what has arrived, of which the headers count that the sender names, and compares.
func verified(r *http.Request, body []byte, url string) bool {
	_, rest, _ := strings.Cut(r.Header.Get("Authorization"), ", SignedHeaders=")
	names, _, _ := strings.Cut(rest, ", Signature=")
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	again, bad := http.NewRequest(r.Method, url+r.URL.RequestURI(), http.NoBody)
	if err != nil || bad != nil {
		return false
	}
	for name := range strings.SplitSeq(names, ";") {
		if name != "host" {
			again.Header[http.CanonicalHeaderKey(name)] = r.Header[http.CanonicalHeaderKey(name)]
		}
	}
	s := aws.Signer{AccessKey: "AKIDEXAMPLE", SecretKey: secret, SessionToken: "session-of-the-role", Region: "eu-north-1", Service: "lambda"}
	s.Sign(again, body, at)
	return again.Header.Get("Authorization") == r.Header.Get("Authorization")
}

// world is a scheduler whose kind x is a function.
type world struct {
	*testing.T

	s *core.Scheduler
}

func newWorld(t *testing.T, c lambda.Config) *world {
	t.Helper()
	h, err := lambda.New(t.Context(), c)
	require.NoError(t, err)
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{MaxResult: 1000, Default: core.KindConfig{Backoff: time.Millisecond, MaxBackoff: time.Millisecond, Timeout: 5 * time.Second}})
	require.NoError(t, err)
	core.Handle(s, "x", h.Run)
	return &world{T: t, s: s}
}

// once submits a task and runs it once.
func (w *world) once(task core.NewTask) core.TaskInfo {
	w.Helper()
	task.Agent, task.ID, task.Kind = "a/1", "i", "x"
	_, err := w.s.Submit(w.Context(), task)
	require.NoError(w, err)
	return w.again()
}

// again runs the task once when it is due.
func (w *world) again() core.TaskInfo {
	w.Helper()
	before, err := w.s.Task(w.Context(), "a/1", "i")
	require.NoError(w, err)
	var info core.TaskInfo
	require.Eventually(w, func() bool {
		_, err := w.s.RunDue(w.Context(), core.Scope{MaxTasks: 1})
		var failed *core.RunsError
		require.True(w, err == nil || errors.As(err, &failed), "%v", err)
		info, err = w.s.Task(w.Context(), "a/1", "i")
		require.NoError(w, err)
		return info.RunCount > before.RunCount
	}, 10*time.Second, time.Millisecond)
	return info
}

// says answers with a status, headers and a body.
func says(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// A function is invoked with the run, signed by the credentials of the environment, and what it returns is the result.
func TestAFunctionIsInvoked(t *testing.T) {
	c := newCloud(t, says(200, `{"words": 7}`))
	info := newWorld(t, lambda.Config{Function: "digest:live"}).once(core.NewTask{Payload: map[string]string{"topic": "go"}})
	require.Equal(t, core.StatusCompleted, info.Status, info.LastError)
	assert.JSONEq(t, `{"words": 7}`, string(info.Result))
	require.Len(t, c.got, 1)
	r, event := c.got[0], c.events[0]
	assert.Equal(t, []string{"POST", "/2015-03-31/functions/digest:live/invocations"}, []string{r.Method, r.URL.Path})
	assert.Empty(t, r.Header.Get("X-Amz-Invocation-Type"), "it is waited for")
	assert.Regexp(t, `^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/\d{8}/eu-north-1/lambda/aws4_request, SignedHeaders=.*host.*, Signature=`, r.Header.Get("Authorization"))
	assert.True(t, c.signed[0], "the signature does not fit")
	assert.Equal(t, []any{"i", "a/1", "x", map[string]any{"topic": "go"}}, []any{event["id"], event["agent_id"], event["kind"], event["payload"]})
	assert.Regexp(t, "^msg_[0-9a-f]{32}$", event["message_id"])
	assert.NotContains(t, event, "reply_to")
}

// What a function and Lambda answer means what it means for a webhook.
func TestAnswers(t *testing.T) {
	for name, want := range map[string]struct {
		answer http.HandlerFunc
		status core.Status
		result string
		err    string
		later  bool // uncharged
	}{
		"nothing":          {answer: says(200, `null`), status: core.StatusCompleted},
		"a text":           {answer: says(200, `"done"`), status: core.StatusCompleted, result: `"done"`},
		"as a URL":         {answer: says(200, `{"statusCode":200,"body":"{\"a\":1}"}`), status: core.StatusCompleted, result: `{"a":1}`},
		"in base64":        {answer: says(200, `{"statusCode":200,"body":"eyJhIjoxfQ==","isBase64Encoded":true}`), status: core.StatusCompleted, result: `{"a":1}`},
		"later":            {answer: says(200, `{"statusCode":503,"headers":{"retry-after":"60"},"body":"busy"}`), status: core.StatusWaiting, err: "lambda: 503 Service Unavailable: busy", later: true},
		"gone":             {answer: says(200, `{"statusCode":410}`), status: core.StatusCancelled, err: "lambda: 410 Gone"},
		"steered":          {answer: says(200, `{"statusCode":200,"headers":{"duly-snooze":"1h"}}`), status: core.StatusWaiting},
		"failed":           {answer: says(200, `{"errorType":"ValueError","errorMessage":"no topic"}`, "X-Amz-Function-Error", "Unhandled"), status: core.StatusWaiting, err: "lambda: the function has failed: ValueError: no topic"},
		"throttled":        {answer: says(429, `{"message":"Rate Exceeded."}`, "X-Amzn-Errortype", "TooManyRequestsException", "Retry-After", "60"), status: core.StatusWaiting, err: "TooManyRequestsException Rate Exceeded.", later: true},
		"throttled, so on": {answer: says(429, `{"message":"Rate Exceeded."}`, "X-Amzn-Errortype", "TooManyRequestsException"), status: core.StatusWaiting, err: "lambda: 429 Too Many Requests", later: true},
		"not allowed":      {answer: says(403, `{"message":"is not authorized"}`, "X-Amzn-Errortype", "AccessDeniedException"), status: core.StatusFailed, err: "lambda: 403 Forbidden: AccessDeniedException is not authorized"},
		"expired":          {answer: says(403, `{"message":"security token"}`, "X-Amzn-Errortype", "ExpiredTokenException"), status: core.StatusWaiting, err: "ExpiredTokenException"},
		"a signature":      {answer: says(403, `{"message":"does not match. The Canonical String is session-of-the-role"}`, "X-Amzn-Errortype", "InvalidSignatureException"), status: core.StatusFailed, err: "does not match."},
		"down":             {answer: says(500, `{"message":"oops"}`, "X-Amzn-Errortype", "ServiceException"), status: core.StatusWaiting, err: "lambda: 500 Internal Server Error: ServiceException oops"},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCloud(t, want.answer)
			info := newWorld(t, lambda.Config{Function: "digest"}).once(core.NewTask{MaxAttempts: 3})
			assert.Equal(t, want.status, info.Status, info.LastError)
			assert.Equal(t, want.result, string(info.Result))
			assert.Contains(t, info.LastError, want.err)
			assert.NotContains(t, info.LastError, "session-of-the-role")
			assert.Equal(t, want.later, info.RetryAfters > 0)
			assert.Len(t, c.got, 1, "the library repeats nothing")
		})
	}
}

// A function that is only started answers by a signal; its failure starts it again, and the answer to that is not the first one.
func TestAFunctionAnswersLater(t *testing.T) {
	c := newCloud(t, says(202, ""))
	w := newWorld(t, lambda.Config{Function: "digest", Async: true})
	info := w.once(core.NewTask{MaxAttempts: 3})
	require.Equal(t, core.StatusWaiting, info.Status, info.LastError)
	require.NotNil(t, info.Awaiting)
	assert.WithinDuration(t, time.Now().Add(time.Hour), info.Awaiting.Until, time.Minute)
	assert.Equal(t, "Event", c.got[0].Header.Get("X-Amz-Invocation-Type"))
	reply := func(i int, payload string) core.TaskInfo {
		key, ok := strings.CutPrefix(c.events[i]["reply_to"].(string), "/v1/signals/a%2F1/")
		require.True(t, ok, c.events[i])
		_, err := w.s.Signal(t.Context(), "a/1", key, json.RawMessage(payload))
		require.NoError(t, err)
		return w.again()
	}
	info = reply(0, `{"error":"no topic"}`)
	assert.Equal(t, "no topic", info.LastError)
	require.Len(t, c.events, 1)
	info = w.again()
	require.NotNil(t, info.Awaiting, "the second attempt starts it again")
	require.Len(t, c.events, 2)
	assert.NotEqual(t, c.events[0]["reply_to"], c.events[1]["reply_to"])
	info = reply(1, `{"result":{"words":7}}`)
	assert.Equal(t, core.StatusCompleted, info.Status, info.LastError)
	assert.JSONEq(t, `{"words":7}`, string(info.Result))
}

// An answer that does not come in time is a failed attempt.
func TestAFunctionDoesNotAnswer(t *testing.T) {
	c := newCloud(t, says(202, ""))
	w := newWorld(t, lambda.Config{Function: "digest", Async: true, AnswerWithin: 20 * time.Millisecond})
	w.once(core.NewTask{MaxAttempts: 1})
	info := w.again()
	assert.Equal(t, core.StatusFailed, info.Status)
	assert.Equal(t, "lambda: digest has not answered within 20ms", info.LastError)
	assert.Len(t, c.got, 1)
}

func TestConfigurations(t *testing.T) {
	newCloud(t, nil)
	t.Setenv("AWS_REGION", "")
	for want, c := range map[string]lambda.Config{
		"To must be the name or the ARN": {Function: "a b"},
		"AnswerWithin must be positive":  {Function: "a", AnswerWithin: time.Hour},
		"Region must be given":           {Function: "a"},
	} {
		_, err := lambda.New(t.Context(), c)
		require.ErrorAs(t, err, new(*core.ConfigError))
		assert.ErrorContains(t, err, want)
	}
	_, err := lambda.New(t.Context(), lambda.Config{Function: "arn:aws:lambda:eu-north-1:123456789012:function:digest"})
	assert.NoError(t, err, "the region is in the ARN")
}
