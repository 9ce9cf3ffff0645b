package attack_test

// Replays: what somebody on the way has recorded, sent again, and signatures and tokens that nearly fit.

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"hash"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// Keys of two senders.
var (
	keyOf    = []byte("the key that signs what is sent here")
	otherKey = []byte("the key of somebody else, who signs")
)

// atRest is a clock that stands still.
type atRest struct{ now time.Time }

func (c *atRest) Now() time.Time { return c.now }

func (*atRest) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

// processes are two processes that share a store, and take what is signed.
func processes(t *testing.T, clock core.Clock) (s *core.Scheduler, all [2]http.Handler) {
	t.Helper()
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	require.NoError(t, err)
	for i := range all {
		all[i] = httpadapter.New(s, httpadapter.Config{Clock: clock, Signed: []httpadapter.Signed{{Secrets: []string{base64.StdEncoding.EncodeToString(keyOf)}}}})
	}
	return s, all
}

// signature is that of a message.
func signature(with func() hash.Hash, key []byte, id, stamp, body string) []byte {
	mac := hmac.New(with, key)
	_, _ = mac.Write([]byte(id + "." + stamp + "." + body))
	return mac.Sum(nil)
}

// digest is the signature of a body alone.
func digest(key []byte, body string) []byte {
	mac := hmac.New(sha256.New, key)
	_, _ = mac.Write([]byte(body))
	return mac.Sum(nil)
}

// signed is a request to submit tasks, with headers as they are given.
func signed(id, stamp, signature, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/v1/tasks", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Webhook-Id", id)
	r.Header.Set("Webhook-Timestamp", stamp)
	r.Header.Set("Webhook-Signature", signature)
	return r
}

// send sends a request and returns its status.
func send(h http.Handler, r *http.Request) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

// A signed message submits its tasks once, however often it is sent, with a new signature and to which process.
func TestARecordedMessageSubmitsNothingMore(t *testing.T) {
	t.Parallel()
	clock := &atRest{time.Unix(1_800_000_000, 0)}
	for name, body := range map[string]string{
		"with an id": `{"agent_id":"a","id":"x","kind":"none"}`, "without": `{"agent_id":"a","kind":"none"}`, "of several": `{"tasks":[{"agent_id":"a","kind":"none"},{"agent_id":"a","kind":"none"}]}`,
	} {
		s, all := processes(t, clock)
		first := func(at time.Time) *http.Request {
			stamp := fmt.Sprint(at.Unix())
			return signed("msg_1", stamp, "v1,"+base64.StdEncoding.EncodeToString(signature(sha256.New, keyOf, "msg_1", stamp, body)), body)
		}
		require.Equal(t, 201, send(all[0], first(clock.now)), name)
		for range 3 {
			assert.Equal(t, 208, send(all[0], first(clock.now)), "%s: recorded", name)
		}
		assert.Equal(t, 208, send(all[1], first(clock.now)), "%s: recorded, and sent to another process", name)
		keyed := first(clock.now)
		keyed.Header.Set("Idempotency-Key", "another")
		assert.Equal(t, 208, send(all[1], keyed), name)
		assert.Equal(t, 208, send(all[0], first(clock.now.Add(time.Second))), "%s: sent again by its sender", name)
		elsewhere := first(clock.now)
		elsewhere.URL.Path = "/v1/run-due"
		assert.Equal(t, 409, send(all[1], elsewhere), "%s: recorded, and sent to another path", name)
		tasks, _, err := s.Tasks(t.Context(), core.List{Agent: "a"})
		require.NoError(t, err)
		assert.Len(t, tasks, max(1, strings.Count(body, "kind")), name)
	}
}

