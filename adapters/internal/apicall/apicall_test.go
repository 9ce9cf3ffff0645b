package apicall_test

// Calls of other APIs: what is tried again, how long it takes, and what errors say.

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/adapters/internal/apicall"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// called calls a server that gives these answers in turn, the last of them again and again, and returns how often it was called.
func called(ctx context.Context, t *testing.T, a *apicall.API, answers ...http.HandlerFunc) (int, []byte, error) {
	t.Helper()
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then does a server notice that its caller has gone
		n := int(calls.Add(1))
		answers[min(n, len(answers))-1](w, r)
	}))
	t.Cleanup(server.Close)
	body, err := a.Do(ctx, func(ctx context.Context) (*http.Request, error) {
		return http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/?token=hunter2", strings.NewReader("x"))
	})
	return int(calls.Load()), body, err
}

func status(code int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = w.Write([]byte(text))
	}
}

// An answer of 429 or 5xx is worth one more attempt; others are not.
func TestWhatIsTriedAgain(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]int{200: 1, 202: 1, 301: 1, 400: 1, 401: 1, 403: 1, 404: 1, 409: 1, 429: 2, 500: 2, 503: 2} {
		calls, _, err := called(t.Context(), t, &apicall.API{Name: "it"}, status(code, "text"))
		assert.Equal(t, want, calls, code)
		var refused *apicall.StatusError
		if code < 300 {
			require.NoError(t, err)
		} else if assert.ErrorAs(t, err, &refused) {
			assert.Equal(t, code, refused.Status)
		}
	}
	calls, body, err := called(t.Context(), t, &apicall.API{}, status(503, ""), status(200, "done"))
	require.NoError(t, err)
	assert.Equal(t, "done", string(body))
	assert.Equal(t, 2, calls)
}

// A pause that is longer than the call may take is not waited for, and a server that does not answer ends with the context.
func TestACallEndsInTime(t *testing.T) {
	t.Parallel()
	begun := time.Now()
	calls, _, err := called(t.Context(), t, &apicall.API{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	require.Error(t, err)
	assert.Equal(t, 1, calls)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, _, err = called(ctx, t, &apicall.API{Name: "it"}, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.NotContains(t, err.Error(), "hunter2", "the URL may have a secret")
	assert.Less(t, time.Since(begun), 4*time.Second)
}

// An error says who refused, why and what to do, in one short line without secrets.
func TestWhatErrorsSay(t *testing.T) {
	t.Parallel()
	a := &apicall.API{Name: "Clock", Hidden: []string{"", "hunter2"}, Todo: map[int]string{403: "give it the right to"}}
	_, _, err := called(t.Context(), t, a, status(403, "no\r\n for hunter2\xff"))
	require.EqualError(t, err, "Clock answered 403 Forbidden: no for ***; give it the right to")
	_, _, err = called(t.Context(), t, a, status(400, strings.Repeat("x ", 1000)))
	require.Error(t, err)
	assert.Less(t, len(err.Error()), 400)
	_, _, err = called(t.Context(), t, a, status(302, ""))
	require.ErrorContains(t, err, "redirects are not followed")
	_, err = a.Do(t.Context(), func(context.Context) (*http.Request, error) { return nil, errors.New("unsigned") })
	require.EqualError(t, err, "Clock: unsigned")
}

func TestCheckURL(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"https://a.example/x": true, "http://127.0.0.1:1/x": true, "http://localhost": true, "http://[::1]:2": true,
		"http://a.example": false, "": false, "a.example": false, "ftp://a.example": false, "https://": false, "https://%zz": false,
	} {
		err := apicall.CheckURL("URL", text, false)
		assert.Equal(t, ok, err == nil, text)
	}
	require.NoError(t, apicall.CheckURL("URL", "http://a.example", true))
}

// Calls share a connection; one that has ended meanwhile, as that of a host that was frozen, costs another attempt.
func TestConnectionsAreKept(t *testing.T) {
	t.Parallel()
	var opened atomic.Int64
	server := httptest.NewUnstartedServer(status(http.StatusOK, "ok"))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	client := apicall.NewClient()
	t.Cleanup(client.CloseIdleConnections)
	a := &apicall.API{Name: "it", Client: client}
	call := func() {
		t.Helper()
		body, err := a.Do(t.Context(), func(ctx context.Context) (*http.Request, error) {
			return http.NewRequestWithContext(ctx, http.MethodPost, server.URL, strings.NewReader("x"))
		})
		require.NoError(t, err)
		assert.Equal(t, "ok", string(body))
	}
	for range 5 {
		call()
	}
	assert.EqualValues(t, 1, opened.Load())
	server.CloseClientConnections()
	call()
	assert.EqualValues(t, 2, opened.Load())
}
