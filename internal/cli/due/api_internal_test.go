package due

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A request that runs tasks has the grace, is told to end then, and is waited for while it gives them back.
func TestTheServerWaitsForItsRequests(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	began, told, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
		close(told)
		<-release
	})}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- (&api{listener: listener, stopping: make(chan struct{})}).serve(ctx, server, 50*time.Millisecond)
	}()
	answered := make(chan error, 1)
	go func() {
		client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		res, err := client.Get("http://" + listener.Addr().String())
		if err == nil {
			err = res.Body.Close()
		}
		answered <- err
	}()
	<-began
	stopped := time.Now()
	stop()
	<-told
	assert.GreaterOrEqual(t, time.Since(stopped), 50*time.Millisecond)
	select {
	case <-ended:
		assert.Fail(t, "the server has ended before its request")
	default:
	}
	close(release)
	require.NoError(t, <-ended)
	require.NoError(t, <-answered)
}

// All who ask whether duly serve is ready cost the store one question a second, which is not cut off with the one that it is
// asked for.
func TestReadinessIsAskedForOnceASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked, away := 0, errors.New("away")
		var says error
		r := newReadiness(func(ctx context.Context) error {
			asked++
			time.Sleep(time.Second)
			return cmp.Or(ctx.Err(), says)
		})
		answers := make(chan error, 50)
		gone, goAway := context.WithCancel(t.Context())
		go func() { answers <- r.ask(gone) }()
		synctest.Wait()
		for range 49 {
			go func() { answers <- r.ask(t.Context()) }()
		}
		goAway()
		for range 50 {
			require.NoError(t, <-answers)
		}
		assert.Equal(t, 1, asked)
		says = away
		time.Sleep(readyFor - time.Nanosecond)
		require.NoError(t, r.ask(t.Context()))
		time.Sleep(time.Nanosecond)
		for range 5 {
			require.ErrorIs(t, r.ask(t.Context()), away)
		}
		assert.Equal(t, 2, asked)

		time.Sleep(readyFor)
		r.check = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }
		begun := time.Now()
		require.ErrorIs(t, r.ask(t.Context()), context.DeadlineExceeded)
		assert.Equal(t, readyWithin, time.Since(begun), "a store that hangs does not answer")
	})
}
