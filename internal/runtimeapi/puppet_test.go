package runtimeapi_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/internal/runtimeapi"
)

const modeVariable = "DULY_TEST_PUPPET"

// TestMain is also the program that an environment runs: it lives until its standard input ends. What a program says to the
// Runtime API the test says in its place.
func TestMain(m *testing.M) {
	switch os.Getenv(modeVariable) {
	case "":
		goleak.VerifyTestMain(m)
	case "deaf":
		signal.Ignore(syscall.SIGTERM)
		fallthrough
	default:
		fmt.Print(".") // it can be sent signals now
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
}

// puppet is an environment whose program does what the test says.
type puppet struct {
	*testing.T

	environment *runtimeapi.Environment
	lives       chan *life
	client      *http.Client
}

// life is one process of the program.
type life struct {
	url string
	cmd *exec.Cmd
	in  io.Closer
}

func newPuppet(t *testing.T, timeout time.Duration, mode string) *puppet {
	t.Helper()
	p := &puppet{T: t, lives: make(chan *life, 10), client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	self, err := os.Executable()
	require.NoError(t, err)
	p.environment, err = runtimeapi.New(timeout, func(address string) *exec.Cmd {
		cmd := exec.Command(self)
		cmd.Env = []string{modeVariable + "=" + mode, "GORACE=atexit_sleep_ms=0"}
		in, err := cmd.StdinPipe()
		assert.NoError(t, err)
		ready := make(ready, 1)
		cmd.Stdout = ready
		p.lives <- &life{url: "http://" + address, cmd: cmd, in: in}
		return cmd
	})
	require.NoError(t, err)
	t.Cleanup(p.environment.Close)
	return p
}

// ready is told when something was written to it.
type ready chan struct{}

func (r ready) Write(data []byte) (int, error) {
	r <- struct{}{}
	return len(data), nil
}

// invocation is an event that is under way.
type invocation struct {
	result runtimeapi.Result
	err    error
}

func (p *puppet) invoke(event string) <-chan invocation {
	ended := make(chan invocation, 1)
	go func() {
		r, err := p.environment.Invoke(p.Context(), []byte(event))
		ended <- invocation{r, err}
	}()
	return ended
}

// result waits for the end of an invocation.
func (p *puppet) result(ended <-chan invocation) runtimeapi.Result {
	p.Helper()
	select {
	case i := <-ended:
		require.NoError(p, i.err)
		return i.result
	case <-time.After(20 * time.Second):
		p.Fatal("the invocation does not end")
		return runtimeapi.Result{}
	}
}

// started is the process that an invocation has started, once it can be sent signals.
func (p *puppet) started() *life {
	p.Helper()
	l := <-p.lives
	<-l.cmd.Stdout.(ready)
	return l
}

// reply is an HTTP answer.
type reply struct {
	status int
	header http.Header
	body   string
}

// call sends a request.
func (p *puppet) call(ctx context.Context, method, url, body string, headers ...string) (reply, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := p.client.Do(r)
	if err != nil {
		return reply{}, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, string(data)}, err
}

// next asks for an event: its id, its body and its headers.
func (p *puppet) next(l *life) (id, event string, h http.Header) {
	p.Helper()
	r, err := p.call(p.Context(), http.MethodGet, l.url+"/2018-06-01/runtime/invocation/next", "")
	require.NoError(p, err)
	require.Equal(p, 200, r.status)
	return r.header.Get("Lambda-Runtime-Aws-Request-Id"), r.body, r.header
}

// waits asks for an event that does not come: the request ends with the test.
func (p *puppet) waits(l *life) {
	ctx, cancel := context.WithCancel(p.Context())
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = p.call(ctx, http.MethodGet, l.url+"/2018-06-01/runtime/invocation/next", "")
	}()
	p.Cleanup(func() {
		cancel()
		<-gone
	})
}

// answer says that an invocation has succeeded ("response") or failed ("error"), and returns the status of that.
func (p *puppet) answer(l *life, id, how, body string) int {
	p.Helper()
	r, err := p.call(p.Context(), http.MethodPost, l.url+"/2018-06-01/runtime/invocation/"+id+"/"+how, body)
	require.NoError(p, err)
	return r.status
}

// ends lets a process exit by itself.
func (p *puppet) ends(l *life) {
	p.Helper()
	require.NoError(p, l.in.Close())
}

// signal is what has ended a process, if it was a signal. The process has to have ended.
func (l *life) signal() syscall.Signal { return l.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal() }
