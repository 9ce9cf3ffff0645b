package standardwebhooks_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/standardwebhooks"
)

// The example of the libraries of Standard Webhooks: what they verify is what is signed here.
func TestSignaturesAreThoseOfStandardWebhooks(t *testing.T) {
	t.Parallel()
	for _, secret := range []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", " whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n"} {
		key, err := standardwebhooks.Key(secret)
		require.NoError(t, err)
		header := http.Header{}
		standardwebhooks.Sign(header, key, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
		assert.Equal(t, "msg_p5jXN8AQM9LWM0D4loKWxJek", header.Get("webhook-id"))
		assert.Equal(t, "1614265330", header.Get("webhook-timestamp"))
		assert.Equal(t, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=", header.Get("webhook-signature"))
	}
}

// Without a secret there is no signature, and still an id.
func TestNoSecret(t *testing.T) {
	t.Parallel()
	key, err := standardwebhooks.Key(" ")
	require.NoError(t, err)
	header := http.Header{}
	standardwebhooks.Sign(header, key, "msg_1", time.Unix(1614265330, 0), nil)
	assert.Equal(t, "msg_1", header.Get("Webhook-Id"))
	assert.Empty(t, header.Get("Webhook-Signature"))
}
