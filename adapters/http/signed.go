package http

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
)

// Signed requests: Standard Webhooks, received. A signature proves who sent a request, and its id that it is not
// played back: both are needed, as anybody on the way can record one.

// Signed accepts requests that are signed as Standard Webhooks are: webhook-id, webhook-timestamp and webhook-signature
// over both and the body. A signature is good for five minutes, and once in this process; the same id with a new timestamp
// and signature is the same message sent again, and taken. Whichever process takes it, its id is the idempotency key of the tasks that
// it submits, so that none is submitted twice. Ids have no dots, as these part what is signed.
type Signed struct {
	// Secrets are "whsec_" and base64, or base64 alone; several, so that they can be rotated.
	Secrets []string
	Grant
}

// webhookID is the header with the id of a signed message.
const webhookID = "Webhook-Id"

// Bounds of a signed request.
// Five minutes is what Standard Webhooks proposes. The memory holds as many requests as arrive in twice
// that time, at some hundred a second.
const (
	signedFor    = 5 * time.Minute
	mostSignedID = 256
	mostKept     = 100_000
)

// signatures is the Verifier of signed requests.
type signatures struct {
	secrets [][]byte
	grant   *Grant
	clock   core.Clock
	most    int64 // bytes of a body

	// mu guards what was seen, which is of this process only: several processes behind
	// one address each take a request once.
	mu   sync.Mutex
	seen map[int64]map[string]struct{} // ids with their timestamps, by the minute of these
	kept int                           // in all minutes
}

// errFull says that the memory of signed requests is full: a replayed one could not be recognised any more.
var errFull = problem.New(core.CodeUnavailable, "too many signed requests in the last minutes; retry later with a new timestamp")

// newSignatures panics on secrets that would let somebody in: as with
// tokens, that is a mistake in the program.
func newSignatures(s *Signed, clock core.Clock, most int64) *signatures {
	v := &signatures{grant: &s.Grant, clock: clock, most: most, seen: map[int64]map[string]struct{}{}}
	for i, text := range s.Secrets {
		secret, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "whsec_"))
		if err != nil || len(secret) < 16 {
			panic(fmt.Sprintf("httpadapter: Signed.Secrets[%d] must be at least 16 bytes in base64", i))
		}
		v.secrets = append(v.secrets, secret)
	}
	if len(v.secrets) == 0 {
		panic("httpadapter: Signed has no Secrets")
	}
	if err := s.check("Signed"); err != nil {
		panic(err.Error())
	}
	return v
}

// Verify checks the headers before the body, as those cost nothing.
func (v *signatures) Verify(r *http.Request) (*Grant, error) {
	id, stamp, given := r.Header.Get(webhookID), r.Header.Get("Webhook-Timestamp"), r.Header.Get("Webhook-Signature")
	if id == "" || stamp == "" || given == "" {
		return nil, ErrNoCredential
	}
	unix, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || strings.Trim(stamp, "0123456789") != "" || len(id) > mostSignedID || strings.Contains(id, ".") {
		return nil, errors.New("malformed signature headers")
	}
	// Both ways, as the sender's clock may be ahead of ours.
	if age := v.clock.Now().Sub(time.Unix(unix, 0)); age > signedFor || age < -signedFor {
		return nil, errors.New("the signature is too old, or from the future")
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, v.most+1))
	if err != nil || int64(len(body)) > v.most {
		return nil, errors.New("the signed body cannot be read, or is too long")
	}
	// The call reads the body again, from the start.
	r.Body = io.NopCloser(bytes.NewReader(body))
	if !v.matches(id+"."+stamp+".", body, given) {
		return nil, errors.New("the signature does not match")
	}
	// Only now, as a request that is not genuine must not use up the id.
	return v.grant, v.once(id+"."+stamp, unix)
}

// matches reports whether one of the given signatures is that of one of the secrets.
// All secrets and all signatures are tried, whichever fits first: time tells nothing about them.
func (v *signatures) matches(head string, body []byte, given string) bool {
	good := false
	for _, secret := range v.secrets {
		mac := hmac.New(sha256.New, secret)
		mac.Write([]byte(head))
		mac.Write(body)
		want := mac.Sum(nil)
		for one := range strings.FieldsSeq(given) {
			version, text, _ := strings.Cut(one, ",")
			sum, err := base64.StdEncoding.DecodeString(text)
			if version == "v1" && err == nil && hmac.Equal(sum, want) {
				good = true
			}
		}
	}
	return good
}

// once refuses what was accepted before. It is remembered for as long as its signature is good, a minute at a time: to
// forget takes no look at each, and what is kept at most is forgotten as time passes.
// The timestamp decides when it is forgotten, as it does how long the signature is good.
func (v *signatures) once(signed string, unix int64) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.clock.Now()
	for minute, all := range v.seen {
		if now.After(time.Unix(60*minute+59, 0).Add(signedFor)) {
			v.kept -= len(all)
			delete(v.seen, minute)
		}
	}
	all := v.seen[unix/60]
	if _, ok := all[signed]; ok {
		return errors.New("the signed request was already sent")
	}
	if v.kept >= mostKept {
		return errFull
	}
	if all == nil {
		all = map[string]struct{}{}
		v.seen[unix/60] = all
	}
	all[signed] = struct{}{}
	v.kept++
	return nil
}
