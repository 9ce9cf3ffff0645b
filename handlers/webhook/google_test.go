package webhook_test

// Tokens of a metadata server, which a private service of Cloud Run wants.

import (
	"context"
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

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/handlers/webhook"
)

// metadata is a metadata server: it makes a token for each question, good until a time.
type metadata struct {
	*httptest.Server

	mu     sync.Mutex
	asked  []string // audiences
	answer func(w http.ResponseWriter, n int)
}

func newMetadata(t *testing.T, answer func(w http.ResponseWriter, n int)) *metadata {
	t.Helper()
	m := &metadata{answer: answer}
	m.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Metadata-Flavor") != "Google" || r.URL.Path != "/computeMetadata/v1/instance/service-accounts/default/identity" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		m.mu.Lock()
		m.asked = append(m.asked, r.URL.Query().Get("audience"))
		n := len(m.asked)
		m.mu.Unlock()
		m.answer(w, n)
	}))
	t.Cleanup(m.Close)
	return m
}

func (m *metadata) audiences() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked
}

func (m *metadata) host() string { return strings.TrimPrefix(m.URL, "http://") }

// jwt is a token that ends at a time.
func jwt(n int, end time.Time) string {
	part := base64.RawURLEncoding.EncodeToString
	return part([]byte(`{"alg":"RS256"}`)) + "." + part(fmt.Appendf(nil, `{"n":%d,"exp":%d}`, n, end.Unix())) + ".c2lnbmF0dXJl"
}

// hand is a clock that is turned by hand.
type hand struct {
	core.SystemClock

	mu  sync.Mutex
	now time.Time
}

func (h *hand) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hand) turn(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// One token serves until a minute before its end; then there is another.
func TestATokenOfTheHostIsUsedUntilItsEnd(t *testing.T) {
	t.Parallel()
	clock := &hand{now: time.Unix(1_800_000_000, 0)}
	m := newMetadata(t, func(w http.ResponseWriter, n int) { _, _ = io.WriteString(w, jwt(n, clock.Now().Add(time.Hour))+"\n") })
	rec := newReceiver(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	id, err := webhook.NewGoogleIdentity(webhook.GoogleConfig{Audience: "https://digest-abc.a.run.app", MetadataHost: m.host(), Clock: clock})
	require.NoError(t, err)
	w := newWorld(t, webhook.Config{URL: rec.URL, AllowLoopback: true, Identity: id})
	w.once(core.NewTask{MaxAttempts: 10})
	begun := clock.Now()
	clock.turn(59*time.Minute - time.Second)
	w.again()
	clock.turn(time.Second)
	w.again()
	want := []string{jwt(1, begun.Add(time.Hour)), jwt(1, begun.Add(time.Hour)), jwt(2, begun.Add(59*time.Minute+time.Hour))}
	for i, m := range rec.messages() {
		assert.Equal(t, "Bearer "+want[i], m.header.Get("Authorization"), i)
	}
	assert.Len(t, rec.messages(), 3)
	assert.Equal(t, []string{"https://digest-abc.a.run.app", "https://digest-abc.a.run.app"}, m.audiences())
}

// Runs that start together ask once, and one that has to end does not wait, nor take the others with it.
func TestRunsShareAQuestion(t *testing.T) {
	t.Parallel()
	asked, answer := make(chan struct{}), make(chan struct{})
	m := newMetadata(t, func(w http.ResponseWriter, n int) {
		close(asked)
		<-answer
		_, _ = io.WriteString(w, jwt(n, time.Now().Add(time.Hour)))
	})
	id, err := webhook.NewGoogleIdentity(webhook.GoogleConfig{Audience: "a", MetadataHost: m.host()})
	require.NoError(t, err)
	prove := func(ctx context.Context) (string, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://a.example", http.NoBody)
		if err != nil {
			return "", err
		}
		err = id.Prove(r, nil)
		return r.Header.Get("Authorization"), err
	}
	first, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { _, err := prove(first); gone <- err }()
	<-asked
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			token, err := prove(t.Context())
			assert.NoError(t, err)
			assert.True(t, strings.HasPrefix(token, "Bearer ey"))
		})
	}
	_, err = prove(ended(t))
	require.ErrorIs(t, err, context.Canceled)
	close(answer)
	all.Wait()
	assert.Len(t, m.audiences(), 1)
}

// Without a token nobody is called: the attempt has failed, says why, and the next one asks again.
func TestNoTokenOfTheHost(t *testing.T) {
	t.Parallel()
	past := time.Now().Add(time.Hour)
	for name, c := range map[string]struct {
		answer func(w http.ResponseWriter)
		want   string
	}{
		"no account": {func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) }, "identity: the metadata server answered 404: give the service an account"},
		"refused":    {func(w http.ResponseWriter) { w.WriteHeader(http.StatusForbidden) }, "the metadata server answered 403 Forbidden"},
		"moved": {func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://127.0.0.1:1")
			w.WriteHeader(http.StatusFound)
		}, "answered 302 Found"},
		"a page": {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "<hunter2>") }, "the metadata server gave no identity token"},
		"two lines": {func(w http.ResponseWriter) {
			_, _ = io.WriteString(w, strings.Replace(jwt(1, past), "c2ln", "hunter2\n", 1))
		}, "gave no identity token"},
		"no end": {func(w http.ResponseWriter) { _, _ = io.WriteString(w, "e30.e30.hunter2") }, "gave no identity token"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMetadata(t, func(w http.ResponseWriter, n int) {
				if n > 1 {
					_, _ = io.WriteString(w, jwt(n, past))
					return
				}
				c.answer(w)
			})
			rec := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
			id, err := webhook.NewGoogleIdentity(webhook.GoogleConfig{Audience: "a", MetadataHost: m.host()})
			require.NoError(t, err)
			w := newWorld(t, webhook.Config{URL: rec.URL, AllowLoopback: true, Identity: id})
			info := w.once(core.NewTask{MaxAttempts: 2})
			assert.Equal(t, core.StatusWaiting, info.Status)
			assert.Contains(t, info.LastError, c.want)
			assert.NotContains(t, info.LastError, "hunter2")
			assert.Empty(t, rec.messages())
			info = w.again()
			assert.Equal(t, core.StatusCompleted, info.Status, info.LastError)
		})
	}
	id, err := webhook.NewGoogleIdentity(webhook.GoogleConfig{Audience: "a", MetadataHost: "127.0.0.1:1"})
	require.NoError(t, err)
	info := newWorld(t, webhook.Config{URL: "http://127.0.0.1:1", AllowLoopback: true, Identity: id}).once(core.NewTask{})
	assert.Contains(t, info.LastError, "the metadata server does not answer, as it does on Google Cloud alone")
}

func TestGoogleSettings(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]webhook.GoogleConfig{
		"Audience must be":     {},
		"MetadataHost must be": {Audience: "a", MetadataHost: "http://metadata"},
	} {
		_, err := webhook.NewGoogleIdentity(c)
		require.ErrorAs(t, err, new(*core.ConfigError))
		require.ErrorContains(t, err, want)
	}
}
