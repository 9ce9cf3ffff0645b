package aws_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/internal/aws"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The example of the IAM User Guide, "Create a signed AWS API request".
func TestSign(t *testing.T) {
	t.Parallel()
	s := aws.Signer{AccessKey: "AKIDEXAMPLE", SecretKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", Region: "us-east-1", Service: "iam"}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08", http.NoBody)
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	s.Sign(r, nil, time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC))
	assert.Equal(t, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, SignedHeaders=content-type;host;x-amz-date, "+
		"Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7", r.Header.Get("Authorization"))
}

// The case get-header-value-trim of the test suite of Signature Version 4: spaces within a value count as one.
func TestSignCollapsesSpaces(t *testing.T) {
	t.Parallel()
	s := aws.Signer{AccessKey: "AKIDEXAMPLE", SecretKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", Region: "us-east-1", Service: "service"}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://example.amazonaws.com/", http.NoBody)
	require.NoError(t, err)
	r.Header.Set("My-Header1", " value1")
	r.Header.Set("My-Header2", ` "a   b   c"`)
	s.Sign(r, nil, time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC))
	assert.Equal(t, "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, SignedHeaders=host;my-header1;my-header2;x-amz-date, "+
		"Signature=acc3ed3afb60bb290fc8d2dd0098b9911fcaa05412b367055dee359757a9c736", r.Header.Get("Authorization"))
}

// A path that is escaped is escaped once more in what is signed, but for S3. The first signature is that of botocore for the same request.
func TestSignEscapesThePathTwice(t *testing.T) {
	t.Parallel()
	signature := func(service, path string) string {
		s := aws.Signer{AccessKey: "AKIDEXAMPLE", SecretKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", Region: "us-east-1", Service: service}
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://example.lambda-url.us-east-1.on.aws"+path, http.NoBody)
		require.NoError(t, err)
		s.Sign(r, []byte("{}"), time.Date(2015, 8, 30, 12, 36, 0, 0, time.UTC))
		_, got, _ := strings.Cut(r.Header.Get("Authorization"), "Signature=")
		return got
	}
	assert.Equal(t, "516a25dcb24c1aa3be7af583aa62aca66a7db3419dbb34ef4b6388e3e056fcf0", signature("lambda", "/a%20b/c~d"))
	assert.Equal(t, "2abca74d96c60d5a5f571a97e78bfdcbc12bb789cba68849f7803a58fc764cb8", signature("s3", "/a%20b/c~d"))
}

// The example of the S3 API Reference, "Authenticating Requests: Using Query Parameters".
func TestPresign(t *testing.T) {
	t.Parallel()
	s := aws.Signer{AccessKey: "AKIAIOSFODNN7EXAMPLE", SecretKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", Region: "us-east-1", Service: "s3"}
	u, err := url.Parse("https://examplebucket.s3.amazonaws.com/test.txt")
	require.NoError(t, err)
	s.Presign(http.MethodGet, u, "UNSIGNED-PAYLOAD", 24*time.Hour, time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC))
	assert.Equal(t, "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404", u.Query().Get("X-Amz-Signature"))
	assert.Equal(t, "86400", u.Query().Get("X-Amz-Expires"))
}

func TestElastiCacheToken(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 23, 2, 0, 0, 0, time.UTC)
	s := aws.Signer{AccessKey: "AKIDEXAMPLE", SecretKey: "secret", SessionToken: "a/b+c=", Region: "eu-north-1"}
	token, err := s.ElastiCacheToken("replicationgroup:my-group", "duly", now)
	require.NoError(t, err)
	u, err := url.Parse("http://" + token)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(token, "my-group/?Action=connect&User=duly&X-Amz-Algorithm=AWS4-HMAC-SHA256&"), token)
	for name, want := range map[string]string{
		"X-Amz-Credential": "AKIDEXAMPLE/20261123/eu-north-1/elasticache/aws4_request", "X-Amz-Expires": "900",
		"X-Amz-Security-Token": "a/b+c=", "X-Amz-SignedHeaders": "host", "ResourceType": "",
	} {
		assert.Equal(t, want, u.Query().Get(name), name)
	}
	token, err = s.ElastiCacheToken("serverlesscache:mine", "duly", now)
	require.NoError(t, err)
	assert.Contains(t, token, "mine/?Action=connect&ResourceType=ServerlessCache&User=duly&")
	for _, wrong := range []string{"", "my-group", "replicationgroup:", "cluster:x"} {
		_, err := s.ElastiCacheToken(wrong, "duly", now)
		require.ErrorContains(t, err, "must be replicationgroup:NAME or serverlesscache:NAME")
	}
}

func TestSecrets(t *testing.T) {
	t.Parallel()
	answers := map[string]func(w http.ResponseWriter){
		`{"SecretId":"duly/redis"}`: func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, `{"Name":"duly/redis","SecretString":"hunter2"}`)
		},
		`{"SecretId":"binary"}`: func(w http.ResponseWriter) { _, _ = io.WriteString(w, `{"SecretBinary":"aHVudGVyMg=="}`) },
		`{"SecretId":"page"}`:   func(w http.ResponseWriter) { _, _ = io.WriteString(w, `<hunter2>`) },
		`{"SecretId":"denied"}`: func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"__type":"com.amazonaws#AccessDeniedException","Message":"User x is not authorized"}`)
		},
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		assert.Equal(t, "secretsmanager.GetSecretValue", r.Header.Get("X-Amz-Target"))
		assert.Equal(t, "session", r.Header.Get("X-Amz-Security-Token"))
		assert.Contains(t, r.Header.Get("Authorization"), "/eu-north-1/secretsmanager/aws4_request, "+
			"SignedHeaders=content-type;host;x-amz-date;x-amz-security-token;x-amz-target, ")
		answers[string(body)](w)
	}))
	t.Cleanup(server.Close)
	s := aws.Secrets{
		Signer:   aws.Signer{AccessKey: "AKIDEXAMPLE", SecretKey: "secret", SessionToken: "session", Region: "eu-north-1"},
		Endpoint: server.URL, Client: server.Client(), Now: time.Now,
	}
	value, err := s.Value(t.Context(), "duly/redis")
	require.NoError(t, err)
	assert.Equal(t, "hunter2", value)
	for id, want := range map[string]string{
		"binary": `read the secret "binary": it has no text`, "page": "answered no JSON",
		"denied": `read the secret "denied": Secrets Manager answered 400 AccessDeniedException User x is not authorized`,
	} {
		_, err := s.Value(t.Context(), id)
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), "hunter2")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	_, err = s.Value(ended, "duly/redis")
	require.ErrorIs(t, err, context.Canceled)
}
