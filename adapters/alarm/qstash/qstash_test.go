package qstash_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/adapters/alarm/qstash"
	"github.com/seed-6f6f2c11/duly/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	token       = "qstash-secret"
	own         = "own-secret"
	destination = "https://duly.example/v1/run-due"
)

// upstash is QStash, as its reference describes publishing.
type upstash struct {
	*httptest.Server

	mu       sync.Mutex
	messages map[string]http.Header // by their ids
	bodies   []string
	refuse   int // the status of each answer, if it is set
	calls    int
}

func newUpstash(t *testing.T) *upstash {
	t.Helper()
	u := &upstash{messages: map[string]http.Header{}}
	u.Server = httptest.NewServer(u)
	t.Cleanup(u.Close)
	return u
}

// ServeHTTP is POST /v2/publish/{destination}, whose rest of the path is a whole URL.
func (u *upstash) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.calls++
	fail := func(status int, text string) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": text})
	}
	to, publishes := strings.CutPrefix(r.URL.Path, "/v2/publish/")
	at, err := strconv.ParseInt(r.Header.Get("Upstash-Not-Before"), 10, 64)
	switch wait := time.Until(time.Unix(at, 0)); {
	case u.refuse != 0:
		fail(u.refuse, "not with "+r.Header.Get("Authorization")+" and "+r.Header.Get("Upstash-Forward-Authorization"))
	case r.Header.Get("Authorization") != "Bearer "+token:
		fail(http.StatusUnauthorized, "unauthorized: unauthenticated")
	case r.Method != http.MethodPost || !publishes:
		fail(http.StatusNotFound, "not found")
	case !strings.HasPrefix(to, "http://") && !strings.HasPrefix(to, "https://"):
		fail(http.StatusBadRequest, "invalid destination url: endpoint has invalid scheme, add http:// or https://")
	case err != nil || wait < 0 || wait > 7*24*time.Hour:
		fail(http.StatusBadRequest, "invalid Upstash-Not-Before")
	default:
		id, body := r.Header.Get("Upstash-Deduplication-Id"), make([]byte, 100)
		n, _ := io.ReadFull(r.Body, body)
		if id != "" && u.messages[id] != nil {
			w.WriteHeader(http.StatusAccepted)
			_, _ = io.WriteString(w, `{"messageId":"msg_1","deduplicated":true}`)
			return
		}
		u.messages[id] = r.Header
		u.bodies = append(u.bodies, to+" "+string(body[:n]))
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"messageId":"msg_1"}`)
	}
}

func (u *upstash) alarm(t *testing.T, with qstash.Config) *qstash.Alarm {
	t.Helper()
	with.URL = u.URL + "/"
	a, err := qstash.New(with)
	require.NoError(t, err)
	var _ core.Alarm = a
	return a
}

// soon is a time that can be set.
func soon() time.Time { return time.Now().Add(time.Hour).Truncate(time.Second) }

// A message is published for each time, once.
func TestAMessageForEachTime(t *testing.T) {
	t.Parallel()
	u, at := newUpstash(t), soon()
	a := u.alarm(t, qstash.Config{Token: token, Destination: destination, DestinationToken: own})
	require.NoError(t, a.Set(t.Context(), at))
	require.NoError(t, a.Set(t.Context(), at), "a repeat is none")
	require.NoError(t, a.Set(t.Context(), at.Add(time.Second)))
	other := u.alarm(t, qstash.Config{Token: token, Destination: destination + "?x"})
	require.NoError(t, other.Set(t.Context(), at), "the same time for another host")
	require.Len(t, u.bodies, 3)
	assert.Equal(t, destination+` {"all":true,"alarm_at":"`+at.UTC().Format(time.RFC3339)+`"}`, u.bodies[0])
	forwarded := 0
	for id, header := range u.messages {
		assert.Contains(t, id, header.Get("Upstash-Not-Before"))
		assert.Equal(t, "application/json", header.Get("Content-Type"))
		if header.Get("Upstash-Forward-Authorization") == "Bearer "+own {
			forwarded++
		}
	}
	assert.Equal(t, 2, forwarded)
}

// What QStash refuses is an error that says what to do and shows no secret; only 429 and 5xx are tried again.
func TestWhatQStashRefuses(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]struct {
		calls int
		says  string
	}{
		400: {1, "QStash answered 400 Bad Request: not with Bearer *** and Bearer ***"},
		401: {1, "check the token"}, 403: {1, "rights"}, 404: {1, "check the URL"},
		429: {2, "raise the limit"}, 500: {2, "status page"},
	} {
		u := newUpstash(t)
		u.refuse = status
		err := u.alarm(t, qstash.Config{Token: token, Destination: destination, DestinationToken: own}).Set(t.Context(), soon())
		require.ErrorContains(t, err, want.says)
		assert.NotContains(t, err.Error(), "secret")
		assert.Equal(t, want.calls, u.calls, status)
	}
	u := newUpstash(t)
	err := u.alarm(t, qstash.Config{Token: "wrong", Destination: destination}).Set(t.Context(), soon())
	require.ErrorContains(t, err, "unauthenticated; check the token")
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for field, c := range map[string]qstash.Config{
		"Token": {Destination: destination}, "Destination": {Token: token, Destination: "http://duly.example/hunter2"},
		"URL": {URL: "ftp://x", Token: token, Destination: destination},
	} {
		_, err := qstash.New(c)
		var wrong *core.ConfigError
		require.ErrorAs(t, err, &wrong)
		assert.Equal(t, field, wrong.Field)
		assert.NotContains(t, err.Error(), "hunter2")
	}
}

// A server that is not called books its next call when it has run what is due, and whenever something is submitted.
func Example() {
	clock, err := qstash.New(qstash.Config{
		Token: "QSTASH_TOKEN of the console", Destination: "https://duly.example/v1/run-due", DestinationToken: "a token of duly's API",
	})
	config := core.Config{Alarm: clock}
	fmt.Println(config.Alarm != nil, err)
	// Output: true <nil>
}
