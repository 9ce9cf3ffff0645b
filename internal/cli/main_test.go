package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/race"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// The tests run the binary as users do. If the race detector watches the tests, it watches the binary too, but for plain, which runs the
// commands that ask and end: there the detector would find little, and each would take five times as long.
var binary, plain string

// program is the package of the binary.
const program = "github.com/seed-6f6f2c11/duly/cmd/duly"

// watched are the commands that run tasks or serve: much of them runs side by side.
var watched = []string{"daemon", "mcp", "run", "run-due", "serve", "work"}

// build builds the binary and returns its path.
func build(path string, flags ...string) string {
	if out, err := exec.Command("go", append(append([]string{"build"}, flags...), "-o", path, program)...).CombinedOutput(); err != nil {
		panic(string(out))
	}
	return path
}

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "duly")
	if err != nil {
		panic(err)
	}
	plain = build(filepath.Join(dir, "plain"))
	binary = filepath.Join(dir, "duly")
	if race.Enabled {
		build(binary, "-race")
	} else if err := os.Link(plain, binary); err != nil {
		panic(err)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// world is a Redis and an environment for the binary.
type world struct {
	redis *redistest.Server
	env   []string
	as    *syscall.SysProcAttr // whom started processes run as; the test's user if nil
}

// newWorld starts a Redis that the binary finds by its environment.
func newWorld(t *testing.T) *world {
	t.Helper()
	w := noRedis()
	w.redis = redistest.Start(t)
	w.env = append(w.env, "DULY_REDIS_URL="+w.redis.URL)
	return w
}

// noRedis is a world without a Redis.
func noRedis() *world {
	return &world{env: []string{"PATH=" + os.Getenv("PATH"), "GORACE=halt_on_error=1 exitcode=66 atexit_sleep_ms=0"}}
}

// inMemory is a world whose tasks end with their process.
func inMemory() *world {
	w := noRedis()
	w.env = append(w.env, "DULY_STORE=memory")
	return w
}

// result is what a command that has ended has said.
type result struct {
	stdout, stderr string
	code           int
}

// duly runs a command to its end.
func (w *world) duly(t *testing.T, args ...string) result {
	t.Helper()
	return w.dulyWith(t, "", args...)
}

func (w *world) dulyWith(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var stdout, stderr bytes.Buffer
	path := plain
	if len(args) > 0 && slices.Contains(watched, args[0]) {
		path = binary
	}
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = w.env, strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		require.NoError(t, err)
	}
	r := result{stdout: stdout.String(), stderr: stderr.String(), code: cmd.ProcessState.ExitCode()}
	require.NotContains(t, r.stderr, "DATA RACE")
	return r
}

// ok runs a command that has to succeed and returns its standard output.
func (w *world) ok(t *testing.T, args ...string) string {
	t.Helper()
	r := w.duly(t, args...)
	require.Equal(t, 0, r.code, "%v: %s", args, r.stderr)
	return r.stdout
}

// parse reads the JSON that a command wrote.
func parse[V any](t *testing.T, text string) V {
	t.Helper()
	var v V
	require.NoError(t, json.Unmarshal([]byte(text), &v), text)
	return v
}

// object is what --json of a command says.
func (w *world) object(t *testing.T, args ...string) map[string]any {
	t.Helper()
	return parse[map[string]any](t, w.ok(t, append(args, "--json")...))
}

// oneLine checks that an error is told as it has to be.
func oneLine(t *testing.T, r result, code int, parts ...string) {
	t.Helper()
	assert.Equal(t, code, r.code, r.stderr)
	assert.Equal(t, 1, strings.Count(r.stderr, "\n"), r.stderr)
	assert.True(t, strings.HasPrefix(r.stderr, "duly: "), r.stderr)
	for _, part := range parts {
		assert.Contains(t, r.stderr, part)
	}
	assert.Empty(t, r.stdout)
}

