package main

import (
	"context"
	"net"
	"net/http"
	"testing"
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
