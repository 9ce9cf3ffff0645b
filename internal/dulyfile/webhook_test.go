package dulyfile_test

// Webhooks of the file: what a server knows by who calls, and where its secrets do not go.

import (
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
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
	"github.com/seed-6f6f2c11/duly/handlers/exec"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// guarded is a server that keeps the headers of what it gets, by path, and quotes them all in an error, beside a metadata server.
func guarded(t *testing.T) (url string, got func(path string) http.Header) {
	t.Helper()
	var mu sync.Mutex
	all := map[string]http.Header{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // no idle connection is left behind
		if r.URL.Path == "/computeMetadata/v1/instance/service-accounts/default/identity" {
			claims := fmt.Sprintf(`{"aud":%q,"exp":%d}`, r.URL.Query().Get("audience"), time.Now().Add(time.Hour).Unix())
			_, _ = io.WriteString(w, "e30."+base64.RawURLEncoding.EncodeToString([]byte(claims))+".sig")
			return
		}
		mu.Lock()
		all[r.URL.Path] = r.Header
		mu.Unlock()
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, r.Header.Get("Authorization")+r.Header.Get("X-Api-Key"))
	}))
	t.Cleanup(server.Close)
	return server.URL, func(path string) http.Header {
		mu.Lock()
		defer mu.Unlock()
		return all[path]
	}
}

// Handlers and gates of the file send their headers and tokens; no program gets a variable of theirs, and no error of a task has one.
func TestWebhooksOfTheFile(t *testing.T) { //nolint:paralleltest // it sets variables
	url, got := guarded(t)
	for name, value := range map[string]string{
		"API_KEY": "hush-api-key\n", "TOKEN": "hush-token", "GATE_KEY": "hush-gate-key", "GCE_METADATA_HOST": strings.TrimPrefix(url, "http://"), "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
		"AWS_SECRET_ACCESS_KEY": "hush-of-aws", "AWS_SESSION_TOKEN": "hush-session", "AWS_REGION": "eu-north-1",
	} {
		t.Setenv(name, value)
	}
	f, err := dulyfile.Parse(t.Context(), "duly.yaml", []byte(strings.ReplaceAll(`
handlers:
  key: { webhook: URL/key, headers: { X-Team: core, x-number: 7 }, headers_env: { X-Api-Key: API_KEY } }
  bearer: { webhook: URL/bearer, bearer_env: TOKEN }
  google: { webhook: URL/google, identity: { google: {} } }
  audience: { webhook: URL/audience, identity: { google: { audience: https://digest-abc.a.run.app } } }
  aws: { webhook: URL/aws, identity: { aws: } }
  gateway: { webhook: URL/gateway, identity: { aws: { region: us-east-1, service: execute-api } } }
  gated: { log: {}, gate: { webhook: URL/gate, headers_env: { X-Api-Key: GATE_KEY } } }
  look: { exec: [sh, -c, 'echo "<$API_KEY$TOKEN$GATE_KEY>" >&2; exit 65'] }
`, "URL", url)), dulyfile.Defaults{})
	require.NoError(t, err)
	s, err := core.New(memstore.New(memstore.Config{}), f.Settings())
	require.NoError(t, err)
	require.NoError(t, f.Register(s, slog.New(slog.DiscardHandler), &exec.Children{}))
	for _, h := range f.Handlers {
		_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: h.Kind, Kind: h.Kind})
		require.NoError(t, err)
	}
	_, err = s.RunDue(t.Context(), core.Scope{})
	require.ErrorAs(t, err, new(*core.RunsError))
	assert.Equal(t, "hush-api-key", got("/key").Get("X-Api-Key"))
	assert.Equal(t, "core", got("/key").Get("X-Team"))
	assert.Equal(t, "7", got("/key").Get("X-Number"))
	assert.Equal(t, "hush-gate-key", got("/gate").Get("X-Api-Key"))
	assert.Equal(t, "Bearer hush-token", got("/bearer").Get("Authorization"))
	assert.Equal(t, url, audienceOf(t, got("/google")))
	assert.Equal(t, "https://digest-abc.a.run.app", audienceOf(t, got("/audience")))
	assert.Regexp(t, "^AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/[0-9]{8}/eu-north-1/lambda/aws4_request, ", got("/aws").Get("Authorization"))
	assert.Equal(t, "hush-session", got("/aws").Get("X-Amz-Security-Token"))
	assert.Regexp(t, "/us-east-1/execute-api/aws4_request, ", got("/gateway").Get("Authorization"))
	for _, h := range f.Handlers {
		task, err := s.Task(t.Context(), "a", h.Kind)
		require.NoError(t, err)
		require.NotEmpty(t, task.LastError, h.Kind)
		if h.Kind == "look" {
			assert.Contains(t, task.LastError, "<>", "what a program gets of them")
		} else {
			assert.Contains(t, task.LastError, "403 Forbidden", h.Kind)
		}
		for _, secret := range []string{"hush-api-key", "hush-token", "hush-gate-key", "e30."} {
			assert.NotContains(t, task.LastError, secret, h.Kind)
		}
	}
}

// audienceOf is for whom the token in a request is.
func audienceOf(t *testing.T, header http.Header) string {
	t.Helper()
	token, ok := strings.CutPrefix(header.Get("Authorization"), "Bearer e30.")
	require.True(t, ok, "%v", header)
	claims, err := base64.RawURLEncoding.DecodeString(strings.TrimSuffix(token, ".sig"))
	require.NoError(t, err)
	aud, _, _ := strings.Cut(strings.TrimPrefix(string(claims), `{"aud":"`), `"`)
	return aud
}

// What the environment lacks, or has in a form that no header can have, is an error of the file that shows nothing of it.
func TestWebhooksWithoutTheirEnvironment(t *testing.T) {
	for name, value := range map[string]string{"AWS_REGION": "", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "BLANK": " ", "TWO": "hush and more", "LINES": "hush\nmore"} {
		t.Setenv(name, value)
	}
	for keys, want := range map[string]string{
		"identity: { aws: { region: a } }": "duly.yaml:1: handlers.x.identity.aws: AWS_ACCESS_KEY_ID in the environment must be set",
		"identity: { aws: {} }":            "duly.yaml:1: handlers.x.identity.aws: region must be the region of the server",
		"bearer_env: BLANK":                "duly.yaml:1: handlers.x.bearer_env: the environment variable BLANK, named by bearer_env, is not set",
		"bearer_env: TWO":                  "duly.yaml:1: handlers.x.bearer_env: the environment variable TWO, named by bearer_env, must be a token without spaces",
		"headers_env: { X: LINES }":        "duly.yaml:1: handlers.x.headers_env.X: must have a value in one line",
		"secret_env: TWO":                  "duly.yaml:1: handlers.x.secret_env: the environment variable TWO, named by secret_env, must be whsec_",
	} {
		err := parse(t, "handlers: { x: { webhook: 'https://a.example/', "+keys+" } }")
		require.ErrorAs(t, err, new(*dulyfile.Error), keys)
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "hush")
	}
	t.Setenv("GCE_METADATA_HOST", "http://hush")
	require.ErrorContains(t, parse(t, "handlers: { x: { webhook: 'https://a.example/', identity: { google: {} } } }"), "GCE_METADATA_HOST in the environment must be a host")
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	require.NoError(t, parse(t, "handlers: { x: { webhook: 'https://abc.lambda-url.eu-north-1.on.aws/', identity: { aws: {} } } }"), "the region is in the URL")
}
