package webhook_test

// Signatures by the role of the host, which a function's URL with IAM wants.

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/handlers/webhook"
	"github.com/seed-6f6f2c11/duly/internal/aws"
)

// verify is what IAM does: it signs what has arrived, of which the headers count that the sender names, and compares. The signer is held
// against the examples of AWS by its own tests.
func verify(t *testing.T, by aws.Signer, got message, url string) bool {
	t.Helper()
	credential, rest, _ := strings.Cut(got.header.Get("Authorization"), ", SignedHeaders=")
	names, _, _ := strings.Cut(rest, ", Signature=")
	at, err := time.Parse("20060102T150405Z", got.header.Get("X-Amz-Date"))
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, http.NoBody)
	require.NoError(t, err)
	for name := range strings.SplitSeq(names, ";") {
		if name != "host" {
			r.Header[http.CanonicalHeaderKey(name)] = got.header[http.CanonicalHeaderKey(name)]
		}
	}
	by.Sign(r, got.body, at)
	assert.Equal(t, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20270115/eu-north-1/"+by.Service+"/aws4_request", credential)
	return r.Header.Get("Authorization") == got.header.Get("Authorization")
}

// The server can verify who has sent a message, its body and its headers.
func TestMessagesAreSignedByTheRole(t *testing.T) {
	t.Parallel()
	for service, want := range map[string]string{"": "lambda", "execute-api": "execute-api"} {
		rec := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
		env := map[string]string{"AWS_REGION": "eu-north-1", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "key-of-the-role", "AWS_SESSION_TOKEN": "session-of-the-role"}
		id, err := webhook.NewAWSIdentity(webhook.AWSConfig{Service: service, Clock: stopped{}}.With(func(name string) string { return env[name] }))
		require.NoError(t, err)
		to := rec.URL + "/a%20b?x=1&y=%20"
		w := newWorld(t, webhook.Config{URL: to, AllowLoopback: true, Identity: id, Headers: map[string]string{"X-Team": "a   b"}})
		info := w.once(core.NewTask{Payload: "hi"})
		require.Equal(t, core.StatusCompleted, info.Status, info.LastError)
		got := rec.messages()[0]
		assert.Equal(t, "session-of-the-role", got.header.Get("X-Amz-Security-Token"))
		signer := aws.Signer{AccessKey: "AKIDEXAMPLE", SecretKey: "key-of-the-role", SessionToken: "session-of-the-role", Region: "eu-north-1", Service: want}
		assert.True(t, verify(t, signer, got, to))
		for _, name := range []string{"content-type", "host", "webhook-id", "x-amz-date", "x-amz-security-token", "x-team"} {
			assert.Regexp(t, "[=;]"+name+"[;,]", got.header.Get("Authorization"))
		}
		changed := message{header: got.header, body: append([]byte(" "), got.body...)}
		assert.False(t, verify(t, signer, changed, to), "another body")
		assert.False(t, verify(t, signer, got, to+"&z=1"), "another URL")
	}
}

func TestAWSSettings(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]webhook.AWSConfig{
		"Region must be":        {AccessKey: "a", SecretKey: "hunter2"},
		"AccessKey must be set": {Region: "eu-north-1", SecretKey: "hunter2"},
	} {
		_, err := webhook.NewAWSIdentity(c)
		require.ErrorAs(t, err, new(*core.ConfigError))
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "hunter2")
	}
	for url, want := range map[string]string{
		"https://abc.lambda-url.eu-north-1.on.aws/": "eu-north-1", "https://abc.lambda-url.eu-north-1.on.aws.example/": "", "https://a.example": "",
		"https://lambda-url.a.on.aws": "", "%": "", "https://abc.lambda-url.a.b.on.aws/": "",
	} {
		assert.Equal(t, want, webhook.RegionOf(url), url)
	}
}
