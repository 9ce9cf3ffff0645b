// Package standardwebhooks signs what is sent, as Standard Webhooks describe it: the messages of handlers, and those to a clock outside.
package standardwebhooks

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// prefix may begin a secret. It says that base64 follows.
const prefix = "whsec_"

// The bounds of a signing key, in bytes.
const (
	leastKey = 24
	mostKey  = 64
)

// Key is the key that a secret is the base64 of; nil for no secret. Official verifiers decode every secret, so one
// that is used as it is would sign what they refuse. The error does not show it.
// Sixteen bytes would be safe too, but receivers may refuse them.
func Key(secret string) ([]byte, error) {
	secret = strings.TrimSpace(secret)
	if secret == "" {
		return nil, nil
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, prefix))
	if err != nil || len(key) < leastKey || len(key) > mostKey {
		return nil, fmt.Errorf("must be %s and the base64 of %d to %d random bytes: `echo %[1]s$(openssl rand -base64 32)` makes one", prefix, leastKey, mostKey)
	}
	return key, nil
}

// Sign sets the headers: the id, the time, and, if there is a key, the HMAC-SHA256 of both and the body.
// A receiver without a secret still gets the id, and can tell repeats by it.
func Sign(header http.Header, key []byte, id string, now time.Time, body []byte) {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	header.Set("Webhook-Id", id)
	header.Set("Webhook-Timestamp", timestamp)
	if key == nil {
		return
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}
