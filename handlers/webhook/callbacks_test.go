package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/handlers/webhook"
)

func TestOnlyWhatIsAllowedMayBeCalled(t *testing.T) {
	t.Parallel()
	b, err := webhook.NewCallbacks(webhook.CallbacksConfig{Allow: []string{"https://hooks.example.com/", "https://Api.example.com:8443/duly/", "http://localhost:81/x"}})
	require.NoError(t, err)
	for _, url := range []string{
		"https://hooks.example.com/", "https://HOOKS.example.com/a?b=c", "https://api.example.com:8443/duly/x", "http://localhost:81/xy",
	} {
		assert.NoError(t, b.Check(url), url)
	}
	for _, url := range []string{
		"http://hooks.example.com/", "https://hooks.example.com", "https://hooks.example.com.evil.example/", "https://hooks.example.com:444/",
		"https://hooks.example.com@evil.example/", "https://user@hooks.example.com/", "https://evil.example/https://hooks.example.com/",
		"https://api.example.com:8443/", "https://api.example.com:8443/duly/../admin", "https://api.example.com:8443/duly/%2e%2e/admin",
		"https://api.example.com:8443/dul%79/x", `https://hooks.example.com\@evil.example/`, "https:hooks.example.com/", "//hooks.example.com/",
		"https://hooks.example.com/#x", "ftp://hooks.example.com/", "https://[::1]/", "http://localhost/x", "http://127.0.0.1:81/x", "\x00", "",
		"https://hooks.example.com\x00/", " https://hooks.example.com/",
	} {
		err := b.Check(url)
		require.Error(t, err, url)
		assert.NotContains(t, err.Error(), "evil", "it may contain a secret")
	}
}

// A URL that is allowed leads to a host that was named, however it is written.
func FuzzWhatIsAllowedIsOfANamedHost(f *testing.F) {
	b, err := webhook.NewCallbacks(webhook.CallbacksConfig{Allow: []string{"https://hooks.example.com/duly/"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("https://hooks.example.com/duly/x")
	f.Add("https://hooks.example.com/duly/%2e%2e/x")
	f.Add("https://hooks.example.com:/duly/x")
	f.Fuzz(func(t *testing.T, url string) {
		if b.Check(url) != nil {
			return
		}
		r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, http.NoBody)
		require.NoError(t, err)
		assert.Equal(t, "https", r.URL.Scheme)
		assert.Equal(t, "hooks.example.com", strings.ToLower(r.URL.Host))
		assert.True(t, strings.HasPrefix(r.URL.EscapedPath(), "/duly/"))
		assert.True(t, strings.HasPrefix(r.URL.ResolveReference(r.URL).EscapedPath(), "/duly/"), url)
	})
}

func TestCallbacksConfigIsChecked(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]webhook.CallbacksConfig{
		"Allow must name at least one beginning of URLs":           {},
		"Allow[0] must be https and go up to a slash":              {Allow: []string{"http://hooks.example.com/"}},
		"Allow[1] must be https and go up to a slash":              {Allow: []string{"https://a.example/", "https://b.example"}},
		"Allow[0] must have no query":                              {Allow: []string{"https://a.example/?x"}},
		"Allow[0] must be an https URL":                            {Allow: []string{"*"}},
		"Allow[0] must have no user, fragment or backslash":        {Allow: []string{"https://u@a.example/"}},
		"Secret must be whsec_ and the base64 of 24 to 64 random ": {Allow: []string{"https://a.example/"}, Secret: "hunter2"},
	} {
		_, err := webhook.NewCallbacks(c)
		var wrong *core.ConfigError
		require.ErrorAs(t, err, &wrong)
		assert.Contains(t, err.Error(), want)
		assert.NotContains(t, err.Error(), "hunter2")
	}
}

// deliver posts a message to a receiver on this machine that answers as told.
func deliver(t *testing.T, answer http.HandlerFunc) ([]message, error) {
	t.Helper()
	to := newReceiver(t, answer)
	b, err := webhook.NewCallbacks(webhook.CallbacksConfig{Allow: []string{to.URL + "/"}})
	require.NoError(t, err)
	require.NoError(t, b.Check(to.URL+"/a"))
	err = b.Deliver(t.Context(), to.URL+"/a", "msg_1", []byte(`{"id":"1"}`))
	return to.messages(), err
}

// The library of CloudEvents reads a message as an event, in both modes: of an end, and of a task that is late. What is about no task is none.
func TestACallbackIsACloudEvent(t *testing.T) {
	t.Parallel()
	for message, kind := range map[string]string{
		`{"agent_id":"ada/1","id":"a b","status":"completed","result":{"ok":true}}`: "duly.task.completed",
		`{"type":"late","agent_id":"ada/1","id":"a b","status":"waiting"}`:          "duly.task.late",
		`{"id":"1"}`: "", `not JSON`: "",
	} {
		for _, structured := range []bool{false, true} {
			var event *cloudevents.Event
			var wrong error
			var media string
			to := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				media = r.Header.Get("Content-Type")
				event, wrong = cloudevents.NewEventFromHTTPRequest(r)
			}))
			t.Cleanup(to.Close)
			b, err := webhook.NewCallbacks(webhook.CallbacksConfig{Allow: []string{to.URL + "/"}, Structured: structured})
			require.NoError(t, err)
			require.NoError(t, b.Deliver(t.Context(), to.URL+"/", "msg_1", []byte(message)))
			if kind == "" {
				assert.Error(t, wrong, message)
				continue
			}
			require.NoError(t, wrong, message)
			require.NoError(t, event.Validate())
			assert.Equal(t, []string{"1.0", "msg_1", kind, "/v1/agents/ada%2F1", "a%20b"}, []string{event.SpecVersion(), event.ID(), event.Type(), event.Source(), event.Subject()})
			assert.JSONEq(t, message, string(event.Data()))
			assert.Equal(t, structured, media == "application/cloudevents+json")
		}
	}
}

