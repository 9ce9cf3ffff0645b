package examples_test

import (
	"bufio"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// folder is where the tests of this package build programs, once each.
var folder = sync.OnceValues(func() (string, error) { return os.MkdirTemp("", "duly-examples") })

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if dir, err := folder(); err == nil {
			_ = os.RemoveAll(dir)
		}
		os.Exit(code)
	}))
}

// noticeSource reads the module's folders, which tells `go test` that the result depends on the files in them: what go build
// and scripts read it does not see, and would answer with a cached "ok" after a change.
func noticeSource() error {
	return filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && path != ".." && strings.HasPrefix(entry.Name(), ".") {
			return fs.SkipDir
		}
		return err
	})
}

// compile builds a package of this module.
func compile(name, pkg string) (string, error) {
	dir, err := folder()
	if err != nil {
		return "", err
	}
	if err := noticeSource(); err != nil {
		return "", err
	}
	program := filepath.Join(dir, name)
	if out, err := exec.Command("go", "build", "-o", program, pkg).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return program, nil
}

// service is a program that listens at $PORT of the loopback interface, on a Redis of its own.
type service struct {
	*testing.T

	cmd       *exec.Cmd
	client    *http.Client
	url       string
	redis     *redistest.Server
	lines     chan string   // of its log
	ended     chan struct{} // closed when the process has ended
	exit      error         // how: to be read then
	scheduler *core.Scheduler
}

// launch starts a program of the examples, which reads its settings from the environment.
func launch(t *testing.T, program string, env ...string) *service {
	t.Helper()
	return launchAs(t, func(port, redisURL string) *exec.Cmd {
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), "PORT="+port, "DULY_REDIS_URL="+redisURL)
		cmd.Env = append(cmd.Env, env...)
		return cmd
	})
}

// launchAs starts a program and waits until it listens. When the test ends it is killed, if it still runs.
func launchAs(t *testing.T, command func(port, redisURL string) *exec.Cmd) *service {
	t.Helper()
	s := &service{
		T: t, redis: redistest.StartTCP(t), lines: make(chan string, 1000), ended: make(chan struct{}),
		client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	}
	store, err := redisstore.Open(t.Context(), redisstore.Config{URL: s.redis.URL})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	s.scheduler, err = core.New(store, core.Config{})
	require.NoError(t, err)
	port := freePort(t)
	s.url = "http://127.0.0.1:" + port
	s.cmd = command(port, s.redis.URL)
	out, err := s.cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	go s.watch(out)
	t.Cleanup(func() {
		_ = s.cmd.Process.Kill()
		<-s.ended
	})
	require.Eventually(t, func() bool {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", "127.0.0.1:"+port)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, 20*time.Second, 5*time.Millisecond)
	return s
}

func freePort(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(redistest.FreeAddr(t))
	require.NoError(t, err)
	return port
}

// watch reads the log until the process ends.
func (s *service) watch(log io.Reader) {
	for scan := bufio.NewScanner(log); scan.Scan(); {
		select {
		case s.lines <- scan.Text():
		default: // nobody waits for that much
		}
	}
	s.exit = s.cmd.Wait()
	close(s.ended)
}

// logged waits for a line of the log that has a text.
func (s *service) logged(text string) {
	s.Helper()
	limit := time.NewTimer(20 * time.Second)
	defer limit.Stop()
	for {
		select {
		case line := <-s.lines:
			if strings.Contains(line, text) {
				return
			}
		case <-s.ended:
			s.Fatalf("the program has ended without logging %q", text)
		case <-limit.C:
			s.Fatalf("the program did not log %q", text)
		}
	}
}

// end waits until the process has ended, and is how.
func (s *service) end() error {
	s.Helper()
	select {
	case <-s.ended:
		return s.exit
	case <-time.After(20 * time.Second):
		s.Fatal("the program does not end")
		return nil
	}
}

// post sends a request, with headers as pairs.
func (s *service) post(path, body string, headers ...string) (int, string, error) {
	return s.send(http.MethodPost, path, body, headers...)
}

func (s *service) send(method, path, body string, headers ...string) (int, string, error) {
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := s.client.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return res.StatusCode, string(data), err
}

// task is a task of the agent ada.
func (s *service) task(id string) core.TaskInfo {
	s.Helper()
	task, err := s.scheduler.Task(s.Context(), "ada", id)
	require.NoError(s, err)
	return task
}

func (s *service) submit(tasks ...core.NewTask) {
	s.Helper()
	_, err := s.scheduler.Submit(s.Context(), tasks...)
	require.NoError(s, err)
}