// The same id with other tasks is another message, and refused: nobody can change what an id stands for, also not by a header that is
// not signed.
func TestAMessageKeepsItsContent(t *testing.T) {
	t.Parallel()
	clock := &atRest{time.Unix(1_800_000_000, 0)}
	_, all := processes(t, clock)
	at := func(i int, body, key string) int {
		stamp := fmt.Sprint(clock.now.Unix() + int64(i))
		r := signed("msg_1", stamp, "v1,"+base64.StdEncoding.EncodeToString(signature(sha256.New, keyOf, "msg_1", stamp, body)), body)
		if key != "" {
			r.Header.Set("Idempotency-Key", key)
		}
		return send(all[0], r)
	}
	assert.Equal(t, 201, at(0, `{"agent_id":"a","kind":"none"}`, ""))
	assert.Equal(t, 409, at(1, `{"agent_id":"a","kind":"other"}`, ""))
	assert.Equal(t, 409, at(2, `{"agent_id":"a","kind":"other"}`, "k"))
	assert.Equal(t, 208, at(3, `{"agent_id":"a","kind":"none"}`, "k"))
	assert.Equal(t, 409, at(4, `{"agent_id":"b","kind":"other"}`, ""), "of another agent too")
}

// A signature is good for five minutes both ways, to the second, and nothing else than the whole of one is good.
func TestSignaturesThatNearlyFit(t *testing.T) {
	t.Parallel()
	clock := &atRest{time.Unix(1_800_000_000, 0)}
	_, all := processes(t, clock)
	const body = `{"agent_id":"a","id":"x","kind":"none"}`
	n := 0
	try := func(offset time.Duration, change func(sum []byte, id, stamp string) string) int {
		n++
		id, stamp := fmt.Sprint("msg_", n), fmt.Sprint(clock.now.Add(offset).Unix())
		return send(all[0], signed(id, stamp, change(signature(sha256.New, keyOf, id, stamp, body), id, stamp), body))
	}
	text := base64.StdEncoding.EncodeToString
	good := func(sum []byte, _, _ string) string { return "v1," + text(sum) }
	for offset, fits := range map[time.Duration]bool{
		-5*time.Minute - time.Second: false, -5 * time.Minute: true, 0: true, 5 * time.Minute: true, 5*time.Minute + time.Second: false, -24 * time.Hour: false,
		290 * 365 * 24 * time.Hour: false, -57 * 365 * 24 * time.Hour: false,
	} {
		assert.Equal(t, fits, try(offset, good) < 300, offset)
	}
	for name, c := range map[string]struct {
		fits   bool
		change func(sum []byte, id, stamp string) string
	}{
		"many before it":  {true, func(sum []byte, _, _ string) string { return strings.Repeat("v1,AAAA ", 50) + "v1," + text(sum) }},
		"one before it":   {true, func(sum []byte, _, _ string) string { return "v1a," + text(sum) + " v1," + text(sum) }},
		"no version":      {false, func(sum []byte, _, _ string) string { return text(sum) }},
		"another version": {false, func(sum []byte, _, _ string) string { return "v2," + text(sum) }},
		"in capitals":     {false, func(sum []byte, _, _ string) string { return "V1," + text(sum) }},
		"of public keys":  {false, func(sum []byte, _, _ string) string { return "v1a," + text(sum) }},
		"two commas":      {false, func(sum []byte, _, _ string) string { return "v1,," + text(sum) }},
		"in hex":          {false, func(sum []byte, _, _ string) string { return "v1," + hex.EncodeToString(sum) }},
		"cut":             {false, func(sum []byte, _, _ string) string { return "v1," + text(sum[:31]) }},
		"longer":          {false, func(sum []byte, _, _ string) string { return "v1," + text(append(sum, 0)) }},
		"empty":           {false, func([]byte, string, string) string { return "v1," }},
		"of zeros":        {false, func([]byte, string, string) string { return "v1," + text(make([]byte, 32)) }},
		"a bit off":       {false, func(sum []byte, _, _ string) string { sum[31] ^= 1; return "v1," + text(sum) }},
		"of another key": {false, func(_ []byte, id, stamp string) string {
			return "v1," + text(signature(sha256.New, otherKey, id, stamp, body))
		}},
		"of no key": {false, func(_ []byte, id, stamp string) string {
			return "v1," + text(signature(sha256.New, nil, id, stamp, body))
		}},
		"of SHA-512": {false, func(_ []byte, id, stamp string) string {
			return "v1," + text(signature(sha512.New, keyOf, id, stamp, body))
		}},
		"of another body": {false, func(_ []byte, id, stamp string) string {
			return "v1," + text(signature(sha256.New, keyOf, id, stamp, body+" "))
		}},
		"of another id": {false, func(_ []byte, id, stamp string) string {
			return "v1," + text(signature(sha256.New, keyOf, id+"0", stamp, body))
		}},
		"of another moment": {false, func(_ []byte, id, stamp string) string {
			return "v1," + text(signature(sha256.New, keyOf, id, stamp+"0", body))
		}},
		"of the body alone": {false, func([]byte, string, string) string {
			mac := hmac.New(sha256.New, keyOf)
			_, _ = mac.Write([]byte(body))
			return "v1," + text(mac.Sum(nil))
		}},
	} {
		assert.Equal(t, c.fits, try(0, c.change) < 300, name)
	}
}