func TestAnswersToACallback(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		after  string
		want   string
		code   string // what becomes of it: as an error for core says
	}{
		"taken":       {status: 200},
		"accepted":    {status: 202},
		"gone":        {status: 410, want: "410 Gone", code: "cancel"},
		"moved":       {status: 308, want: "redirects are not followed", code: "no retry"},
		"not found":   {status: 404, want: "404 Not Found", code: "retry"},
		"down":        {status: 503, want: "503 Service Unavailable", code: "retry"},
		"too many":    {status: 429, after: "7", want: "429 Too Many Requests", code: "later"},
		"bad request": {status: 400, want: "400 Bad Request: no", code: "retry"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := deliver(t, func(w http.ResponseWriter, _ *http.Request) {
				if c.after != "" {
					w.Header().Set("Retry-After", c.after)
				}
				w.Header().Set("Location", "/b")
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte("no"))
			})
			require.Len(t, got, 1)
			assert.Equal(t, "msg_1", got[0].header.Get("Webhook-Id"))
			assert.Empty(t, got[0].header.Get("Webhook-Signature"), "there is no secret")
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, c.want)
			assert.Equal(t, c.code, outcomeOf(t, err))
		})
	}
}

// outcomeOf is what becomes of a task whose handler returns an error.
func outcomeOf(t *testing.T, err error) string {
	t.Helper()
	w := newWorld(t, webhook.Config{URL: "https://a.example"})
	core.Handle(w.s, "y", func(context.Context, *core.Task[string]) error { return err })
	_, submitted := w.s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "y", MaxAttempts: 2, Backoff: time.Hour})
	require.NoError(t, submitted)
	_, failed := w.s.RunDue(t.Context(), core.Scope{})
	var runs *core.RunsError
	assert.True(t, failed == nil || errors.As(failed, &runs))
	info, err := w.s.Task(t.Context(), "a", "1")
	require.NoError(t, err)
	switch {
	case info.Status == core.StatusCancelled:
		return "cancel"
	case info.Status == core.StatusFailed:
		return "no retry"
	case info.RetryAfters > 0:
		return "later"
	default:
		return "retry"
	}
}

// An address that is not public is not dialled, whatever name it has; this machine only if its name is allowed.
func TestCallbacksDoNotReachInside(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"https://10.0.0.1/", "https://169.254.169.254/", "https://[fd00::1]/", "https://0.0.0.0/"} {
		b, err := webhook.NewCallbacks(webhook.CallbacksConfig{Allow: []string{url}})
		require.NoError(t, err)
		assert.ErrorContains(t, b.Deliver(t.Context(), url, "msg_1", nil), "is not a public address")
	}
}

// loud is a form of messages: in capital letters, with what the fragment says in a header.
type loud struct{}

func (loud) Write(said neturl.Values, message []byte) (media string, header http.Header, body []byte, err error) {
	if said.Get("fail") != "" {
		return "", nil, nil, errors.New("no such form")
	}
	return "text/loud", http.Header{"X-Said": {said.Get("token")}}, bytes.ToUpper(message), nil
}

// A URL asks for a form of messages by its fragment, which is not sent; it is as good as one without, and no other fragment is allowed.
func TestAFormOfCallbacks(t *testing.T) {
	t.Parallel()
	to := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
	b, err := webhook.NewCallbacks(webhook.CallbacksConfig{Allow: []string{to.URL + "/in/"}, Forms: map[string]webhook.CallbackForm{"loud": loud{}}})
	require.NoError(t, err)
	require.NoError(t, b.Check(to.URL+"/in/x#loud=1&token=a%26b"))
	require.NoError(t, b.Deliver(t.Context(), to.URL+"/in/x?y#loud=1&token=a%26b", "msg_1", []byte(`{"id":"1","agent_id":"a","status":"completed"}`)))
	got := to.messages()
	require.Len(t, got, 1)
	assert.JSONEq(t, `{"ID":"1","AGENT_ID":"A","STATUS":"COMPLETED"}`, string(got[0].body))
	assert.Equal(t, []string{"text/loud", "a&b", "msg_1", ""}, []string{got[0].header.Get("Content-Type"), got[0].header.Get("X-Said"), got[0].header.Get("Webhook-Id"), got[0].header.Get("Ce-Type")})
	for _, wrong := range []string{"/in/x#quiet=1", "/in/x#", "/in/x#token=a&loud=1", "/in/x#loud=%zz", "/out#loud=1", "/in/../x#loud=1"} {
		require.Error(t, b.Check(to.URL+wrong), wrong)
	}
	for _, wrong := range []string{"/in/x#quiet=1&token=hunter2", "/in/x#loud=1&fail=1&token=hunter2"} {
		err := b.Deliver(t.Context(), to.URL+wrong, "msg_1", []byte(`{}`))
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "hunter2")
	}
	assert.Len(t, to.messages(), 1)
}
