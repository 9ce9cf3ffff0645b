// Package oidc accepts requests to adapters/http that carry an OpenID Connect token, as those of Google's Cloud Scheduler
// and Pub/Sub do. It is a package of its own so that only programs that need it link what it takes.
package oidc

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/coreos/go-oidc/v3/oidc"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
)

// Google's issuer and keys, which sign the tokens of Cloud Scheduler and Pub/Sub push.
const (
	GoogleIssuer = "https://accounts.google.com"
	GoogleKeys   = "https://www.googleapis.com/oauth2/v3/certs"
)

// Config accepts bearer tokens that an issuer has signed for this service and one of some accounts: the audience, the
// e-mail and that the issuer has verified it, all three. The right audience alone proves nothing, as anybody can ask for it.
type Config struct {
	Issuer   string // GoogleIssuer if empty
	Keys     string // where the issuer publishes its keys: GoogleKeys if empty
	Audience string
	Emails   []string
	httpadapter.Grant
}

// Verifier is an httpadapter.Verifier. It is safe for concurrent use.
type Verifier struct {
	config Config

	once     sync.Once
	verifier *oidc.IDTokenVerifier
}

var _ httpadapter.Verifier = (*Verifier)(nil)

// New makes a verifier. It fails without an audience or accounts, as it would let everybody in.
func New(c Config) (*Verifier, error) {
	if c.Audience == "" || len(c.Emails) == 0 {
		return nil, errors.New("oidc: Audience and Emails are required")
	}
	return &Verifier{config: c}, nil
}

// open makes the verifier of tokens, whose keys live as long as it does.
func (v *Verifier) open(ctx context.Context) {
	keys := oidc.NewRemoteKeySet(context.WithoutCancel(ctx), cmp.Or(v.config.Keys, GoogleKeys))
	v.verifier = oidc.NewVerifier(cmp.Or(v.config.Issuer, GoogleIssuer), keys, &oidc.Config{ClientID: v.config.Audience})
}

// Verify returns what the token of a request grants.
func (v *Verifier) Verify(r *http.Request) (*httpadapter.Grant, error) {
	token, ok := httpadapter.Bearer(r)
	if !ok || strings.Count(token, ".") != 2 {
		return nil, httpadapter.ErrNoCredential
	}
	v.once.Do(func() { v.open(r.Context()) })
	verified, err := v.verifier.Verify(r.Context(), token)
	if err != nil {
		return nil, fmt.Errorf("oidc: %w", err)
	}
	var claims struct {
		Email    string `json:"email"`
		Verified bool   `json:"email_verified"`
	}
	if err := verified.Claims(&claims); err != nil {
		return nil, fmt.Errorf("oidc: %w", err)
	}
	if !claims.Verified || !slices.Contains(v.config.Emails, claims.Email) {
		return nil, errors.New("oidc: the account is not one that is allowed")
	}
	return &v.config.Grant, nil
}
