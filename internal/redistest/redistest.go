// Package redistest gives tests a redis-server of their own: a process started by the test binary, without
// persistence, on a unix socket or a free port, in a folder that goes with it. No test talks to any other server.
package redistest

import (
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// Server is a running redis-server.
// It lives as long as its test.
// Password may be set before a client is made; the rest stays the same over a restart.
type Server struct {
	// URL for clients: unix:// or redis://.
	URL string
	// Addr is the socket's path, or host and port.
	Addr string
	// Password is what Client uses; set it for a server that was started with one.
	Password string

	binary string
	args   []string
	cmd    *exec.Cmd
	tls    *tls.Config // of a client; nil if the server does not speak TLS
}

// Binary is the redis-server to use: $DULY_TEST_REDIS_SERVER, or the one on the PATH. The test fails without one, with
// what to do.
func Binary(tb testing.TB) string {
	tb.Helper()
	if path := os.Getenv("DULY_TEST_REDIS_SERVER"); path != "" {
		return path
	}
	path, err := exec.LookPath("redis-server")
	if err != nil {
		tb.Fatal("no redis-server: run the tests with `make test`, which gets one, or set DULY_TEST_REDIS_SERVER to its path")
	}
	return path
}

// Start starts a server on a unix socket, with extra arguments, and stops it when the test ends.
// A socket cannot collide with those of other tests, so that this is what a test uses unless it needs
// a port.
func Start(tb testing.TB, args ...string) *Server {
	tb.Helper()
	s := Prepare(tb, args...)
	s.launch(tb)
	return s
}

// Prepare is Start for a server whose folder, that of its socket, is to be filled before [Server.Restart] starts it.
func Prepare(tb testing.TB, args ...string) *Server {
	tb.Helper()
	// A socket's path must be short, so not tb.TempDir, which has the name of the test in it.
	dir, err := os.MkdirTemp("", "duly") //nolint:usetesting // see above
	require.NoError(tb, err)
	tb.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "redis.sock")
	s := &Server{URL: "unix://" + socket, Addr: socket, binary: Binary(tb)}
	s.args = append([]string{"--port", "0", "--unixsocket", socket, "--save", "", "--dir", dir}, args...)
	tb.Cleanup(s.Kill)
	return s
}

// StartTCP is Start on a free port of the loopback interface, for what cannot use a socket.
func StartTCP(tb testing.TB, args ...string) *Server {
	tb.Helper()
	addr := FreeAddr(tb)
	_, port, err := net.SplitHostPort(addr)
	require.NoError(tb, err)
	s := &Server{URL: fmt.Sprintf("redis://%s/0", addr), Addr: addr, binary: Binary(tb)}
	s.args = append([]string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", tb.TempDir()}, args...)
	s.launch(tb)
	tb.Cleanup(s.Kill)
	return s
}

// FreeAddr is an address of the loopback interface that was free just now, and whose bus is, at which a node of a cluster hears the others.
// The port is one of those that no system gives to a connection, so that neither a client of another test takes it before the server has it, nor
// one that dials a server which was killed reaches itself.
func FreeAddr(tb testing.TB) string {
	tb.Helper()
	for range 1000 {
		port := firstPort + rand.IntN(busOffset)
		if listens(tb, port) && listens(tb, port+busOffset) {
			return address(port)
		}
	}
	tb.Fatal("no port is free")
	return ""
}

// firstPort and busOffset above it are below what Linux and others give to connections.
const firstPort = 10_000

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

func listens(tb testing.TB, port int) bool {
	tb.Helper()
	l, err := (&net.ListenConfig{}).Listen(tb.Context(), "tcp", address(port))
	if err != nil {
		return false
	}
	require.NoError(tb, l.Close())
	return true
}

// launch starts the process and waits until it answers.
// What a server says that does not start is in the failure.
func (s *Server) launch(tb testing.TB) {
	tb.Helper()
	s.cmd = exec.Command(s.binary, s.args...)
	said, err := os.Create(filepath.Join(tb.TempDir(), "log"))
	require.NoError(tb, err)
	defer said.Close()
	s.cmd.Stdout, s.cmd.Stderr = said, said
	require.NoError(tb, s.cmd.Start())
	c := s.Client(tb)
	answers := func() bool {
		err := c.Ping(context.Background()).Err()
		return err == nil || redis.HasErrorPrefix(err, "NOAUTH") // its test has the password
	}
	for deadline := time.Now().Add(30 * time.Second); !answers(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			text, _ := os.ReadFile(said.Name())
			require.Fail(tb, "redis-server did not start", "%s", text)
		}
	}
}

// Kill ends the server at once, as a crash would.
// Nothing is written to disk, so that a restart begins empty unless the arguments say otherwise.
// It waits until the process is gone, so that its socket or port is free again. Killing twice is fine.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_, _ = s.cmd.Process.Wait()
	s.cmd = nil
}

// Restart starts a killed server again, with the same arguments.
func (s *Server) Restart(tb testing.TB) {
	tb.Helper()
	s.launch(tb)
}

// Client is a plain client, closed when the test ends.
// It names no library to the server, and so sends nothing that a test of commands would have to allow
// for.
func (s *Server) Client(tb testing.TB) *redis.Client {
	tb.Helper()
	o, err := redis.ParseURL(s.URL)
	require.NoError(tb, err)
	o.DisableIdentity, o.TLSConfig, o.Password = true, s.tls, s.Password
	c := redis.NewClient(o)
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// Pid is the process id of the server.
func (s *Server) Pid() int { return s.cmd.Process.Pid }
