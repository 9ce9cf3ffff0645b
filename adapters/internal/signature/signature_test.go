package signature_test

import (
	"encoding/base64"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/internal/signature"
)

// The example of the libraries of Standard Webhooks.
func TestTheExampleOfStandardWebhooks(t *testing.T) {
	t.Parallel()
	key, err := base64.StdEncoding.DecodeString("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	require.NoError(t, err)
	h := http.Header{
		"Webhook-Id": {"msg_p5jXN8AQM9LWM0D4loKWxJek"}, "Webhook-Timestamp": {"1614265330"},
		"Webhook-Signature": {"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
	}
	claim, err := signature.Standard(h)
	require.NoError(t, err)
	assert.Equal(t, "msg_p5jXN8AQM9LWM0D4loKWxJek", claim.ID)
	body := []byte(`{"test": 2432232314}`)
	other := []byte("another key, of 16 bytes or more")
	require.NoError(t, claim.Check([][]byte{other, key}, body), "one key of several")
	require.ErrorIs(t, claim.Check([][]byte{other}, body), signature.ErrWrong)
	require.ErrorIs(t, claim.Check(nil, body), signature.ErrWrong)
	require.ErrorIs(t, claim.Check([][]byte{key}, append(body, ' ')), signature.ErrWrong)
	h.Set("Webhook-Signature", "v1a,"+h.Get("Webhook-Signature")[3:]+" v1,!! v1,"+base64.StdEncoding.EncodeToString(make([]byte, 32)))
	claim, err = signature.Standard(h)
	require.NoError(t, err)
	require.ErrorIs(t, claim.Check([][]byte{key}, body), signature.ErrWrong)
	at := time.Unix(1614265330, 0)
	for shift, good := range map[time.Duration]bool{
		0: true, signature.Fresh: true, -signature.Fresh: true, signature.Fresh + time.Second: false, -signature.Fresh - time.Second: false,
	} {
		assert.Equal(t, good, claim.CheckAge(at.Add(shift)) == nil, shift)
	}
	require.NoError(t, (&signature.Claim{}).CheckAge(at), "a sender that says no time")
}

// Headers that are missing or malformed claim nothing.
func TestMalformedHeaders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		id, stamp, signed string
		want              error
	}{
		{"", "1", "v1,AA==", signature.ErrNone},
		{"a", "", "v1,AA==", signature.ErrNone},
		{"a", "1", "", signature.ErrNone},
		{"a.b", "1", "v1,AA==", signature.ErrMalformed},
		{"a", "-1", "v1,AA==", signature.ErrMalformed},
		{"a", "+1", "v1,AA==", signature.ErrMalformed},
		{"a", "99999999999999999999", "v1,AA==", signature.ErrMalformed},
	} {
		_, err := signature.Standard(http.Header{"Webhook-Id": {c.id}, "Webhook-Timestamp": {c.stamp}, "Webhook-Signature": {c.signed}})
		require.ErrorIs(t, err, c.want, c)
	}
}
