package http

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// movedClock stands still until a test moves it.
type movedClock struct {
	core.SystemClock

	now time.Time
}

func (c *movedClock) Now() time.Time { return c.now }

// What is remembered of signed requests has a bound. Those above it are told to come back, and are taken once the minutes of
// the others are over.
func TestSignedRequestsAreForgottenInTime(t *testing.T) {
	t.Parallel()
	clock := &movedClock{now: time.Unix(1_800_000_000, 0)}
	secret := base64.StdEncoding.EncodeToString(make([]byte, 16))
	v := newSignatures(&Signed{Secrets: []string{secret}}, clock, DefaultMaxBody)
	for i := range mostKept {
		require.NoError(t, v.once(fmt.Sprint(i), clock.now.Unix()))
	}
	require.ErrorIs(t, v.once("more", clock.now.Unix()), errFull)
	assert.Error(t, v.once("0", clock.now.Unix()), "it is not forgotten for that")
	clock.now = clock.now.Add(signedFor)
	assert.ErrorIs(t, v.once("more", clock.now.Unix()), errFull, "the first ones are still good")
	clock.now = clock.now.Add(time.Minute)
	require.NoError(t, v.once("more", clock.now.Unix()))
	assert.Len(t, v.seen, 1)
	assert.Equal(t, 1, v.kept)
}

// A sender that is told to come back is not told that its signature is bad.
func TestTooManySignedRequestsAreUnavailable(t *testing.T) {
	t.Parallel()
	clock := &movedClock{now: time.Unix(1_800_000_000, 0)}
	key := make([]byte, 16)
	a, ok := New(nil, Config{Clock: clock, Signed: &Signed{Secrets: []string{base64.StdEncoding.EncodeToString(key)}}}).(*api)
	require.True(t, ok)
	v, ok := a.verifiers[0].(*signatures)
	require.True(t, ok)
	v.kept = mostKept
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte("m.1800000000."))
	r := httptest.NewRequest(http.MethodGet, "/v1/stats", nil)
	r.Header.Set("Webhook-Id", "m")
	r.Header.Set("Webhook-Timestamp", "1800000000")
	r.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	w := httptest.NewRecorder()
	a.ServeHTTP(w, r)
	assert.Equal(t, http.StatusServiceUnavailable, w.Code, w.Body.String())
	assert.Contains(t, w.Body.String(), "retry later with a new timestamp")
}
