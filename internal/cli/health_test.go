package cli_test

import (
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A probe asks a daemon whose API listens on this machine alone, and needs no token: whether it responds, and whether it can work.
func TestHealth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := w.start(t, "daemon", "-c", file(t, handlersFile), "--http", "127.0.0.1:0")
	url := d.url(t)
	require.Eventually(t, func() bool { return w.duly(t, "health", "--ready", "--server", url).code == 0 }, 20*time.Second, 50*time.Millisecond)
	w.ok(t, "health", "--server", url)
	w.redis.Kill()
	require.Eventually(t, func() bool { return w.duly(t, "health", "--ready", "--server", url).code != 0 }, 20*time.Second, 200*time.Millisecond)
	r := w.duly(t, "health", "--ready", "--server", url)
	assert.Contains(t, r.stderr, "503 Service Unavailable")
	w.ok(t, "health", "--server", url)
	_ = d.cmd.Process.Signal(syscall.SIGKILL)
	<-d.ended
	r = w.duly(t, "health", "--server", url)
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.stderr, "start duly daemon --http")
}
