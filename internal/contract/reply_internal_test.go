package contract

// Answers: whatever a server sends, a run ends with an outcome that can be stored.

import (
	"net/http"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core"
)

// No status, header or body of an answer makes a run panic, wait for longer than a day, or fail with a text that is no text.
func FuzzAnswers(f *testing.F) {
	f.Add(200, "snooze", "10m", "", "{}")
	f.Add(200, "yield", "5m", "", `{"page":2}`)
	f.Add(200, "next-in", "-1h", "", "\xff")
	f.Add(200, "progress", `{"done":`, "", "")
	f.Add(429, "", "", "99999999999999999999", "\x1b[2J")
	f.Add(503, "", "", "Fri, 31 Dec 9999 23:59:59 GMT", "busy")
	f.Fuzz(func(t *testing.T, status int, name, value, after, body string) {
		now := time.Unix(1_800_000_000, 0)
		header := http.Header{"Retry-After": {after}}
		header.Set(Prefix+name, value)
		err := (&Reply{From: "webhook", Status: status, Header: header, Body: []byte(body)}).Outcome(&core.RunInfo{}, now)
		if err != nil {
			assert.True(t, utf8.ValidString(err.Error()), "%q", err)
		}
		if at, ok := RetryAfter(after, now); ok {
			assert.False(t, at.After(now.Add(mostRetryAfter)))
		}
	})
}
