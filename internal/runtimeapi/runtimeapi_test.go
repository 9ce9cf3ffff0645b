package runtimeapi_test

import (
	"context"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/runtimeapi"
)

const timeout = 30 * time.Second

// An event is handed out with what the program has to know of it, and is answered when the program asks for the next one.
func TestAnEventIsAnswered(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, timeout, "stay")
	begun := time.Now().Truncate(time.Millisecond)
	first := p.invoke(`{"n":1}`)
	l := p.started()
	id, event, h := p.next(l)
	assert.JSONEq(t, `{"n":1}`, event)
	assert.Equal(t, "application/json", h.Get("Content-Type"))
	assert.NotEmpty(t, id)
	assert.Contains(t, h.Get("Lambda-Runtime-Invoked-Function-Arn"), "arn:aws:lambda:")
	assert.Contains(t, h.Get("Lambda-Runtime-Trace-Id"), "Root=")
	deadline, err := strconv.ParseInt(h.Get("Lambda-Runtime-Deadline-Ms"), 10, 64)
	require.NoError(t, err)
	assert.WithinRange(t, time.UnixMilli(deadline), begun.Add(timeout), time.Now().Add(timeout))
	assert.Equal(t, 202, p.answer(l, id, "response", `"one"`))

	// What asks for the next event completes the first one, so that the second can be sent.
	completed, second := make(chan invocation, 1), make(chan invocation, 1)
	go func() {
		completed <- <-first
		second <- <-p.invoke(`{"n":2}`)
	}()
	other, event, _ := p.next(l)
	assert.JSONEq(t, `{"n":2}`, event)
	assert.NotEqual(t, id, other)
	r := p.result(completed)
	assert.Equal(t, `"one"`, string(r.Payload))
	assert.False(t, r.Failed || r.Exited || r.TimedOut || r.TooLarge)
	assert.Less(t, r.Took, timeout)
	assert.Equal(t, 202, p.answer(l, other, "error", `{"errorMessage":"no"}`))
	p.waits(l)
	r = p.result(second)
	assert.True(t, r.Failed)
	assert.False(t, r.Exited, "the program goes on")
	assert.JSONEq(t, `{"errorMessage":"no"}`, string(r.Payload))
	assert.Empty(t, p.lives, "all by one process")
}

// An answer alone does not complete an invocation: a program that dies after it has ended with it.
func TestAnAnswerIsNoEnd(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, timeout, "stay")
	ended := p.invoke("1")
	l := p.started()
	id, _, _ := p.next(l)
	require.Equal(t, 202, p.answer(l, id, "response", "2"))
	_, err := p.environment.Invoke(t.Context(), []byte("3"))
	require.ErrorIs(t, err, runtimeapi.ErrBusy)
	p.ends(l)
	r := p.result(ended)
	assert.True(t, r.Exited, "it is known when the invocation is complete")
	assert.False(t, r.Failed)
	assert.Equal(t, "2", string(r.Payload))
}

// Only the event under way can be answered, and once.
func TestAnswersThatFitNothing(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, timeout, "stay")
	ended := p.invoke("1")
	l := p.started()
	id, _, _ := p.next(l)
	assert.Equal(t, 400, p.answer(l, "invocation-9", "response", "2"))
	assert.Equal(t, 400, p.answer(l, "invocation-9", "error", "2"))
	assert.Equal(t, 202, p.answer(l, id, "error", `"first"`))
	assert.Equal(t, 400, p.answer(l, id, "response", "again"))
	p.waits(l)
	r := p.result(ended)
	assert.True(t, r.Failed)
	assert.Equal(t, `"first"`, string(r.Payload))
	assert.Equal(t, 400, p.answer(l, id, "response", "late"))
}

// An answer may be as large as Lambda takes it, and not a byte larger.
func TestTheSizeOfAnswers(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, timeout, "stay")
	ended := p.invoke("1")
	l := p.started()
	id, _, _ := p.next(l)
	require.Equal(t, 202, p.answer(l, id, "response", strings.Repeat("x", runtimeapi.MaxResponse)))
	p.ends(l)
	r := p.result(ended)
	assert.Len(t, r.Payload, runtimeapi.MaxResponse)
	assert.False(t, r.Failed || r.TooLarge)

	ended = p.invoke("2")
	l = p.started()
	id, _, _ = p.next(l)
	require.Equal(t, http.StatusRequestEntityTooLarge, p.answer(l, id, "response", strings.Repeat("x", runtimeapi.MaxResponse+1)))
	p.ends(l)
	r = p.result(ended)
	assert.True(t, r.Failed && r.TooLarge && r.Exited)
	assert.Empty(t, r.Payload)
}

// A program that ends without an answer has failed. The next event starts another one, which knows nothing of the first.
func TestAProgramThatEnds(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, timeout, "stay")
	ended := p.invoke("1")
	l := p.started()
	res, err := p.call(t.Context(), http.MethodPost, l.url+"/2018-06-01/runtime/init/error", `{"errorType":"Init"}`)
	require.NoError(t, err)
	assert.Equal(t, 202, res.status)
	p.ends(l)
	r := p.result(ended)
	assert.True(t, r.Failed && r.Exited)
	assert.JSONEq(t, `{"errorType":"Init"}`, string(r.Payload), "why it could not start")
	assert.Zero(t, r.Took, "it never had the event")

	ended = p.invoke("2")
	l = p.started()
	_, event, _ := p.next(l)
	assert.Equal(t, "2", event)
	p.ends(l)
	r = p.result(ended)
	assert.True(t, r.Failed && r.Exited)
	assert.False(t, r.TimedOut)
	assert.Empty(t, r.Payload, "the error was that of another life")
}

