// Package oidc accepts requests to adapters/http that contain an OpenID Connect token, as those of Google's Cloud Scheduler
// and Pub/Sub do, and those of jobs of GitHub Actions. It is a package of its own so that only programs that need it link what it takes.
package oidc

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
)

// Google's issuer and keys, which sign the tokens of Cloud Scheduler and Pub/Sub push.
// Both are fixed by Google, and in its discovery document.
const (
	GoogleIssuer = "https://accounts.google.com"
	GoogleKeys   = "https://www.googleapis.com/oauth2/v3/certs"
)

// GitHub's issuer and keys, which sign the tokens of jobs of GitHub Actions. These have no e-mail: allow some values of the claim "repository", and
// perhaps "ref" or "environment", by Config.Claims.
const (
	GitHubIssuer = "https://token.actions.githubusercontent.com"
	GitHubKeys   = "https://token.actions.githubusercontent.com/.well-known/jwks"
)

// Config accepts bearer tokens that an issuer has signed for this service and one of some accounts: the audience, the
// e-mail and that the issuer has verified it, and the other claims that are named. The right audience alone proves nothing, as any account
// can request it: Emails or Claims are required. A request is accepted if all of it fits; the grant is then the same for each account.
//
// A token that has an id ("jti") is good for one request that changes something, which is performed once: see [httpadapter.Sender]. It may
// be sent with any number of requests that only read.
type Config struct {
	Issuer   string // GoogleIssuer if empty
	Keys     string // where the issuer publishes its keys: GoogleKeys if empty
	Audience string
	Emails   []string
	Claims   map[string][]string // by name, what each may be: strings all of them
	// Timeout is how long a fetch of the keys may take: DefaultTimeout if zero. A request that waits for unknown keys waits
	// that long at most; known keys stay good.
	Timeout time.Duration
	// Now is the time that tokens are checked by: the machine's if nil.
	Now func() time.Time
	httpadapter.Grant
}

// DefaultTimeout is the default of Config.Timeout.
const DefaultTimeout = 5 * time.Second

// pause is the least time between two fetches of the keys: a client can send tokens of unknown keys without any credential, and
// must not cost the issuer more than that. A new key may be refused for that long.
const pause = 10 * time.Second

// Verifier is an httpadapter.Verifier. It is safe for concurrent use.
// It keeps the issuer's keys, so that most requests need no call.
type Verifier struct {
	config   Config
	unsigned *oidc.IDTokenVerifier // looks at what a token claims, and not whether that is true
	signed   *oidc.IDTokenVerifier
}

var _ httpadapter.Sender = (*Verifier)(nil)

// New makes a verifier. It fails without an audience or accounts, as it would let everybody in.
func New(c Config) (*Verifier, error) {
	if c.Audience == "" || len(c.Emails) == 0 && len(c.Claims) == 0 {
		return nil, errors.New("oidc: Audience, and Emails or Claims, are required")
	}
	for name, values := range c.Claims {
		if len(values) == 0 {
			return nil, fmt.Errorf("oidc: Claims has no value of %q that is allowed", name)
		}
	}
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // it is the issuer's time too; no task depends on it
	}
	// Everything that the library fetches goes through this client, and so through the pause.
	client := &http.Client{Timeout: cmp.Or(c.Timeout, DefaultTimeout), Transport: &paced{now: c.Now}}
	bag := oidc.ClientContext(context.Background(), client) //nolint:forbidigo // it only contains the client
	keys := oidc.NewRemoteKeySet(bag, cmp.Or(c.Keys, GoogleKeys))
	checks := oidc.Config{ClientID: c.Audience, Now: c.Now}
	v := &Verifier{config: c, signed: oidc.NewVerifier(cmp.Or(c.Issuer, GoogleIssuer), keys, &checks)}
	unsigned := checks
	// The same checks but for the signature: who sends nonsense costs the issuer no fetch.
	unsigned.InsecureSkipSignatureCheck = true
	v.unsigned = oidc.NewVerifier(cmp.Or(c.Issuer, GoogleIssuer), nil, &unsigned)
	return v, nil
}

// paced lets a fetch through after a pause only.
// It counts all fetches of a Verifier together.
type paced struct {
	now func() time.Time

	mu   sync.Mutex
	last time.Time
}

// RoundTrip fetches, or fails at once.
func (p *paced) RoundTrip(r *http.Request) (*http.Response, error) {
	// A redirect within a fetch is followed at once: it belongs to the same fetch.
	if r.Response == nil && !p.again() { // it follows no redirect
		return nil, errors.New("the signing keys were refreshed too recently: try again in a few seconds")
	}
	return http.DefaultTransport.RoundTrip(r)
}

// again reports whether the pause is over, and begins the next one if so.
func (p *paced) again() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	if !p.last.IsZero() && now.Sub(p.last).Abs() < pause {
		return false
	}
	p.last = now
	return true
}

// Verify returns what the token of a request grants.
func (v *Verifier) Verify(r *http.Request) (*httpadapter.Grant, error) {
	token, ok := httpadapter.Bearer(r)
	// A bearer token that is no JWT is for another verifier.
	if !ok || strings.Count(token, ".") != 2 {
		return nil, httpadapter.ErrNoCredential
	}
	if err := v.check(r.Context(), v.unsigned, token); err != nil { // which needs no keys
		return nil, err
	}
	if err := v.check(r.Context(), v.signed, token); err != nil {
		return nil, err
	}
	return &v.config.Grant, nil
}

// check refuses a token that is not for this service and one of its accounts.
func (v *Verifier) check(ctx context.Context, by *oidc.IDTokenVerifier, token string) error {
	verified, err := by.Verify(ctx, token)
	if err != nil {
		return fmt.Errorf("oidc: %w", err)
	}
	// Only these claims are of interest beside those that the library checks.
	var claims map[string]any
	if err := verified.Claims(&claims); err != nil {
		return fmt.Errorf("oidc: %w", err)
	}
	email, _ := claims["email"].(string)
	if len(v.config.Emails) > 0 && (claims["email_verified"] != true || !slices.Contains(v.config.Emails, email)) {
		return errors.New("oidc: the account is not allowed")
	}
	for name, values := range v.config.Claims {
		if value, ok := claims[name].(string); !ok || !slices.Contains(values, value) {
			return fmt.Errorf("oidc: the claim %q of the account is not allowed", name)
		}
	}
	return nil
}

// Message is known by the id of its token, if that has one.
func (*Verifier) Message(r *http.Request) httpadapter.Message {
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return httpadapter.Message{}
	}
	token, _ := httpadapter.Bearer(r)
	var claims struct {
		ID      string  `json:"jti"`
		Expires float64 `json:"exp"`
	}
	// It was verified: what cannot be read has no id.
	if parts := strings.Split(token, "."); len(parts) == 3 {
		if data, err := base64.RawURLEncoding.DecodeString(parts[1]); err == nil {
			_ = json.Unmarshal(data, &claims)
		}
	}
	return httpadapter.Message{ID: claims.ID, Until: time.Unix(int64(claims.Expires), 0)}
}
