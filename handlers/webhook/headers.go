package webhook

// What a message proves its sender by beside its signature: headers, a token, an identity of the host.

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
)

// Identity proves to a server who calls it, as by a token of the cloud that the program runs on: see [NewGoogleIdentity] and [NewAWSIdentity].
type Identity interface {
	// Prove adds to a message what proves who sends it. It is called for each message when all else of it has been set, by many goroutines
	// at once; body is what is sent. An error is a failed attempt. Tasks and logs have its text, which must not contain a secret.
	Prove(r *http.Request, body []byte) error
}

const (
	authorization = "Authorization"
	bearer        = "Bearer "
)

// leastHidden is how long a value has to be to be hidden in errors: a shorter one is no secret, and may be part of any word.
const leastHidden = 8

// own are the headers of a message that duly sets, or that decide how HTTP sends it.
var own = []string{
	"Accept-Encoding", "Connection", "Content-Length", "Content-Type", "Expect", "Host", "If-None-Match", "Keep-Alive", "Proxy-Authorization",
	"Proxy-Connection", "Te", "Traceparent", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent", "X-Amz-Date", "X-Amz-Security-Token",
}

// CheckHeader is nil if messages may have a header with this name and value. Its error never shows the value, which may be secret.
func CheckHeader(name, value string) error {
	known := http.CanonicalHeaderKey(name)
	switch {
	case name == "" || strings.Trim(name, tokenChars) != "":
		return errors.New("must have a name of letters, digits and hyphens, such as X-Api-Key")
	case slices.Contains(own, known), strings.HasPrefix(known, "Webhook-"), strings.HasPrefix(known, "Duly-"):
		return fmt.Errorf("has a name that duly uses itself: %s", known)
	case strings.TrimSpace(value) == "":
		return errors.New("must have a value")
	case strings.TrimSpace(value) != value || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return errors.New("must have a value in one line, without control characters and without space around it")
	}
	return nil
}

// tokenChars are those of a name in HTTP (RFC 9110, section 5.6.2).
const tokenChars = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789!#$%&'*+-.^_`|~"

// headers checks the headers of the configuration and returns them, the bearer token among them.
func (c *Config) headers(u *url.URL) (http.Header, error) {
	header := http.Header{}
	for _, name := range slices.Sorted(maps.Keys(c.Headers)) {
		err := CheckHeader(name, c.Headers[name])
		if err == nil && header.Get(name) != "" {
			err = errors.New("is given twice: case does not matter in names of headers")
		}
		if err != nil {
			return nil, &core.ConfigError{Field: fmt.Sprintf("Headers[%q]", name), Reason: err.Error()}
		}
		header.Set(name, c.Headers[name])
	}
	if err := c.oneProof(u, header); err != nil {
		return nil, err
	}
	if c.Bearer != "" {
		if err := CheckHeader(authorization, bearer+c.Bearer); err != nil || strings.Contains(c.Bearer, " ") {
			return nil, &core.ConfigError{Field: "Bearer", Reason: "must be a token without spaces and control characters"}
		}
		header.Set(authorization, bearer+c.Bearer)
	}
	return header, nil
}

// oneProof refuses two proofs in one header, of which one would be lost without a word.
func (c *Config) oneProof(u *url.URL, header http.Header) error {
	var proofs []string
	for _, proof := range []struct {
		name string
		have bool
	}{
		{"the user in the URL", u.User != nil},
		{"the header Authorization", header.Get(authorization) != ""},
		{"a bearer token", c.Bearer != ""},
		{"an identity", c.Identity != nil},
	} {
		if proof.have {
			proofs = append(proofs, proof.name)
		}
	}
	if len(proofs) > 1 {
		return &core.ConfigError{Field: "Headers", Reason: "may have one of these in Authorization, not several: " + strings.Join(proofs, ", ")}
	}
	return nil
}

// hidden are the texts that no error may show of what the configuration and the identity have added to a message: a server may quote what it refuses.
func (h *Handler) hidden(sent http.Header) []string {
	var all []string
	for _, name := range append(slices.Collect(maps.Keys(h.header)), authorization, "X-Amz-Security-Token") {
		value := sent.Get(name)
		all = append(all, value)
		if _, rest, ok := strings.Cut(value, " "); ok { // as in Bearer and Basic, of which a server may quote what follows
			all = append(all, rest)
		}
	}
	all = slices.DeleteFunc(all, func(text string) bool { return len(text) < leastHidden })
	// The longest first: a value would be hidden in part only if one that is part of it came first.
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(all)
}
