package pubsub_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/handlers/pubsub"
)

const topic = "projects/acme/topics/digests"

// published is a request as Pub/Sub gets it.
type published struct {
	Messages []struct {
		Data, OrderingKey string
		Attributes        map[string]string
	}
	path   string
	header http.Header
}

// google is Pub/Sub, as its reference describes publish, and the server of tokens.
func google(t *testing.T, got *published, status int, answer string) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/token" {
			_, _ = io.WriteString(w, `{"access_token":"token-of-the-account","token_type":"Bearer","expires_in":3600}`)
			return
		}
		assert.NoError(t, json.Unmarshal(body, got))
		got.path, got.header = r.URL.Path, r.Header
		w.WriteHeader(status)
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	return server
}

// account is a file with the key of an account whose tokens are from a server.
func account(t *testing.T, server string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	data, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "duly@acme.iam.gserviceaccount.com", "private_key_id": "1", "token_uri": server + "/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "account.json")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	return file
}

// once publishes a task, and returns what became of it.
func once(t *testing.T, c pubsub.Config) core.TaskInfo {
	t.Helper()
	h, err := pubsub.New(c)
	require.NoError(t, err)
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{Default: core.KindConfig{Backoff: time.Hour, MaxBackoff: time.Hour}})
	require.NoError(t, err)
	core.Handle(s, "x", h.Run)
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "ada", ID: "i", Kind: "x", Payload: 7, MaxAttempts: 3})
	require.NoError(t, err)
	_, err = s.RunDue(context.WithoutCancel(t.Context()), core.Scope{})
	var failed *core.RunsError
	require.True(t, err == nil || errors.As(err, &failed), "%v", err)
	info, err := s.Task(t.Context(), "ada", "i")
	require.NoError(t, err)
	return info
}

// A task is a message of the topic, with the credentials of an account.
func TestATaskIsPublished(t *testing.T) {
	var got published
	server := google(t, &got, 200, `{"messageIds":["m-1"]}`)
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", account(t, server.URL))
	info := once(t, pubsub.Config{Topic: topic, Endpoint: server.URL})
	require.Equal(t, core.StatusCompleted, info.Status, info.LastError)
	assert.JSONEq(t, `{"message_id":"m-1"}`, string(info.Result))
	assert.Equal(t, "/v1/"+topic+":publish", got.path)
	assert.True(t, strings.HasPrefix(got.header.Get("Authorization"), "Bearer "), got.header)
	require.Len(t, got.Messages, 1)
	message := got.Messages[0]
	assert.Equal(t, "ada", message.OrderingKey)
	assert.Equal(t, []string{"ada", "i", "x"}, []string{message.Attributes["agent_id"], message.Attributes["id"], message.Attributes["kind"]})
	data, err := base64.StdEncoding.DecodeString(message.Data)
	require.NoError(t, err)
	var body map[string]any
	require.NoError(t, json.Unmarshal(data, &body))
	assert.Equal(t, []any{"i", 7.0, message.Attributes["message_id"]}, []any{body["id"], body["payload"], body["message_id"]})
}

// An emulator gets no credentials; what it refuses means what it means of a webhook.
func TestAnEmulatorRefuses(t *testing.T) {
	for text, want := range map[string]struct {
		status  int
		becomes core.Status
		later   int
	}{
		"pubsub: 404 Not Found: no topic":         {404, core.StatusFailed, 0},
		"pubsub: 429 Too Many Requests: no topic": {429, core.StatusWaiting, 1},
		"pubsub: 401 Unauthorized: no topic":      {401, core.StatusWaiting, 0},
	} {
		var got published
		server := google(t, &got, want.status, fmt.Sprintf(`{"error":{"code":%d,"message":"no topic"}}`, want.status))
		t.Setenv("PUBSUB_EMULATOR_HOST", strings.TrimPrefix(server.URL, "http://"))
		info := once(t, pubsub.Config{Topic: topic})
		assert.Equal(t, want.becomes, info.Status, text)
		assert.Contains(t, info.LastError, text)
		assert.Equal(t, want.later, info.RetryAfters, text)
		assert.Empty(t, got.header.Get("Authorization"))
	}
}

func TestConfigurations(t *testing.T) {
	t.Parallel()
	_, err := pubsub.New(pubsub.Config{Topic: "digests"})
	require.ErrorAs(t, err, new(*core.ConfigError))
	assert.ErrorContains(t, err, "To must be the full name of a topic")
}
