package hooks

// Schemes: how senders sign, and how they name a message.

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"

	"github.com/seed-6f6f2c11/duly/adapters/internal/signature"
	"github.com/seed-6f6f2c11/duly/core"
)

// Scheme is how a sender signs.
type Scheme string

// The schemes.
const (
	StandardWebhooks Scheme = "standard_webhooks" // OpenAI, Anthropic, Svix and others: the id and a time are signed
	GitHub           Scheme = "github"            // the body is signed; X-GitHub-Delivery names a message
	Stripe           Scheme = "stripe"            // the body and a time are signed; /id of the body names a message
	CloudEvents      Scheme = "cloudevents"       // the secret is a bearer token; source and id of the event name a message
	HMAC             Scheme = "hmac"              // the body is signed with HMAC-SHA256, as Plain says
)

// Plain is how a sender signs whose scheme has no name.
type Plain struct {
	Header string // that has the signature; X-Signature if empty
	Prefix string // of the signature, such as "sha256="
	Base64 bool   // and not hexadecimal digits
	// ID is a template of what names a message; the digest of its body if empty.
	ID string
}

// leastSecret is how long a secret must be, in bytes: shorter ones can be guessed.
const leastSecret = 16

// keys are the secrets as the sender signs with them. The error does not show them.
func (s Scheme) keys(secrets []string) (keys [][]byte, err error) {
	for _, secret := range secrets {
		key := []byte(secret)
		if s == StandardWebhooks {
			if key, err = base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_")); err != nil {
				return nil, errors.New("must be whsec_ and base64, as the sender shows it")
			}
		}
		if len(key) < leastSecret {
			return nil, errors.New("is too short: a secret of fewer than 16 bytes can be guessed; openssl rand -hex 32 makes one")
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// claim is what the headers of a request say of its signature.
func (h *hook) claim(header http.Header) (signature.Claim, error) {
	switch h.scheme {
	case StandardWebhooks:
		return signature.Standard(header)
	case Stripe:
		return stripe(header.Get("Stripe-Signature"))
	case CloudEvents:
		return token(header)
	case GitHub:
		return sum(header.Get("X-Hub-Signature-256"), "sha256=", hex.DecodeString)
	default:
		decode := hex.DecodeString
		if h.plain.Base64 {
			decode = base64.StdEncoding.DecodeString
		}
		return sum(header.Get(h.plain.Header), h.plain.Prefix, decode)
	}
}

// sum is the claim of a header that is one signature of the body.
func sum(text, prefix string, decode func(string) ([]byte, error)) (signature.Claim, error) {
	if text == "" {
		return signature.Claim{}, signature.ErrNone
	}
	text, fits := strings.CutPrefix(text, prefix)
	one, err := decode(text)
	if !fits || err != nil {
		return signature.Claim{}, signature.ErrMalformed
	}
	return signature.Claim{Sums: [][]byte{one}}, nil
}

// stripe is the claim of t=1492774577,v1=5257a8...,v1=...: one v1 for each secret that the sender has at the time. Other schemes, such as v0, are for
// tests and prove nothing.
func stripe(text string) (c signature.Claim, err error) {
	if text == "" {
		return c, signature.ErrNone
	}
	for field := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(field, "=")
		switch strings.TrimSpace(name) {
		case "t":
			if c.At, err = signature.Unix(value); err != nil || c.Head != "" {
				return c, signature.ErrMalformed
			}
			c.Head = value + "."
		case "v1":
			one, err := hex.DecodeString(value)
			if err != nil {
				return c, signature.ErrMalformed
			}
			c.Sums = append(c.Sums, one)
		}
	}
	if c.Head == "" || len(c.Sums) == 0 {
		return c, signature.ErrMalformed
	}
	return c, nil
}

// id names a message: the same at each delivery.
func (h *hook) id(m *message) (string, error) {
	if h.scheme == CloudEvents {
		return eventID(m.header), nil
	}
	if h.named != nil {
		return h.named.name(string(h.scheme)+".id", m)
	}
	digest := sha256.Sum256(m.body)
	return hex.EncodeToString(digest[:]), nil
}

// nameBy says what names a message of the hook.
func (h *hook) nameBy() (err error) {
	text := h.plain.ID
	switch h.scheme {
	case StandardWebhooks:
		text = "{header:Webhook-Id}"
	case GitHub:
		text = "{header:X-GitHub-Delivery}"
	case Stripe:
		text = "{/id}"
	case HMAC:
	case CloudEvents:
	default:
		return &core.ConfigError{Field: "Scheme", Value: h.scheme, Reason: "must be standard_webhooks, github, stripe, cloudevents or hmac"}
	}
	if text == "" {
		return nil
	}
	if h.named, err = parseTemplate(text); err == nil && h.named.fixed() {
		err = errors.New("must name a header or a pointer: the same text for each message would make all of them one")
	}
	if err != nil {
		return &core.ConfigError{Field: "Plain.ID", Value: text, Reason: err.Error()}
	}
	return nil
}
