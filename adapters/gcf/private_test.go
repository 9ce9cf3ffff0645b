package gcf_test

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/adapters/gcf"
)

// Google takes the signature from a token that it has checked: the account in it is who Google let in.
func TestInvokers(t *testing.T) {
	t.Parallel()
	token := func(claims, signature string) string {
		return "Bearer " + base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"RS256"}`)) + "." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + "." + signature
	}
	const removed = "SIGNATURE_REMOVED_BY_GOOGLE"
	tick, eve := `{"email":"tick@p.iam.gserviceaccount.com","email_verified":true}`, `{"email":"eve@p.iam.gserviceaccount.com","email_verified":true}`
	verify := gcf.Invokers("push@p.iam.gserviceaccount.com", "tick@p.iam.gserviceaccount.com")
	for name, c := range map[string]struct {
		serverless, plain string
		want              string // empty: let in
	}{
		"Cloud Scheduler's token":           {"", token(tick, removed), ""},
		"the token beside one of our own":   {token(tick, removed), "Bearer right", ""},
		"another account":                   {"", token(eve, removed), "the account is not allowed"},
		"the other header was not checked":  {token(eve, removed), token(tick, removed), "the account is not allowed"},
		"nothing":                           {"", "", "no token of Google"},
		"a token of our own alone":          {"", "Bearer right", "no token of Google"},
		"another scheme":                    {"", "Basic " + token(tick, removed)[len("Bearer "):], "no token of Google"},
		"a token that Google did not check": {"", token(tick, "c2lnbmF0dXJl"), "Google has not checked it"},
		"an account that is not verified":   {"", token(`{"email":"tick@p.iam.gserviceaccount.com"}`, removed), "names no account"},
		"no account":                        {"", token(`{"email_verified":true}`, removed), "names no account"},
		"claims that are no JSON":           {"", token(`{`, removed), "names no account"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", http.NoBody)
		if c.serverless != "" {
			r.Header.Set("X-Serverless-Authorization", c.serverless)
		}
		if c.plain != "" {
			r.Header.Set("Authorization", c.plain)
		}
		if err := verify(r); c.want == "" {
			assert.NoError(t, err, name)
		} else {
			assert.ErrorContains(t, err, c.want, name)
		}
	}
}
