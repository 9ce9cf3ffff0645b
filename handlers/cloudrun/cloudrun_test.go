package cloudrun_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/handlers/cloudrun"
	"github.com/seed-6f6f2c11/duly/handlers/webhook"
)

// An account gets a token for the service at Google's server of tokens, with an assertion that names the audience.
func account(t *testing.T, tokens http.HandlerFunc) {
	t.Helper()
	server := httptest.NewServer(tokens)
	t.Cleanup(server.Close)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	data, err := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "duly@acme.iam.gserviceaccount.com", "private_key_id": "1", "token_uri": server.URL + "/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
	})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "account.json")
	require.NoError(t, os.WriteFile(file, data, 0o600))
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
}

// token is one of OpenID Connect that lasts an hour.
func token() string {
	claims, _ := json.Marshal(map[string]int64{"exp": time.Now().Add(time.Hour).Unix()})
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"RS256"}`)) + "." + part(claims) + "." + part([]byte("signed"))
}

// A service gets a token that is made for it, once for several tasks.
func TestAServiceKnowsWhoCalls(t *testing.T) {
	is := token()
	var asked atomic.Int32
	account(t, func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		body, _ := io.ReadAll(r.Body)
		form, err := url.ParseQuery(string(body))
		assert.NoError(t, err)
		claims, err := base64.RawURLEncoding.DecodeString(strings.Split(form.Get("assertion"), ".")[1])
		assert.NoError(t, err)
		assert.Contains(t, string(claims), `"target_audience":"https://digest-abc.a.run.app"`)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id_token":"`+is+`"}`)
	})
	var proofs []string
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { proofs = append(proofs, r.Header.Get("Authorization")) }))
	t.Cleanup(service.Close)
	id, err := cloudrun.New("https://digest-abc.a.run.app")
	require.NoError(t, err)
	h, err := webhook.New(webhook.Config{URL: service.URL, AllowLoopback: true, Identity: id})
	require.NoError(t, err)
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	require.NoError(t, err)
	core.Handle(s, "x", h.Run)
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "ada", ID: "1", Kind: "x"})
	require.NoError(t, err)
	_, err = s.RunDue(t.Context(), core.Scope{})
	require.NoError(t, err)
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "ada", ID: "2", Kind: "x"})
	require.NoError(t, err)
	_, err = s.RunDue(t.Context(), core.Scope{})
	require.NoError(t, err)
	assert.Equal(t, []string{"Bearer " + is, "Bearer " + is}, proofs)
	assert.EqualValues(t, 1, asked.Load())
}

// A run whose time is over does not wait for the server of tokens.
func TestATokenIsNotWaitedForTooLong(t *testing.T) {
	let := make(chan struct{})
	account(t, func(http.ResponseWriter, *http.Request) { <-let })
	t.Cleanup(func() { close(let) }) // before the server, which waits for its requests
	id, err := cloudrun.New("https://digest-abc.a.run.app")
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://digest-abc.a.run.app", http.NoBody)
	require.NoError(t, err)
	assert.ErrorIs(t, id.Prove(r, nil), context.Canceled)
	_, err = cloudrun.New(" ")
	assert.ErrorAs(t, err, new(*core.ConfigError))
}
