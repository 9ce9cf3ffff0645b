package oidc_test

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/adapters/http/oidc"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// issuer is an identity provider with one key.
type issuer struct {
	*httptest.Server

	key     *rsa.PrivateKey
	fetches atomic.Int64
	hangs   atomic.Pointer[chan struct{}] // while set, a fetch waits for it
}

// movedClock stands still until a test moves it.
type movedClock struct{ now atomic.Int64 }

func (c *movedClock) Now() time.Time { return time.Unix(c.now.Load(), 0) }

// begin is when the tests' clocks stand.
const begin = 1_800_000_000

func newClock() *movedClock {
	c := &movedClock{}
	c.now.Store(begin)
	return c
}

// verify is what a verifier says of a token.
func verify(t *testing.T, v *oidc.Verifier, token string) error {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	r.Header.Set("Authorization", "Bearer "+token)
	_, err := v.Verify(r)
	return err
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	i := &issuer{key: key}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		i.fetches.Add(1)
		if wait := i.hangs.Load(); wait != nil {
			<-*wait
		}
		encode := base64.RawURLEncoding.EncodeToString
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []map[string]string{{
			"kty": "RSA", "kid": "k", "alg": "RS256", "use": "sig",
			"n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
		}}})
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) token(t *testing.T, alg string, claims map[string]any) string {
	t.Helper()
	part := func(v any) string {
		data, err := json.Marshal(v)
		require.NoError(t, err)
		return base64.RawURLEncoding.EncodeToString(data)
	}
	text := part(map[string]string{"alg": alg, "kid": "k"}) + "." + part(claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, i.key, crypto.SHA256, sum[:])
	require.NoError(t, err)
	return text + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// good are the claims of a token that is.
func good() map[string]any {
	return map[string]any{
		"iss": "https://issuer.example", "aud": "https://duly.example", "email": "cron@project.example", "email_verified": true,
		"sub": "1", "iat": begin, "exp": begin + 3600,
	}
}

// of is a verifier of an issuer's tokens.
func (i *issuer) of(t *testing.T, now func() time.Time, timeout time.Duration) *oidc.Verifier {
	t.Helper()
	v, err := oidc.New(oidc.Config{
		Issuer: "https://issuer.example", Keys: i.URL, Audience: "https://duly.example", Emails: []string{"cron@project.example"},
		Now: now, Timeout: timeout,
	})
	require.NoError(t, err)
	return v
}

// A fetch of the keys that hangs is given up, and nobody has to wait for it once the next one is well.
func TestAFetchOfKeysThatHangs(t *testing.T) {
	t.Parallel()
	i, clock := newIssuer(t), newClock()
	release := make(chan struct{})
	defer close(release)
	i.hangs.Store(&release)
	v, token := i.of(t, clock.Now, 500*time.Millisecond), i.token(t, "RS256", good())
	require.ErrorContains(t, verify(t, v, token), "fetching keys")
	i.hangs.Store(nil)
	clock.now.Add(10)
	require.NoError(t, verify(t, v, token))

	i.hangs.Store(&release)
	other := newIssuer(t)
	clock.now.Add(10)
	require.ErrorContains(t, verify(t, v, other.token(t, "RS256", good())), "fetching keys")
	require.NoError(t, verify(t, v, token), "the keys that are known are still good")
}

// Whoever has no credential cannot make duly ask the issuer again and again.
func TestKeysAreFetchedSeldom(t *testing.T) {
	t.Parallel()
	i, other, clock := newIssuer(t), newIssuer(t), newClock()
	v := i.of(t, clock.Now, 0)
	for _, claims := range []map[string]any{
		{"iss": "https://evil.example"}, {"aud": "https://other.example"}, {"exp": begin - 3600}, {"email": "eve@project.example"},
	} {
		bad := good()
		maps.Copy(bad, claims)
		require.Error(t, verify(t, v, i.token(t, "RS256", bad)))
	}
	assert.EqualValues(t, 0, i.fetches.Load(), "what is refused anyway needs no keys")
	foreign := other.token(t, "RS256", good())
	for range 20 {
		require.Error(t, verify(t, v, foreign))
	}
	assert.EqualValues(t, 1, i.fetches.Load())
	require.NoError(t, verify(t, v, i.token(t, "RS256", good())))
	clock.now.Add(10)
	for range 20 {
		require.Error(t, verify(t, v, foreign))
	}
	assert.EqualValues(t, 2, i.fetches.Load(), "a new key is found later")
}

func TestOIDC(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	v, err := oidc.New(oidc.Config{
		Issuer: "https://issuer.example", Keys: i.URL, Audience: "https://duly.example", Emails: []string{"cron@project.example"},
		Grant: httpadapter.Grant{Scopes: []httpadapter.Scope{httpadapter.ScopeTrigger}},
	})
	require.NoError(t, err)
	s, err := core.New(memstore.New(memstore.Config{Partitions: 8}), core.Config{})
	require.NoError(t, err)
	handler := httpadapter.New(s, httpadapter.Config{Tokens: []string{"root"}, Verifiers: []httpadapter.Verifier{v}})
	call := func(token, method, path, body string) int {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		handler.ServeHTTP(w, r)
		return w.Code
	}
	claims := func(change func(c map[string]any)) map[string]any {
		c := map[string]any{
			"iss": "https://issuer.example", "aud": "https://duly.example", "email": "cron@project.example", "email_verified": true,
			"sub": "1", "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
		}
		change(c)
		return c
	}
	for name, c := range map[string]struct {
		want   int
		alg    string
		change func(c map[string]any)
	}{
		"good":           {200, "RS256", func(map[string]any) {}},
		"audience":       {401, "RS256", func(c map[string]any) { c["aud"] = "https://other.example" }},
		"another e-mail": {401, "RS256", func(c map[string]any) { c["email"] = "eve@project.example" }},
		"no e-mail":      {401, "RS256", func(c map[string]any) { delete(c, "email") }},
		"not verified":   {401, "RS256", func(c map[string]any) { c["email_verified"] = false }},
		"expired":        {401, "RS256", func(c map[string]any) { c["exp"] = time.Now().Add(-time.Hour).Unix() }},
		"issuer":         {401, "RS256", func(c map[string]any) { c["iss"] = "https://evil.example" }},
		"no algorithm":   {401, "none", func(map[string]any) {}},
		"other":          {401, "HS256", func(map[string]any) {}},
	} {
		assert.Equal(t, c.want, call(i.token(t, c.alg, claims(c.change)), http.MethodPost, "/v1/run-due", `{"all":true}`), name)
	}
	assert.Equal(t, 403, call(i.token(t, "RS256", claims(func(map[string]any) {})), http.MethodGet, "/v1/stats", ""), "its scope")
	assert.Equal(t, 200, call("root", http.MethodGet, "/v1/stats", ""), "other tokens are not its business")
	assert.Equal(t, 401, call("a.b.c", http.MethodGet, "/v1/stats", ""))
	_, err = oidc.New(oidc.Config{Audience: "x"})
	assert.Error(t, err)
}

// job are the claims of a job of GitHub Actions.
func job(id, ref string) map[string]any {
	return map[string]any{
		"iss": oidc.GitHubIssuer, "aud": "https://duly.example", "sub": "repo:acme/app:ref:" + ref, "repository": "acme/app", "ref": ref,
		"iat": begin, "exp": begin + 300, "jti": id,
	}
}

// Jobs of GitHub Actions have no e-mail: their repository and ref are looked at. A token is good for one request that changes something, in
// whichever process, and for as many that read as one likes.
func TestJobsOfGitHub(t *testing.T) {
	t.Parallel()
	i, clock := newIssuer(t), newClock()
	v, err := oidc.New(oidc.Config{
		Issuer: oidc.GitHubIssuer, Keys: i.URL, Audience: "https://duly.example", Now: clock.Now,
		Claims: map[string][]string{"repository": {"acme/app", "acme/other"}, "ref": {"refs/heads/main"}},
	})
	require.NoError(t, err)
	good := job("1", "refs/heads/main")
	require.NoError(t, verify(t, v, i.token(t, "RS256", good)))
	for name, value := range map[string]any{"repository": "acme/apps", "ref": "refs/pull/1/merge"} {
		bad := maps.Clone(good)
		bad[name] = value
		require.ErrorContains(t, verify(t, v, i.token(t, "RS256", bad)), `the claim "`+name+`" of the account is not allowed`)
		delete(bad, name)
		require.Error(t, verify(t, v, i.token(t, "RS256", bad)))
		bad[name] = []string{"acme/app"}
		require.Error(t, verify(t, v, i.token(t, "RS256", bad)))
	}
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	require.NoError(t, err)
	var all [2]http.Handler
	for n := range all {
		all[n] = httpadapter.New(s, httpadapter.Config{Verifiers: []httpadapter.Verifier{v}})
	}
	send := func(h http.Handler, id, method, path, body string) int {
		r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+i.token(t, "RS256", job(id, "refs/heads/main")))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	const task, other = `{"agent_id":"a","kind":"k"}`, `{"agent_id":"b","kind":"k"}`
	assert.Equal(t, 201, send(all[0], "1", "POST", "/v1/tasks", task))
	assert.Equal(t, 208, send(all[1], "1", "POST", "/v1/tasks", task))
	assert.Equal(t, 409, send(all[1], "1", "POST", "/v1/tasks", other), "a token is for one request")
	assert.Equal(t, 201, send(all[1], "2", "POST", "/v1/tasks", other))
	for range 3 {
		assert.Equal(t, 200, send(all[0], "1", "GET", "/v1/stats", ""))
	}
	_, err = oidc.New(oidc.Config{Audience: "x", Claims: map[string][]string{"repository": nil}})
	assert.Error(t, err)
}
