// Package aws makes what duly needs of AWS: the value of a secret, a token for ElastiCache, and signatures of other requests. Each is one
// signed request, which is why the SDK is not used: docs/decisions/0020-aws-lambda.md.
package aws

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Signature Version 4, as the IAM User Guide describes it ("Create a signed AWS API request").

const (
	algorithm = "AWS4-HMAC-SHA256"
	basicTime = "20060102T150405Z"
	basicDate = "20060102"
)

// Signer signs requests to one service in one region.
type Signer struct {
	AccessKey, SecretKey string
	SessionToken         string // of temporary credentials; empty for a user's own
	Region, Service      string
}

// Sign adds the headers that prove who sends a request with this body, now.
func (s *Signer) Sign(r *http.Request, body []byte, now time.Time) {
	r.Header.Set("X-Amz-Date", now.UTC().Format(basicTime))
	if s.SessionToken != "" {
		r.Header.Set("X-Amz-Security-Token", s.SessionToken)
	}
	signed := map[string]string{"host": r.URL.Host}
	for name, values := range r.Header {
		// A service collapses spaces before it verifies, so those within a value do as well.
		signed[strings.ToLower(name)] = strings.Join(strings.FieldsFunc(strings.Join(values, ","), func(c rune) bool { return c == ' ' }), " ")
	}
	names := strings.Join(slices.Sorted(maps.Keys(signed)), ";")
	signature := s.signature(r.Method, r.URL, signed, sum(body), now)
	r.Header.Set("Authorization", algorithm+" Credential="+s.AccessKey+"/"+s.scope(now)+", SignedHeaders="+names+", Signature="+signature)
}

// Presign adds what proves who made a URL, and that it is valid for so long from now, to its query. payload is the hash of the
// body that will be sent, in hexadecimal, or what the service takes in its place.
func (s *Signer) Presign(method string, u *url.URL, payload string, valid time.Duration, now time.Time) {
	q := u.Query()
	q.Set("X-Amz-Algorithm", algorithm)
	q.Set("X-Amz-Credential", s.AccessKey+"/"+s.scope(now))
	q.Set("X-Amz-Date", now.UTC().Format(basicTime))
	q.Set("X-Amz-Expires", strconv.Itoa(int(valid/time.Second)))
	if s.SessionToken != "" {
		q.Set("X-Amz-Security-Token", s.SessionToken)
	}
	q.Set("X-Amz-SignedHeaders", "host")
	u.RawQuery = canonicalQuery(q)
	u.RawQuery += "&X-Amz-Signature=" + s.signature(method, u, map[string]string{"host": u.Host}, payload, now)
}

// scope is what a signature is good for.
func (s *Signer) scope(now time.Time) string {
	return now.UTC().Format(basicDate) + "/" + s.Region + "/" + s.Service + "/aws4_request"
}

// signature signs a request, of which these headers count.
func (s *Signer) signature(method string, u *url.URL, headers map[string]string, payload string, now time.Time) string {
	var canonical strings.Builder
	canonical.WriteString(method + "\n" + s.canonicalPath(u) + "\n" + canonicalQuery(u.Query()) + "\n")
	names := slices.Sorted(maps.Keys(headers))
	for _, name := range names {
		canonical.WriteString(name + ":" + headers[name] + "\n")
	}
	canonical.WriteString("\n" + strings.Join(names, ";") + "\n" + payload)
	text := algorithm + "\n" + now.UTC().Format(basicTime) + "\n" + s.scope(now) + "\n" + sum([]byte(canonical.String()))
	key := []byte("AWS4" + s.SecretKey)
	for _, part := range []string{now.UTC().Format(basicDate), s.Region, s.Service, "aws4_request"} {
		key = mac(key, part)
	}
	return hex.EncodeToString(mac(key, text))
}

// canonicalPath is the path as it is sent, each segment escaped once more: every service but S3 takes it so.
func (s *Signer) canonicalPath(u *url.URL) string {
	path := u.EscapedPath()
	if path == "" {
		return "/"
	}
	if s.Service == "s3" {
		return path
	}
	segments := strings.Split(path, "/")
	for i, segment := range segments {
		segments[i] = strings.ReplaceAll(url.QueryEscape(segment), "+", "%20")
	}
	return strings.Join(segments, "/")
}

// canonicalQuery has the parameters in order, and a space as %20, which Go writes as a plus.
func canonicalQuery(q url.Values) string { return strings.ReplaceAll(q.Encode(), "+", "%20") }

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write([]byte(text)) // a hash takes everything
	return h.Sum(nil)
}

// sum is a hash as signatures have it.
func sum(data []byte) string {
	h := sha256.Sum256(data)
	return hex.EncodeToString(h[:])
}
