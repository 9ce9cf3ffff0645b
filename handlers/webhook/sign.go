package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// secretPrefix may begin a secret, as Standard Webhooks write them.
// The prefix says that base64 follows.
const secretPrefix = "whsec_"

// The bounds of a signing key, in bytes, as Standard Webhooks have them.
const (
	leastKey = 24
	mostKey  = 64
)

// signingKey is the key that a secret is the base64 of; nil for no secret. Official verifiers decode every secret, so one
// that is used as it is would sign what they refuse.
// Sixteen bytes would be safe too, but receivers may refuse them.
func signingKey(secret string) ([]byte, error) {
	secret = strings.TrimSpace(secret)
	if secret == "" {
		return nil, nil
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, secretPrefix))
	if err != nil || len(key) < leastKey || len(key) > mostKey {
		return nil, &core.ConfigError{Field: "Secret", Reason: fmt.Sprintf(
			"must be %s and the base64 of %d to %d random bytes: `echo %[1]s$(openssl rand -base64 32)` makes one", secretPrefix, leastKey, mostKey)}
	}
	return key, nil
}

// messageID names an occurrence of a task: the receiver can tell by it that a message is repeated.
// Lengths stand before the ids, so that no two pairs give the same text.
func messageID(t *core.RunInfo) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%d:%s%d", len(t.Agent), t.Agent, len(t.ID), t.ID, t.Occurrence.UnixMilli()))
	return "msg_" + hex.EncodeToString(sum[:16])
}

// sign sets the headers of Standard Webhooks: the id, the time, and, if there is a key, the HMAC-SHA256 of both and the body.
// A receiver without a secret still gets the id, and can tell repeats by it.
func sign(header http.Header, key []byte, id string, now time.Time, body []byte) {
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