// scheduler asks the Redis of the world without the binary.
func (w *world) scheduler(t *testing.T) *core.Scheduler {
	t.Helper()
	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: w.redis.URL})
	require.NoError(t, err)
	t.Cleanup(func() { _ = st.Close() })
	s, err := core.New(st, core.Config{})
	require.NoError(t, err)
	return s
}

// settled waits until a task has a status.
func settled(t *testing.T, s *core.Scheduler, agent, id string, want core.Status) core.TaskInfo {
	t.Helper()
	var task core.TaskInfo
	require.Eventually(t, func() bool {
		var err error
		task, err = s.Task(t.Context(), agent, id)
		return err == nil && task.Status == want
	}, 20*time.Second, 5*time.Millisecond, "%s of %s is not %s", id, agent, want)
	return task
}

// file writes a configuration and returns its path.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "duly.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// read is the text of a file.
func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(data)
}

// running is a command that runs.
type running struct {
	cmd   *exec.Cmd
	ended chan struct{}

	mu    sync.Mutex
	lines []string
	more  chan struct{} // closed and replaced with each line
}

// start starts a command. It is killed when the test ends, if it has not ended before.
func (w *world) start(t *testing.T, args ...string) *running {
	t.Helper()
	r := &running{cmd: exec.Command(binary, args...), ended: make(chan struct{}), more: make(chan struct{})}
	r.cmd.Env, r.cmd.SysProcAttr = w.env, w.as
	stderr, err := r.cmd.StderrPipe()
	require.NoError(t, err)
	r.cmd.Stdout = r.cmd.Stderr // what it says and what it answers, in order
	require.NoError(t, r.cmd.Start())
	go r.read(stderr)
	t.Cleanup(func() {
		_ = r.cmd.Process.Kill()
		<-r.ended
		assert.NotContains(t, r.log(), "DATA RACE")
		if t.Failed() {
			t.Logf("%v:\n%s", args, r.log())
		}
	})
	return r
}

func (r *running) read(stderr io.Reader) {
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		r.mu.Lock()
		r.lines = append(r.lines, lines.Text())
		close(r.more)
		r.more = make(chan struct{})
		r.mu.Unlock()
	}
	_ = r.cmd.Wait()
	close(r.ended)
}

func (r *running) log() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, "\n")
}

// line waits for a line that has all parts, and returns it.
func (r *running) line(t *testing.T, parts ...string) string {
	t.Helper()
	timeout := time.After(20 * time.Second)
	for {
		r.mu.Lock()
		more := r.more
		for _, line := range r.lines {
			found := true
			for _, part := range parts {
				found = found && strings.Contains(line, part)
			}
			if found {
				r.mu.Unlock()
				return line
			}
		}
		r.mu.Unlock()
		select {
		case <-more:
		case <-r.ended:
			require.Fail(t, "the command ended without a line", "%q in:\n%s", parts, r.log())
		case <-timeout:
			require.Fail(t, "no line", "%q in:\n%s", parts, r.log())
		}
	}
}

// url is where the API of a daemon is.
func (r *running) url(t *testing.T) string {
	t.Helper()
	_, url, _ := strings.Cut(r.line(t, "listening url="), "url=")
	url, _, _ = strings.Cut(url, " ")
	return url
}

// stop sends a signal, waits for the end and returns the exit code and how long it took.
func (r *running) stop(t *testing.T, signal syscall.Signal) (int, time.Duration) {
	t.Helper()
	sent := time.Now()
	require.NoError(t, r.cmd.Process.Signal(signal))
	select {
	case <-r.ended:
	case <-time.After(30 * time.Second):
		require.Fail(t, "it does not end", "log:\n%s", r.log())
	}
	return r.cmd.ProcessState.ExitCode(), time.Since(sent)
}

// dbsize is the number of keys in the Redis.
func (w *world) dbsize(t *testing.T) string {
	t.Helper()
	n, err := w.redis.Client(t).DBSize(t.Context()).Result()
	require.NoError(t, err)
	return fmt.Sprint(n)
}
