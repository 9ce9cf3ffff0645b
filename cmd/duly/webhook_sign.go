package main

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

// secretPrefix begins a secret that is base64; any other is used as it is.
const secretPrefix = "whsec_"

// signingKey is the key that a secret stands for.
func signingKey(secret string) ([]byte, error) {
	encoded, ok := strings.CutPrefix(secret, secretPrefix)
	if !ok {
		return []byte(secret), nil
	}
	key, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(key) == 0 {
		return nil, errors.New("is not base64 behind " + secretPrefix)
	}
	return key, nil
}

// sign sets the headers of Standard Webhooks: an id that stays when the message is repeated, the time, and, if there is a
// secret, the HMAC-SHA256 of id, time and body.
func sign(header http.Header, secret, id string, now time.Time, body []byte) error {
	timestamp := strconv.FormatInt(now.Unix(), 10)
	header.Set("Webhook-Id", id)
	header.Set("Webhook-Timestamp", timestamp)
	if secret == "" {
		return nil
	}
	key, err := signingKey(secret)
	if err != nil {
		return err
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return nil
}
