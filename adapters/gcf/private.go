package gcf

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
)

// Services that Google guards: it refuses everybody but the accounts with the role run.invoker.

// Private is a Config.Verify that lets everybody in: for a service that is deployed with --no-allow-unauthenticated, where
// Google refuses everybody but the accounts with the role run.invoker.
func Private(*http.Request) error { return nil }

// The headers in which Google takes the token of a caller. If both are set it checks the first and passes the second on unchanged,
// so that an application may have tokens of its own.
const (
	serverlessHeader = "X-Serverless-Authorization"
	plainHeader      = "Authorization"
)

// removed is what Google puts in place of the signature of a token that it has checked, so that the token cannot be used again.
const removed = "SIGNATURE_REMOVED_BY_GOOGLE"

// Invokers is a Config.Verify for a service that is deployed with --no-allow-unauthenticated. It admits only the given ones of the accounts
// that Google admits. A service that Google does not guard must not use it: the token has no signature any more, and any client can forge one.
func Invokers(accounts ...string) func(*http.Request) error {
	return func(r *http.Request) error {
		header := plainHeader
		if r.Header.Get(serverlessHeader) != "" {
			header = serverlessHeader
		}
		account, err := checked(r.Header.Get(header))
		if err != nil {
			return err
		}
		if !slices.Contains(accounts, account) {
			return errors.New("gcf: the account is not allowed")
		}
		return nil
	}
}

// checked is the account of a token that Google has checked.
func checked(header string) (string, error) {
	scheme, token, _ := strings.Cut(header, " ")
	parts := strings.Split(strings.TrimSpace(token), ".")
	if !strings.EqualFold(scheme, "bearer") || len(parts) != 3 {
		return "", errors.New("gcf: the request has no token of Google")
	}
	if parts[2] != removed {
		return "", errors.New("gcf: the token has its signature, so Google has not checked it: is the service open to everybody?")
	}
	var claims struct {
		Email    string `json:"email"`
		Verified bool   `json:"email_verified"`
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(data, &claims) != nil || claims.Email == "" || !claims.Verified {
		return "", errors.New("gcf: the token names no account")
	}
	return claims.Email, nil
}
