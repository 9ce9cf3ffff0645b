// Package signature compares the signatures of requests with those that the holder of a secret makes: HMAC-SHA256 over the body and what
// its sender writes in front of it. It has the one comparison for all senders, and the one reader of Standard Webhooks' headers.
package signature

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Fresh is how old a signature with a time may be, and how far ahead: five minutes is what Standard Webhooks and Stripe propose.
const Fresh = 5 * time.Minute

// mostID is how long the id of a message may be, in bytes.
const mostID = 256

// The errors of a request. Their texts are for the log.
var (
	ErrNone      = errors.New("the request is not signed")
	ErrMalformed = errors.New("malformed signature headers")
	ErrAge       = errors.New("the signature is too old, or from the future")
	ErrWrong     = errors.New("the signature does not match")
)

// Claim is what a request says of its signature. Nothing of it is true until Check returns nil.
type Claim struct {
	ID   string    // of the message; empty if its sender does not sign one
	At   time.Time // when it was signed; zero if its sender does not say
	Head string    // what is signed in front of the body
	Sums [][]byte  // of which one has to match: senders that rotate their secret send several
	// Token is the secret itself, of senders that sign nothing; empty if they do.
	Token string
}

// Standard reads the headers of Standard Webhooks. Ids have no dots, as these separate the signed parts.
func Standard(h http.Header) (Claim, error) {
	id, stamp, given := h.Get("Webhook-Id"), h.Get("Webhook-Timestamp"), h.Get("Webhook-Signature")
	if id == "" || stamp == "" || given == "" {
		return Claim{}, ErrNone
	}
	at, err := Unix(stamp)
	if err != nil || len(id) > mostID || strings.Contains(id, ".") {
		return Claim{}, ErrMalformed
	}
	c := Claim{ID: id, At: at, Head: id + "." + stamp + "."}
	for one := range strings.FieldsSeq(given) {
		version, text, _ := strings.Cut(one, ",")
		if sum, err := base64.StdEncoding.DecodeString(text); err == nil && version == "v1" {
			c.Sums = append(c.Sums, sum)
		}
	}
	return c, nil
}

// Unix reads a time as seconds since 1970, in digits alone: what is signed is the text.
func Unix(stamp string) (time.Time, error) {
	unix, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || strings.Trim(stamp, "0123456789") != "" {
		return time.Time{}, ErrMalformed
	}
	return time.Unix(unix, 0), nil
}

// CheckAge refuses a time of long ago, and, as the sender's clock may be ahead of ours, one that is far ahead. It needs no body.
func (c *Claim) CheckAge(now time.Time) error {
	// guard: hook-fresh
	if age := now.Sub(c.At); !c.At.IsZero() && (age > Fresh || age < -Fresh) {
		return ErrAge
	}
	return nil
}

// Check compares the signatures of a body with those that each of the keys makes. All keys and all signatures are tried, even after a
// match: the time reveals nothing about them.
func (c *Claim) Check(keys [][]byte, body []byte) error {
	good := false
	sent := sha256.Sum256([]byte(c.Token)) // so that a comparison takes the same time for any length
	for _, key := range keys {
		if known := sha256.Sum256(key); c.Token != "" && hmac.Equal(sent[:], known[:]) {
			good = true
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(c.Head))
		mac.Write(body)
		want := mac.Sum(nil)
		for _, sum := range c.Sums {
			if hmac.Equal(sum, want) {
				good = true
			}
		}
	}
	if !good {
		return ErrWrong
	}
	return nil
}
