package due

// The callers of the file, as the API lets them in.

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/adapters/http/metrics"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// hookKey signs the requests of a sender of the file.
var hookKey = []byte("a key of more than 16 bytes")

// callersOf reads a file and who may call.
func callersOf(t *testing.T, text string) (*callers, error) {
	t.Helper()
	c, err := dulyfile.Parse(t.Context(), "duly.yaml", []byte(text), dulyfile.Defaults{})
	require.NoError(t, err)
	return readCallers(c)
}

// Each caller of the file may do what the file says; one that signs, too.
func TestCallersOfTheFileAreLetIn(t *testing.T) {
	t.Setenv("ADMIN", "admin")
	t.Setenv("CI", "ci, next")
	t.Setenv("NOW", "sig_the_current_key")
	t.Setenv("NEXT", "sig_the_next_key")
	t.Setenv(cronSecretEnv, "tick")
	t.Setenv("HOOK", base64.StdEncoding.EncodeToString(hookKey))
	k, err := callersOf(t, `
tokens:
  - { env: CI, scopes: [read, write], agents: [ann, "team-*"] }
  - { env: ADMIN, scopes: [read, trigger, write] }
senders:
  - { type: standard-webhooks, env: HOOK, scopes: [write], agents: ["hook-*"] }
  - { type: google, audience: https://duly.example, emails: [cron@project.example], scopes: [trigger] }
  - { type: github, audience: https://duly.example, repositories: [acme/app], scopes: [write], name: gh }
  - { type: qstash, env: [NOW, NEXT], url: https://duly.example, scopes: [trigger] }
  - { type: vercel, env: CRON_SECRET, scopes: [trigger], agents: [ann] }
`)
	require.NoError(t, err)
	assert.Equal(t, example{"CI", "ann"}, k.example)
	assert.Equal(t, "team-me", exampleAgent(&httpadapter.Grant{Patterns: []string{"team-*"}}))
	assert.Len(t, k.verifiers, 3)
	assert.Len(t, k.crons, 1)
	assert.Empty(t, k.cron, "the file says what the secret is for")
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	require.NoError(t, err)
	logger := slog.New(slog.DiscardHandler)
	handler := (&api{callers: k, metrics: metrics.New(metrics.Config{Logger: logger})}).server(s, nil, 0, logger).Handler
	do := func(r *http.Request) int {
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		return w.Code
	}
	for i, c := range []struct {
		token, method, path, body string
		want                      int
	}{
		{"", "GET", "/v1/stats", "", 401},
		{"CI", "GET", "/v1/stats", "", 401},
		{"tick", "GET", "/v1/cron", "", 200},
		{"tick", "GET", "/v1/stats", "", 401},
		{"admin", "GET", "/v1/cron", "", 401},
		{"admin", "POST", "/v1/run-due", `{"all":true}`, 200},
		{"ci", "POST", "/v1/run-due", `{"all":true}`, 403},
		{"ci", "GET", "/v1/stats", "", 403},
		{"ci", "GET", "/v1/tasks?agent_id=team-7", "", 200},
		{"next", "GET", "/v1/tasks?agent_id=ann", "", 200},
		{"ci", "GET", "/v1/tasks?agent_id=annn", "", 403},
		{"ci", "GET", "/v1/tasks?agent_id=team", "", 403},
		{"ci", "POST", "/v1/tasks", `{"agent_id":"team-7","kind":"k"}`, 201},
		{"ci", "POST", "/v1/tasks", `{"agent_id":"team-7","user_id":"eve","kind":"k"}`, 403},
		{"ci", "POST", "/v1/tasks", `{"tasks":[{"agent_id":"team-7","kind":"k"},{"agent_id":"bob","kind":"k"}]}`, 403},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(c.body))
		r.Header.Set("Authorization", "Bearer "+c.token)
		assert.Equal(t, c.want, do(r), "%d: %v", i, c)
	}
	for agent, want := range map[string]int{"hook-1": 201, "ann": 403} {
		body, stamp := `{"agent_id":"`+agent+`","kind":"k"}`, strconv.FormatInt(time.Now().Unix(), 10)
		mac := hmac.New(sha256.New, hookKey)
		_, _ = mac.Write([]byte("m-" + agent + "." + stamp + "." + body))
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/tasks", strings.NewReader(body))
		r.Header.Set("Webhook-Id", "m-"+agent)
		r.Header.Set("Webhook-Timestamp", stamp)
		r.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
		assert.Equal(t, want, do(r), agent)
	}
}

// What would let in somebody else, or leave it open what a caller may do, is an error that shows no secret.
func TestCallersThatAreRefused(t *testing.T) {
	t.Setenv(command.TokenEnv, "s3cret-root")
	t.Setenv("SAME", "s3cret-root")
	t.Setenv("ONE", "s3cret-one")
	t.Setenv("TWO", "x,s3cret-one")
	t.Setenv("EMPTY", " , ")
	t.Setenv("SHORT", "czNjcmV0")
	t.Setenv("ODD", "s3cret-one!")
	for text, want := range map[string]string{
		"tokens: [ { env: SAME, scopes: [read] } ]":                                                                 "duly.yaml:1: tokens[0]: the environment variable SAME contains the same secret as DULY_TOKEN",
		"tokens: [ { env: ONE, scopes: [read] }, { env: TWO, scopes: [read] } ]":                                    "duly.yaml:1: tokens[1]: the environment variable TWO contains the same secret as ONE",
		"tokens: [ { env: EMPTY, scopes: [read] } ]":                                                                "duly.yaml:1: tokens[0]: the environment variable EMPTY, named by env, is not set or empty",
		"senders: [ { type: standard-webhooks, env: SHORT, scopes: [read] } ]":                                      "duly.yaml:1: senders[0]: the environment variable SHORT, named by env, must have secrets of at least 16 bytes in base64",
		"senders: [ { type: qstash, env: SHORT, url: https://d.example, scopes: [read] } ]":                         "duly.yaml:1: senders[0]: qstash: Keys must have at least 16 characters; number 1 has fewer",
		"senders: [ { type: vercel, env: ONE, scopes: [trigger] }, { type: vercel, env: TWO, scopes: [trigger] } ]": "duly.yaml:1: senders[1]: the environment variable TWO contains the same secret as ONE",
		"senders: [ { type: standard-webhooks, env: ODD, scopes: [read] } ]":                                        "duly.yaml:1: senders[0]: the environment variable ODD, named by env, must have secrets of at least 16 bytes in base64",
	} {
		_, err := callersOf(t, text)
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "s3cret")
		assert.NotContains(t, err.Error(), "czNjcmV0")
	}
}
