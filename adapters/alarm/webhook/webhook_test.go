package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/adapters/alarm/webhook"
	"github.com/seed-6f6f2c11/duly/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// receiver is a server that is asked to call back. It takes what is signed as Standard Webhooks demand, and no other body.
type receiver struct {
	*httptest.Server

	mu    sync.Mutex
	asked []string // ids and bodies
	calls int
	fails []int // the statuses of the first answers
}

func newReceiver(t *testing.T, fails ...int) *receiver {
	t.Helper()
	r := &receiver{fails: fails}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (s *receiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	body, _ := io.ReadAll(r.Body)
	id := r.Header.Get("Webhook-Id")
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "%s.%s.%s", id, r.Header.Get("Webhook-Timestamp"), body)
	switch {
	case s.calls <= len(s.fails):
		w.WriteHeader(s.fails[s.calls-1])
		_, _ = io.WriteString(w, "not at "+r.URL.String())
	case r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json":
		w.WriteHeader(http.StatusBadRequest)
	case r.Header.Get("Webhook-Signature") != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)):
		w.WriteHeader(http.StatusUnauthorized)
	default:
		s.asked = append(s.asked, id+" "+string(body))
	}
}

// A time is posted, signed, and tried once more if the server is busy.
func TestATimeIsPosted(t *testing.T) {
	t.Parallel()
	to := newReceiver(t, http.StatusServiceUnavailable)
	a, err := webhook.New(webhook.Config{URL: to.URL, Secret: secret})
	require.NoError(t, err)
	var alarm core.Alarm = a
	at := time.Date(2026, 11, 23, 9, 0, 1, 0, time.FixedZone("", 3600))
	require.NoError(t, alarm.Set(t.Context(), at))
	require.NoError(t, alarm.Set(t.Context(), at))
	want := `alarm_1795420801 {"at":"2026-11-23T08:00:01Z"}`
	assert.Equal(t, []string{want, want}, to.asked)
}

// A refusal says what to do, without what the URL may hide.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for status, says := range map[int]string{403: "check that its secret", 404: "check its URL", 400: "Bad Request"} {
		to := newReceiver(t, status)
		a, err := webhook.New(webhook.Config{URL: to.URL + "/x?key=hunter2", Secret: secret})
		require.NoError(t, err)
		err = a.Set(t.Context(), time.Now())
		require.ErrorContains(t, err, says)
		assert.NotContains(t, err.Error(), "hunter2")
		assert.Equal(t, 1, to.calls)
	}
	to := newReceiver(t)
	a, err := webhook.New(webhook.Config{URL: to.URL})
	require.NoError(t, err)
	require.ErrorContains(t, a.Set(t.Context(), time.Now()), "401", "nothing is signed without a secret")
}

func TestSettings(t *testing.T) {
	t.Parallel()
	for field, c := range map[string]webhook.Config{"URL": {URL: "http://a.example/hunter2"}, "Secret": {URL: "https://a.example", Secret: "hunter2"}} {
		_, err := webhook.New(c)
		var wrong *core.ConfigError
		require.ErrorAs(t, err, &wrong)
		assert.Equal(t, field, wrong.Field)
		assert.NotContains(t, err.Error(), "hunter2")
	}
	_, err := webhook.New(webhook.Config{URL: "http://a.example", Insecure: true})
	require.NoError(t, err)
}

// A server of one's own is asked to call back when something falls due.
func Example() {
	clock, err := webhook.New(webhook.Config{URL: "https://clock.example/at", Secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"})
	config := core.Config{Alarm: clock}
	fmt.Println(config.Alarm != nil, err)
	// Output: true <nil>
}
