package webhook

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// What a verifier would not decode, and what is no key at all, is refused and not shown.
func TestSecretsAreChecked(t *testing.T) {
	t.Parallel()
	for name, secret := range map[string]string{
		"nothing behind the prefix": "whsec_",
		"raw":                       "correct horse battery staple",
		"not padded":                "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSwAA",
		"short":                     "whsec_" + strings.Repeat("AAAA", 7),
		"long":                      "whsec_" + strings.Repeat("AAAA", 22),
		"twice the prefix":          "whsec_whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := New(Config{URL: "https://agents.example/", Secret: secret})
			var wrong *core.ConfigError
			require.ErrorAs(t, err, &wrong)
			assert.Equal(t, "Secret", wrong.Field)
			assert.Contains(t, wrong.Reason, "echo whsec_$(openssl rand -base64 32)")
			assert.NotContains(t, err.Error(), "horse")
		})
	}
	for _, n := range []int{8, 21} {
		_, err := signingKey(strings.Repeat("AAAA", n))
		assert.NoError(t, err, n)
	}
}
