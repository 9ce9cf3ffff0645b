package examples_test

import (
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// issuer signs tokens with the one key that it publishes.
type issuer struct {
	*httptest.Server

	key *rsa.PrivateKey
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	i := &issuer{key: key}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]any{"keys": []map[string]string{{
			"kty": "RSA", "kid": "k", "alg": "RS256", "use": "sig",
			"n": encode(key.N.Bytes()), "e": encode(big.NewInt(int64(key.E)).Bytes()),
		}}})
	}))
	t.Cleanup(i.Close)
	return i
}

var encode = base64.RawURLEncoding.EncodeToString

// unsigned is a token without its signature.
func unsigned(t *testing.T, alg string, claims map[string]any) string {
	t.Helper()
	head, err := json.Marshal(map[string]string{"alg": alg, "kid": "k", "typ": "JWT"})
	require.NoError(t, err)
	body, err := json.Marshal(claims)
	require.NoError(t, err)
	return encode(head) + "." + encode(body)
}

// signed is a token signed by RS256, as the issuer's are if the key is its.
func signed(t *testing.T, key *rsa.PrivateKey, claims map[string]any) string {
	t.Helper()
	text := unsigned(t, "RS256", claims)
	sum := sha256.Sum256([]byte(text))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	require.NoError(t, err)
	return text + "." + encode(signature)
}

// confused is a token signed by HMAC, with the public key as the secret: what a verifier takes that lets the token choose
// the algorithm.
func (i *issuer) confused(t *testing.T, claims map[string]any) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(&i.key.PublicKey)
	require.NoError(t, err)
	text := unsigned(t, "HS256", claims)
	mac := hmac.New(sha256.New, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	mac.Write([]byte(text))
	return text + "." + encode(mac.Sum(nil))
}

// The staged function lets a tick in that carries a token of its issuer, for its audience and one of its callers. Each other
// token is off in one point, and is let in by no other.
func TestTheStagedFunctionVerifiesItsCallers(t *testing.T) {
	t.Parallel()
	i := newIssuer(t)
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	require.NoError(t, err)
	s := start(t, "Duly", "DULY_OIDC_ISSUER=https://issuer.example", "DULY_OIDC_KEYS="+i.URL, "DULY_AUDIENCE=https://duly.example",
		"DULY_CALLER=push@p.iam.gserviceaccount.com, tick@p.iam.gserviceaccount.com")
	claims := map[string]any{
		"iss": "https://issuer.example", "aud": "https://duly.example", "sub": "1", "email": "tick@p.iam.gserviceaccount.com",
		"email_verified": true, "iat": time.Now().Unix(), "exp": time.Now().Add(time.Hour).Unix(),
	}
	with := func(name string, value any) string {
		other := maps.Clone(claims)
		other[name] = value
		return signed(t, i.key, other)
	}
	good := signed(t, i.key, claims)
	for name, c := range map[string]struct {
		want   int
		header string
	}{
		"the caller":                  {200, "Bearer " + good},
		"the other caller":            {200, "Bearer " + with("email", "push@p.iam.gserviceaccount.com")},
		"no token":                    {401, ""},
		"an empty token":              {401, "Bearer "},
		"the API's token":             {401, "Bearer right"},
		"no JWT":                      {401, "Bearer a.b.c"},
		"another scheme":              {401, "Basic " + good},
		"another audience":            {401, "Bearer " + with("aud", "https://other.example")},
		"another account":             {401, "Bearer " + with("email", "eve@p.iam.gserviceaccount.com")},
		"no account":                  {401, "Bearer " + with("email", "")},
		"an account not verified":     {401, "Bearer " + with("email_verified", false)},
		"another issuer":              {401, "Bearer " + with("iss", "https://accounts.google.com")},
		"expired":                     {401, "Bearer " + with("exp", time.Now().Add(-time.Minute).Unix())},
		"a key that is not published": {401, "Bearer " + signed(t, stranger, claims)},
		"HS256 by the public key":     {401, "Bearer " + i.confused(t, claims)},
		"no algorithm":                {401, "Bearer " + unsigned(t, "none", claims) + "."},
		"a signature cut off":         {401, "Bearer " + good[:len(good)-8]},
	} {
		headers := []string{"X-CloudScheduler", "true"}
		if c.header != "" {
			headers = append(headers, "Authorization", c.header)
		}
		status, body, err := s.post("/", "", headers...)
		require.NoError(t, err, name)
		assert.Equal(t, c.want, status, "%s: %s", name, body)
	}
}

// A function that would let everybody in, or check tokens by another issuer's keys, does not start.
func TestTheStagedFunctionNeedsToKnowItsCallers(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it stages the function and builds it as Google does")
	}
	program, err := built()
	require.NoError(t, err)
	for _, c := range []struct {
		want string
		env  []string
	}{
		{"set DULY_AUDIENCE and DULY_CALLER", nil},
		{"set DULY_AUDIENCE and DULY_CALLER", []string{"DULY_AUDIENCE=https://duly.example", "DULY_CALLER= , "}},
		{"set DULY_AUDIENCE and DULY_CALLER", []string{"DULY_CALLER=tick@p.iam.gserviceaccount.com"}},
		{"set DULY_OIDC_ISSUER and DULY_OIDC_KEYS together", []string{
			"DULY_AUDIENCE=https://duly.example", "DULY_CALLER=tick@p.iam.gserviceaccount.com", "DULY_OIDC_ISSUER=https://issuer.example",
		}},
	} {
		cmd := exec.CommandContext(t.Context(), program)
		cmd.Env = c.env
		out, err := cmd.CombinedOutput()
		require.Error(t, err)
		assert.Contains(t, string(out), c.want)
	}
}
