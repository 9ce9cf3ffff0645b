package http

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
)

// Google's issuer and keys, which sign the tokens of Cloud Scheduler and Pub/Sub push.
const (
	GoogleIssuer = "https://accounts.google.com"
	GoogleKeys   = "https://www.googleapis.com/oauth2/v3/certs"
)

// OIDC accepts bearer tokens that an issuer has signed for this service and one of some accounts: the audience, the e-mail
// and that the issuer has verified it, all three. The right audience alone proves nothing, as anybody can ask for it.
type OIDC struct {
	Issuer   string // GoogleIssuer if empty
	Keys     string // where the issuer publishes its keys: GoogleKeys if empty
	Audience string
	Emails   []string
	Grant
}

type identity struct {
	OIDC

	once     sync.Once
	verifier *oidc.IDTokenVerifier
}

func newIdentity(o *OIDC) *identity {
	if o.Audience == "" || len(o.Emails) == 0 {
		panic("httpadapter: OIDC needs an Audience and Emails")
	}
	if err := o.check("OIDC"); err != nil {
		panic(err.Error())
	}
	return &identity{OIDC: *o}
}

// open makes the verifier, whose keys live as long as the handler does.
func (v *identity) open(ctx context.Context) {
	keys := oidc.NewRemoteKeySet(context.WithoutCancel(ctx), cmp.Or(v.Keys, GoogleKeys))
	v.verifier = oidc.NewVerifier(cmp.Or(v.Issuer, GoogleIssuer), keys, &oidc.Config{ClientID: v.Audience})
}

func (v *identity) verify(r *http.Request) (*Grant, error) {
	token, ok := bearer(r)
	if !ok || strings.Count(token, ".") != 2 {
		return nil, errNotMine
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
	if !claims.Verified || !slices.Contains(v.Emails, claims.Email) {
		return nil, errors.New("oidc: the account is not one that is allowed")
	}
	return &v.Grant, nil
}
