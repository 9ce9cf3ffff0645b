package attack_test

// The program under attack: built once, started with a hostile environment, and everything that it writes.

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

// folder holds what the tests have built.
var folder string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "duly")
	if err != nil {
		panic(err)
	}
	folder, net.DefaultResolver = dir, resolver()
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// built is the program, made when a test first asks for it: most tests need none.
var built = sync.OnceValues(func() (string, error) {
	path := filepath.Join(folder, "duly")
	out, err := exec.Command("go", "build", "-o", path, "github.com/seed-6f6f2c11/duly/cmd/duly").CombinedOutput()
	if err != nil {
		_, _ = os.Stderr.Write(out)
	}
	return path, err
})

// program is the binary with its environment. What a test needs beyond PATH it adds.
type program struct {
	path string
	env  []string
}

func newProgram(t *testing.T, env ...string) *program {
	t.Helper()
	path, err := built()
	require.NoError(t, err)
	return &program{path: path, env: append([]string{"PATH=" + os.Getenv("PATH"), "DULY_STORE=memory"}, env...)}
}

// run runs a command to its end and returns all that it wrote. Whether it succeeds is not asked: a hostile argument is refused.
func (p *program) run(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.Env = p.env
	out, _ := cmd.CombinedOutput()
	assert.NoError(t, ctx.Err(), "%q does not end", args)
	return string(out)
}

// server is a command that runs until the test ends.
type server struct {
	cmd   *exec.Cmd
	url   string
	ended chan struct{}

	mu   sync.Mutex
	text bytes.Buffer
	more chan struct{} // closed and replaced when something is written
}

// Write keeps what the server writes.
func (s *server) Write(data []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(data)
	close(s.more)
	s.more = make(chan struct{})
	return len(data), nil
}

// log is all that the server has written.
func (s *server) log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// waitFor waits until the server has written a text.
func (s *server) waitFor(t *testing.T, text string) {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		s.mu.Lock()
		found, more := bytes.Contains(s.text.Bytes(), []byte(text)), s.more
		s.mu.Unlock()
		if found {
			return
		}
		select {
		case <-more:
		case <-s.ended:
			require.Contains(t, s.log(), text, "the server has ended")
			return
		case <-timeout:
			require.Fail(t, "the server does not write it", "%q in:\n%s", text, s.log())
		}
	}
}

// start starts a command that serves the API, on a port of its own.
func (p *program) start(t *testing.T, args ...string) *server {
	t.Helper()
	s := &server{cmd: exec.Command(p.path, append(args, "--http", "127.0.0.1:0")...), ended: make(chan struct{}), more: make(chan struct{})}
	s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = p.env, s, s
	require.NoError(t, s.cmd.Start())
	go func() {
		_ = s.cmd.Wait()
		close(s.ended)
	}()
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.ended
	})
	const before = "http://127.0.0.1:"
	s.waitFor(t, before) // the line is written at once, so the port is whole
	_, port, _ := strings.Cut(s.log(), before)
	s.url = before + port[:strings.IndexFunc(port, func(r rune) bool { return r < '0' || r > '9' })]
	return s
}

// file writes a configuration and returns its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "duly.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
