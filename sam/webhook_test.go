package main_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
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

// The URLs, the secret and what may be called are those of the environment; what a webhook does is tested with the handler.
func TestWebhook(t *testing.T) {
	t.Parallel()
	key := []byte("a key of some length, as it must be")
	ids := make(chan string, 2)
	var attempts atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		id, at := r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp")
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + at + "." + string(body)))
		assert.Equal(t, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)), r.Header.Get("Webhook-Signature"))
		ids <- id
		if attempts.Add(1)%2 == 1 {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = io.WriteString(w, `{"done":true}`)
	}))
	t.Cleanup(srv.Close)
	task := run(t, 2, map[string]string{
		"DULY_WEBHOOKS":       `{"hook":"` + srv.URL + `"}`,
		"DULY_WEBHOOK_SECRET": "whsec_" + base64.StdEncoding.EncodeToString(key), "DULY_WEBHOOKS_ALLOW_PRIVATE": "true",
	})
	assert.Equal(t, core.StatusCompleted, task.Status, task.LastError)
	assert.JSONEq(t, `{"done":true}`, string(task.Result))
	assert.Equal(t, <-ids, <-ids, "one occurrence, one id, however often it is tried")
}

// The role signs what is posted to a function's URL with IAM.
func TestWebhooksAreSignedByTheRole(t *testing.T) {
	t.Parallel()
	got := make(chan http.Header, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got <- r.Header }))
	t.Cleanup(srv.Close)
	task := run(t, 1, map[string]string{
		"DULY_WEBHOOKS": `{"hook":{"url":"` + srv.URL + `","identity":"aws"}}`, "DULY_WEBHOOKS_ALLOW_PRIVATE": "true", "AWS_REGION": "eu-north-1",
		"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "session",
	})
	assert.Equal(t, core.StatusCompleted, task.Status, task.LastError)
	header := <-got
	assert.Regexp(t, "^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/[0-9]{8}/eu-north-1/lambda/aws4_request, ", header.Get("Authorization"))
	assert.Equal(t, "session", header.Get("X-Amz-Security-Token"))
}

// What is not public is not called, this machine included, whatever guise it comes in.
func TestWebhooksStayOutside(t *testing.T) {
	t.Parallel()
	srv := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was called") }))
	t.Cleanup(srv.Close)
	for _, url := range []string{srv.URL, "https://[64:ff9b::a9fe:a9fe]", "https://[2002:a9fe:a9fe::1]", "https://240.0.0.1", "https://198.18.0.1"} {
		task := run(t, 1, map[string]string{"DULY_WEBHOOKS": `{"hook":"` + url + `/secret-path"}`})
		assert.Equal(t, core.StatusWaiting, task.Status)
		assert.Contains(t, task.LastError, "is not a public address")
		assert.NotContains(t, task.LastError, "secret-path")
	}
}

func TestWebhookSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		vars map[string]string
		want string
	}{
		{map[string]string{"DULY_WEBHOOKS": `{"a":"ftp://x"}`}, `DULY_WEBHOOKS: the URL of "a" must be an http or https URL`},
		{map[string]string{"DULY_WEBHOOKS": `{"a":"https:///path"}`}, `the URL of "a" must be an http or https URL`},
		{map[string]string{"DULY_WEBHOOKS": `{"a":"http://x"}`}, `the URL of "a" must begin with https://; DULY_WEBHOOKS_ALLOW_PRIVATE=true allows http`},
		{map[string]string{"DULY_WEBHOOKS": `{"a":"http://127.0.0.1"}`}, `the URL of "a" must begin with https://; DULY_WEBHOOKS_ALLOW_PRIVATE=true allows http`},
		{map[string]string{"DULY_WEBHOOKS": `nonsense`}, "must be JSON"},
		{map[string]string{"DULY_WEBHOOKS": `{"a":"https://x"}`, "DULY_WEBHOOK_SECRET": "whsec_!"}, "DULY_WEBHOOK_SECRET must be whsec_ and the base64"},
		{map[string]string{"DULY_WEBHOOKS": `{"a":"https://x"}`, "DULY_WEBHOOK_SECRET": "whsec_"}, "DULY_WEBHOOK_SECRET must be whsec_ and the base64"},
		{map[string]string{"DULY_WEBHOOKS": `{"no kind!":"https://x"}`}, "DULY_WEBHOOKS: duly: Handle: kind"},
		{map[string]string{"DULY_WEBHOOKS": `{"a":{"url":"https://x","identity":"me"}}`}, `DULY_WEBHOOKS: the identity of "a": identity must be aws, not "me"`},
		{map[string]string{"DULY_WEBHOOKS": `{"a":{"url":"https://x","identity":"aws"}}`}, `DULY_WEBHOOKS: the identity of "a": Region must be`},
		{map[string]string{"DULY_WEBHOOKS": `{"a":{"url":"https://a.lambda-url.b.on.aws","identity":"aws"}}`}, `DULY_WEBHOOKS: the identity of "a": AccessKey must be set`},
		{map[string]string{"DULY_WEBHOOKS": `{"a":{"url":"https://u:p@a.lambda-url.b.on.aws","identity":"aws"}}`, "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}, `the identity of "a": Headers may have one`},
		{map[string]string{"DULY_WEBHOOKS": `{"a":{"url":"https://x","bearer":"y"}}`}, "must be JSON"},
		{map[string]string{"DULY_WEBHOOKS": `{"a":5}`}, "must be JSON"},
		{map[string]string{"DULY_WEBHOOKS": `{"a":"https://x"} {}`}, "must be JSON"},
		{map[string]string{"DULY_WEBHOOKS_ALLOW_PRIVATE": "maybe"}, "must be true or false"},
	} {
		s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
		require.NoError(t, err)
		err = main.Webhooks(s, func(name string) string { return c.vars[name] })
		assert.ErrorContains(t, err, c.want)
	}
}
