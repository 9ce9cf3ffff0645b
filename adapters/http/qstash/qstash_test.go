package qstash_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/adapters/http/qstash"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// vectors are requests as QStash signs them, and what its own library says of each.
type vectors struct {
	Now      int64
	Keys     []string
	URL      string
	Requests []vector
}

type vector struct {
	Name, Signature, Body string
	Good, Strict          bool
}

func read(t *testing.T) (v vectors) {
	t.Helper()
	data, err := os.ReadFile("../testdata/senders/qstash.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &v))
	require.NotEmpty(t, v.Requests)
	return v
}

// heldClock stands still.
type heldClock struct {
	core.SystemClock

	now time.Time
}

func (c *heldClock) Now() time.Time { return c.now }

// processes are two that share a store, behind a proxy that calls them by another URL.
func processes(t *testing.T, v *vectors, at time.Time, url string) (all [2]http.Handler) {
	t.Helper()
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	require.NoError(t, err)
	verifier, err := qstash.New(qstash.Config{
		Keys: v.Keys, URL: url, Now: func() time.Time { return at },
		Grant: httpadapter.Grant{Name: "qstash", Scopes: []httpadapter.Scope{httpadapter.ScopeTrigger}},
	})
	require.NoError(t, err)
	for i := range all {
		all[i] = httpadapter.New(s, httpadapter.Config{Clock: &heldClock{now: at}, Verifiers: []httpadapter.Verifier{verifier}})
	}
	return all
}

// send sends a request as it arrives behind the proxy.
func send(h http.Handler, r *vector) int {
	request := httptest.NewRequest(http.MethodPost, "http://10.0.0.1:8080/v1/run-due?x=1", strings.NewReader(r.Body))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Upstash-Signature", r.Signature)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, request)
	return w.Code
}

// Its own library lets in what is let in here, but for what could be played back.
func TestRequestsOfTheOfficialLibrary(t *testing.T) {
	t.Parallel()
	v := read(t)
	for _, r := range v.Requests {
		all := processes(t, &v, time.Unix(v.Now, 0), "https://duly.example/")
		assert.Equal(t, r.Good && !r.Strict, send(all[0], &r) != http.StatusUnauthorized, r.Name)
		if r.Name == "current key" {
			assert.Equal(t, http.StatusAlreadyReported, send(all[1], &r), "played back to another process")
			assert.Equal(t, http.StatusAlreadyReported, send(all[0], &r))
		}
	}
	good := &v.Requests[0]
	for name, h := range map[string]http.Handler{
		"for another service": processes(t, &v, time.Unix(v.Now, 0), "https://other.example")[0],
		"for another folder":  processes(t, &v, time.Unix(v.Now, 0), "https://duly.example/sub")[0],
		"by http":             processes(t, &v, time.Unix(v.Now, 0), "http://duly.example")[0],
		"too late":            processes(t, &v, time.Unix(v.Now+400, 0), "https://duly.example")[0],
		"too early":           processes(t, &v, time.Unix(v.Now-60, 0), "https://duly.example")[0],
	} {
		assert.Equal(t, http.StatusUnauthorized, send(h, good), name)
	}
	long := *good
	long.Signature += strings.Repeat("A", 5000)
	assert.Equal(t, http.StatusUnauthorized, send(processes(t, &v, time.Unix(v.Now, 0), "https://duly.example")[0], &long))
}

// Both attempts at a message have a signature of their own, and make the same tasks.
func TestAnAttemptSubmitsNothingAgain(t *testing.T) {
	t.Parallel()
	v := read(t)
	verifier, err := qstash.New(qstash.Config{Keys: v.Keys, URL: "https://duly.example"})
	require.NoError(t, err)
	r := httptest.NewRequest(http.MethodPost, "/", nil)
	r.Header.Set("Upstash-Signature", v.Requests[0].Signature)
	r.Header.Set("Upstash-Message-Id", "msg_7")
	m := verifier.Message(r)
	assert.Equal(t, httpadapter.Message{ID: "jwt_1", Key: "msg_7", Until: time.Unix(v.Now+310, 0)}, m)
}

// What would let anybody in is refused, and no error shows a key.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]qstash.Config{
		"Keys are required":                   {URL: "https://duly.example"},
		"Keys must have at least":             {URL: "https://duly.example", Keys: []string{"sig_short"}},
		"URL must be the beginning":           {Keys: []string{"sig_of_more_than_16"}},
		"URL must be the beginning of this":   {Keys: []string{"sig_of_more_than_16"}, URL: "duly.example"},
		"URL must be the beginning of this s": {Keys: []string{"sig_of_more_than_16"}, URL: "https://duly.example?x"},
	} {
		_, err := qstash.New(c)
		require.ErrorContains(t, err, name)
		assert.NotContains(t, err.Error(), "sig_")
	}
}
