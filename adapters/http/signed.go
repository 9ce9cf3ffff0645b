package http

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/seed-6f6f2c11/duly/adapters/internal/signature"
	"github.com/seed-6f6f2c11/duly/core"
)

// Signed requests: Standard Webhooks, received. A signature proves who sent a request, and its id that it is not
// replayed: both are needed, as anyone on the way can record one.

// Signed accepts requests that are signed as Standard Webhooks are: webhook-id, webhook-timestamp and webhook-signature
// over both and the body. A signature is good for five minutes. Its message is carried out once, over all processes and
// deliveries: see [Sender]. Its id is the idempotency key of the tasks that it submits, also when the message is forgotten. Ids have no dots, as
// these separate the signed parts.
type Signed struct {
	// Secrets are "whsec_" and base64, or base64 alone; several, so that they can be rotated.
	Secrets []string
	Grant
}

// leastKey is how long a key must be, in bytes.
const leastKey = 16

// signatures is the Verifier of signed requests.
type signatures struct {
	secrets [][]byte
	grant   *Grant
	clock   core.Clock
	most    int64 // bytes of a body
}

// newSignatures panics on secrets that can be guessed: as with
// tokens, that is a mistake in the program.
func newSignatures(s *Signed, clock core.Clock, most int64) *signatures {
	if err := s.Check(); err != nil {
		panic("httpadapter: Signed " + err.Error())
	}
	if err := s.check("Signed"); err != nil {
		panic(err.Error())
	}
	v := &signatures{grant: &s.Grant, clock: clock, most: most}
	v.secrets, _ = s.keys() // they were checked
	return v
}

// Check refuses missing secrets and those that can be guessed. Its error contains none of them.
func (s *Signed) Check() error {
	_, err := s.keys()
	return err
}

// keys are the secrets as requests are signed with them.
func (s *Signed) keys() ([][]byte, error) {
	if len(s.Secrets) == 0 {
		return nil, errors.New("has no secrets")
	}
	keys := make([][]byte, len(s.Secrets))
	for i, text := range s.Secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_"))
		if err != nil || len(key) < leastKey {
			return nil, fmt.Errorf("must have secrets of at least %d bytes in base64; number %d is not one", leastKey, i+1)
		}
		keys[i] = key
	}
	return keys, nil
}

// Verify checks the headers before the body, as those cost nothing.
func (v *signatures) Verify(r *http.Request) (*Grant, error) {
	claim, err := signature.Standard(r.Header)
	if errors.Is(err, signature.ErrNone) {
		return nil, ErrNoCredential
	}
	if err == nil {
		err = claim.CheckAge(v.clock.Now())
	}
	if err != nil {
		return nil, err
	}
	body, err := Body(r, v.most)
	if err == nil {
		err = claim.Check(v.secrets, body)
	}
	if err != nil {
		return nil, err
	}
	return v.grant, nil
}

// Message is identified by its id, regardless of how often and with what timestamps it is signed.
func (*signatures) Message(r *http.Request) Message {
	claim, _ := signature.Standard(r.Header) // it was checked
	return Message{ID: claim.ID, Until: claim.At.Add(signature.Fresh)}
}

// Body reads the body of a request for a verifier, up to most bytes, and puts it back for the handler that follows.
func Body(r *http.Request, most int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, most+1))
	if err != nil || int64(len(body)) > most {
		return nil, errors.New("the signed body cannot be read, or is too long")
	}
	// The call reads the body again, from the start.
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body, nil
}