// Secrets are compared as digests of one length, by functions whose time does not depend on where they differ: in the code that checks
// credentials nothing else compares the digest of a token or the sum of a signature.
func TestSecretsAreComparedInConstantTime(t *testing.T) {
	t.Parallel()
	calls := map[string]int{}
	for path, digests := range map[string][]string{"../../adapters/http/auth.go": {"given", "sum", "plain"}, "../../adapters/http/signed.go": {"sum", "want", "secret"}, "../../adapters/internal/signature/signature.go": {"sum", "want", "key"}, "../../adapters/http/qstash/qstash.go": {"sum", "want", "key"}} {
		source, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		named := func(e ast.Expr) bool {
			found := false
			ast.Inspect(e, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				found = found || ok && slices.Contains(digests, id.Name)
				return true
			})
			return found
		}
		ast.Inspect(source, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BinaryExpr:
				_, x := n.X.(*ast.CallExpr) // a length, or what a comparison returned
				_, y := n.Y.(*ast.BasicLit) // whether it was given at all
				assert.False(t, (n.Op == token.EQL || n.Op == token.NEQ) && !x && !y && (named(n.X) || named(n.Y)), "%s compares a secret by %s", path, n.Op)
			case *ast.SelectorExpr:
				if id, ok := n.X.(*ast.Ident); ok && (id.Name == "subtle" || id.Name == "hmac" || id.Name == "bytes") {
					calls[id.Name+"."+n.Sel.Name]++
				}
			}
			return true
		})
	}
	assert.Equal(t, map[string]int{"subtle.ConstantTimeCompare": 1, "hmac.Equal": 3, "hmac.New": 1, "bytes.NewReader": 1}, calls)
}

// Whatever is in the headers of a signature, nobody is let in without the key, and no answer is a fault of this side.
func FuzzSignatures(f *testing.F) {
	f.Add("msg_1", "1800000000", "v1,AAAA", "{}")
	f.Add("msg.1", "-1", "v1,", "")
	f.Add("\xff", "1800000000.0", strings.Repeat("v1,AAAA ", 9), "\x00")
	f.Add("m", "99999999999999999999", "v1 v1,=", `{"agent_id":"a","kind":"none"}`)
	f.Fuzz(func(t *testing.T, id, stamp, given, body string) {
		_, all := processes(t, &atRest{time.Unix(1_800_000_000, 0)})
		assert.Equal(t, 401, send(all[0], signed(id, stamp, given, body)))
		// With the key it is a request like any other, if its headers are those that a server hands over.
		good := "v1," + base64.StdEncoding.EncodeToString(signature(sha256.New, keyOf, id, stamp, body))
		assert.Less(t, send(all[0], signed(id, stamp, good, body)), 500)
	})
}
