// Package qstash accepts requests to adapters/http that Upstash's QStash sends and signs. It is a package of its own so that only programs
// that need it link what it takes.
package qstash

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
)

// Headers of a delivery. The first is a JWT; the second names the message at each attempt to deliver it, and is not signed.
const (
	signature = "Upstash-Signature"
	messageID = "Upstash-Message-Id"
)

// issuer signs all of them.
const issuer = "Upstash"

// Bounds: of a signature, of a key, and of how far the clocks may be apart.
const (
	mostSignature = 4096
	leastKey      = 16
	leeway        = 10 * time.Second
)

// Config accepts the requests that QStash signs with one of two keys for a URL of this service. Each is performed once: see
// [httpadapter.Sender]. An attempt to deliver a message again has an id and a signature of its own; the message id that is not signed makes the ids
// of its tasks, so that no attempt submits them again.
type Config struct {
	// Keys are the current and the next signing key, as QStash's console shows them.
	Keys []string
	// URL is the beginning of the URLs that messages are sent to, such as "https://duly.example": what the sender calls this service,
	// before any proxy rewrites it. The path and query of a request are appended.
	URL string
	// MaxBody is the largest body of a request, in bytes: httpadapter.DefaultMaxBody if zero.
	MaxBody int64
	// Now is the time that signatures are checked by: the machine's if nil.
	Now func() time.Time
	httpadapter.Grant
}

// Verifier is an [httpadapter.Sender]. It is safe for concurrent use.
type Verifier struct {
	config Config
	url    string // without a slash at its end
}

var _ httpadapter.Sender = (*Verifier)(nil)

// New makes a verifier. It fails without keys, with one that can be guessed, and without a URL: a signature for another service would be as
// good as one for this. No error shows a key.
func New(c Config) (*Verifier, error) {
	if len(c.Keys) == 0 {
		return nil, errors.New("qstash: Keys are required")
	}
	for i, key := range c.Keys {
		if len(key) < leastKey {
			return nil, fmt.Errorf("qstash: Keys must have at least %d characters; number %d has fewer", leastKey, i+1)
		}
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("qstash: URL must be the beginning of this service's URLs, such as https://duly.example")
	}
	if c.MaxBody == 0 {
		c.MaxBody = httpadapter.DefaultMaxBody
	}
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // it is the sender's time too; no task depends on it
	}
	return &Verifier{config: c, url: strings.TrimRight(c.URL, "/")}, nil
}

// claims are what a signature says.
type claims struct {
	jwt.Claims

	Body string `json:"body"` // the SHA-256 of the body, in base64url with or without padding
}

// parse reads a signature without trusting it. No other algorithm is good.
func parse(r *http.Request) (*jwt.JSONWebToken, error) {
	text := r.Header.Get(signature)
	if len(text) > mostSignature {
		return nil, errors.New("qstash: the signature is too long")
	}
	return jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.HS256})
}

// Verify returns what a signed request grants. It checks what costs nothing before it reads the body.
func (v *Verifier) Verify(r *http.Request) (*httpadapter.Grant, error) {
	if r.Header.Get(signature) == "" {
		return nil, httpadapter.ErrNoCredential
	}
	token, err := parse(r)
	if err != nil {
		return nil, fmt.Errorf("qstash: %w", err)
	}
	c, err := v.signed(token)
	if err != nil {
		return nil, err
	}
	if err := v.check(c, v.url+r.URL.RequestURI()); err != nil {
		return nil, fmt.Errorf("qstash: %w", err)
	}
	body, err := httpadapter.Body(r, v.config.MaxBody)
	if err != nil {
		return nil, fmt.Errorf("qstash: %w", err)
	}
	sum := sha256.Sum256(body)
	want, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(c.Body, "="))
	if err != nil || !hmac.Equal(sum[:], want) {
		return nil, errors.New("qstash: the body is not the one that was signed")
	}
	return &v.config.Grant, nil
}

// signed are the claims of a token that one of the keys has signed.
func (v *Verifier) signed(token *jwt.JSONWebToken) (*claims, error) {
	for _, key := range v.config.Keys {
		var c claims
		if token.Claims([]byte(key), &c) == nil {
			return &c, nil
		}
	}
	return nil, errors.New("qstash: no key has made the signature")
}

// check refuses claims of another sender, for another URL, or of another time. What has no end or no id could be played back.
func (v *Verifier) check(c *claims, target string) error {
	switch {
	case c.Expiry == nil:
		return errors.New("the signature has no exp")
	case c.ID == "":
		return errors.New("the signature has no jti")
	case c.Subject != target:
		return fmt.Errorf("the signature is for %q, and this is %q", c.Subject, target)
	}
	return c.ValidateWithLeeway(jwt.Expected{Issuer: issuer, Time: v.config.Now()}, leeway)
}

// Message identifies a request by the id of its signature, and its tasks by the message id.
func (*Verifier) Message(r *http.Request) httpadapter.Message {
	var c claims
	token, err := parse(r)
	if err != nil || token.UnsafeClaimsWithoutVerification(&c) != nil || c.Expiry == nil {
		return httpadapter.Message{} // it was verified: this cannot be
	}
	return httpadapter.Message{ID: c.ID, Key: r.Header.Get(messageID), Until: c.Expiry.Time().Add(leeway)}
}