// What has no answer at the deadline is killed.
func TestADeadline(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, 50*time.Millisecond, "stay")
	ended := p.invoke("1")
	l := p.started()
	p.next(l)
	r := p.result(ended)
	assert.True(t, r.TimedOut && r.Failed && r.Exited)
	assert.GreaterOrEqual(t, r.Took, 50*time.Millisecond)
	assert.Equal(t, syscall.SIGKILL, l.signal(), "it has asked for no SIGTERM")
}

// A program that has registered an extension is sent SIGTERM before it is killed; another is killed at once.
func TestHowAProgramIsEnded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode     string
		register bool
		want     syscall.Signal
	}{
		"registered":           {"stay", true, syscall.SIGTERM},
		"registered, and deaf": {"deaf", true, syscall.SIGKILL},
		"not registered":       {"stay", false, syscall.SIGKILL},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPuppet(t, timeout, c.mode)
			ended := p.invoke("1")
			l := p.started()
			p.next(l)
			if c.register {
				p.register(l)
			}
			p.environment.Shutdown()
			assert.Equal(t, c.want, l.signal())
			r := p.result(ended)
			assert.True(t, r.Failed && r.Exited)
			assert.False(t, r.TimedOut)
		})
	}
}

// register registers an extension, which then waits for an event that never comes.
func (p *puppet) register(l *life) {
	p.Helper()
	to := l.url + "/2020-01-01/extension/register"
	res, err := p.call(p.Context(), http.MethodPost, to, `{"events":[]}`)
	require.NoError(p, err)
	assert.Equal(p, 400, res.status, "it has to say its name")
	assert.Zero(p, p.environment.Extensions())
	res, err = p.call(p.Context(), http.MethodPost, to, `{"events":[]}`, "Lambda-Extension-Name", "self")
	require.NoError(p, err)
	assert.Equal(p, 200, res.status)
	assert.Contains(p, res.body, `"functionName"`)
	assert.NotEmpty(p, res.header.Get("Lambda-Extension-Identifier"))
	assert.Equal(p, 1, p.environment.Extensions())
	gone := make(chan error, 1)
	go func() {
		event, err := p.call(p.Context(), http.MethodGet, l.url+"/2020-01-01/extension/event/next", "")
		assert.Empty(p, event.body)
		gone <- err
	}()
	p.Cleanup(func() {
		p.environment.Close() // ends the wait
		<-gone
	})
}

// One environment has one event at a time; another is none of its business.
func TestAnEnvironmentIsBusy(t *testing.T) {
	t.Parallel()
	p, q := newPuppet(t, timeout, "stay"), newPuppet(t, timeout, "stay")
	ended := p.invoke("1")
	l := p.started()
	id, _, _ := p.next(l)
	for range 3 {
		_, err := p.environment.Invoke(t.Context(), []byte("2"))
		require.ErrorIs(t, err, runtimeapi.ErrBusy)
	}
	other := q.invoke("3")
	m := q.started()
	q.next(m)
	q.ends(m)
	assert.True(t, q.result(other).Exited)
	require.Equal(t, 202, p.answer(l, id, "response", "4"))
	p.waits(l)
	assert.Equal(t, "4", string(p.result(ended).Payload))
}

// A signal reaches the program that runs, if one does.
func TestASignal(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, timeout, "stay")
	require.Error(t, p.environment.Signal(syscall.SIGTERM), "nothing runs before the first event")
	p.environment.Shutdown() // which is fine
	ended := p.invoke("1")
	l := p.started()
	require.NoError(t, p.environment.Signal(syscall.SIGTERM))
	assert.True(t, p.result(ended).Exited)
	assert.Equal(t, syscall.SIGTERM, l.signal())
	require.Error(t, p.environment.Signal(syscall.SIGTERM))
}

// An invocation ends with its context, with the environment, and with a program that cannot be started.
func TestInvocationsThatCannotBe(t *testing.T) {
	t.Parallel()
	p := newPuppet(t, timeout, "stay")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := p.environment.Invoke(ctx, []byte("1"))
		ended <- err
	}()
	l := p.started()
	p.next(l)
	cancel()
	require.ErrorIs(t, <-ended, context.Canceled)

	p.environment.Close()
	p.environment.Close()
	assert.Equal(t, syscall.SIGKILL, l.signal())
	_, err := p.environment.Invoke(t.Context(), []byte("2"))
	require.ErrorIs(t, err, runtimeapi.ErrClosed)
	assert.Empty(t, p.lives, "it starts nothing any more")

	e, err := runtimeapi.New(timeout, func(string) *exec.Cmd { return exec.Command("/no/such/program") })
	require.NoError(t, err)
	defer e.Close()
	_, err = e.Invoke(t.Context(), []byte("1"))
	require.ErrorContains(t, err, "/no/such/program")
}
