package http

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// tokens are the hashes of the bearer tokens that are accepted, so that comparing takes the same time however much of a
// guess is right, and however long it is.
type tokens [][sha256.Size]byte

func hash(plain []string) tokens {
	var t tokens
	for i, token := range plain {
		if strings.TrimSpace(token) == "" {
			panic(fmt.Sprintf("httpadapter: Tokens[%d] is empty", i))
		}
		t = append(t, sha256.Sum256([]byte(token)))
	}
	return t
}

// allow reports whether a request carries one of the tokens, or none is needed.
func (t tokens) allow(r *http.Request) bool {
	if len(t) == 0 {
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	given := sha256.Sum256([]byte(strings.TrimSpace(token)))
	equal := 0
	for i := range t {
		equal |= subtle.ConstantTimeCompare(given[:], t[i][:])
	}
	return equal == 1 && strings.EqualFold(scheme, "Bearer")
}

// local reports whether a request's host is one that no name server outside can make point here.
func local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "" || strings.EqualFold(host, "localhost") {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil
}
