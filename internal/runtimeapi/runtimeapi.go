// Package runtimeapi plays the part of AWS Lambda in tests: it starts a function's program and hands it events over the
// Runtime API, as an environment of Lambda does. One [Environment] has one process at a time and one event at a time.
//
// It speaks what the documents describe: the Runtime API 2018-06-01 (next, response, error, init error) and, of the
// Extensions API 2020-01-01, register and next, which a program uses to be sent SIGTERM. An invocation is complete when
// the program asks for the next one, or has exited; a program that answers and then dies has not completed it.
package runtimeapi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// MaxResponse is the largest answer that Lambda takes, in bytes.
const MaxResponse = 6_291_556

// grace is how long a program lives after SIGTERM.
const grace = 500 * time.Millisecond

// ErrBusy says that an environment is at work: Lambda starts another one then.
var ErrBusy = errors.New("runtimeapi: the environment is busy")

// ErrClosed says that an environment was closed: it starts no program any more.
var ErrClosed = errors.New("runtimeapi: the environment is closed")

// Result is how an invocation ended.
// Took is the time from when the program got the event; it is zero if it never did.
type Result struct {
	Payload  []byte // the answer, or the error's JSON
	Failed   bool   // the function answered with an error, or did not answer
	TooLarge bool   // the answer was refused for its size
	TimedOut bool   // the deadline came first, and the program was killed
	Exited   bool   // the program has ended
	Took     time.Duration
}

// Environment is one environment of a function.
// A second Invoke is refused while one is under way, and does not wait for it: see working.
type Environment struct {
	timeout time.Duration
	command func(address string) *exec.Cmd
	server  *http.Server
	address string
	queue   chan *invocation
	closed  chan struct{}
	closing sync.Once

	working sync.Mutex // held while an event is under way
	ids     atomic.Int64

	mu         sync.Mutex
	process    *process
	current    *invocation
	initError  []byte
	extensions int
}

// process is the program, from start to end.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{}
}

// invocation is an event under way. What it holds is the Environment's mu's.
type invocation struct {
	id       string
	event    []byte
	answered bool
	done     chan struct{} // the program has asked for the next one
	result   Result
}

// New makes an environment that runs a program, told the address of the Runtime API, for each life of it. Invocations
// have the timeout. Close it when done.
func New(timeout time.Duration, command func(address string) *exec.Cmd) (*Environment, error) {
	var config net.ListenConfig
	l, err := config.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("runtimeapi: %w", err)
	}
	e := &Environment{
		timeout: timeout, command: command, address: l.Addr().String(),
		queue: make(chan *invocation), closed: make(chan struct{}),
	}
	e.server = &http.Server{Handler: e.routes(), ReadHeaderTimeout: time.Minute}
	go func() { _ = e.server.Serve(l) }()
	return e, nil
}

// Invoke hands the program one event, starting it if it does not run, and waits until the invocation is complete. The
// error is one of the environment; what became of the event is in the result.
// If the context ends first, the program keeps the event: close the environment then.
func (e *Environment) Invoke(ctx context.Context, event []byte) (Result, error) {
	if !e.working.TryLock() {
		return Result{}, ErrBusy
	}
	defer e.working.Unlock()
	p, err := e.running()
	if err != nil {
		return Result{}, err
	}
	i := &invocation{id: "invocation-" + strconv.FormatInt(e.ids.Add(1), 10), event: event, done: make(chan struct{})}
	e.mu.Lock()
	e.current = i
	e.mu.Unlock()
	select {
	// The deadline counts from here: what a program takes to start is not part of an invocation.
	case e.queue <- i:
	case <-p.exited:
		return e.finish(i, p, time.Time{}), nil
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	begun := time.Now()
	timer := time.NewTimer(e.timeout)
	defer timer.Stop()
	select {
	case <-i.done:
	case <-p.exited:
	case <-timer.C:
		e.end(p)
		e.mu.Lock()
		i.result.TimedOut = true
		e.mu.Unlock()
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
	return e.finish(i, p, begun), nil
}

// finish is the result of an invocation.
func (e *Environment) finish(i *invocation, p *process, begun time.Time) Result {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.current = nil
	r := i.result
	if !begun.IsZero() {
		r.Took = time.Since(begun)
	}
	select {
	case <-p.exited:
		r.Exited = true
		if e.process == p {
			e.process = nil
		}
	default:
	}
	switch {
	// An answer that came before the program was killed is kept, but the invocation has failed.
	case r.TimedOut:
		r.Failed = true
	// Why the program could not start is all that can be said of it, if it said so.
	case !i.answered:
		r.Failed = true
		r.Payload = e.initError
	}
	return r
}

// running is the program, started if it does not run.
func (e *Environment) running() (*process, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	select {
	case <-e.closed:
		return nil, ErrClosed
	default:
	}
	if p := e.process; p != nil {
		select {
		case <-p.exited:
		default:
			return p, nil
		}
	}
	p := &process{cmd: e.command(e.address), exited: make(chan struct{})}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("runtimeapi: start: %w", err)
	}
	// What another life of the program has said is none of this one's.
	e.process, e.initError, e.extensions = p, nil, 0
	go func() {
		_ = p.cmd.Wait()
		close(p.exited)
	}()
	return p, nil
}

// end ends a program as Lambda does: SIGTERM if it has registered an extension, and SIGKILL.
func (e *Environment) end(p *process) {
	e.mu.Lock()
	polite := e.extensions > 0
	e.mu.Unlock()
	if polite {
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-p.exited:
			return
		case <-timer.C:
		}
	}
	_ = p.cmd.Process.Kill()
	<-p.exited
}

// Shutdown ends the program, if it runs, as Lambda does with an environment that it no longer needs.
func (e *Environment) Shutdown() {
	e.mu.Lock()
	p := e.process
	e.mu.Unlock()
	if p != nil {
		e.end(p)
	}
}

// Signal sends the program a signal, if it runs.
func (e *Environment) Signal(s syscall.Signal) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.process == nil {
		return errors.New("runtimeapi: the program does not run")
	}
	return e.process.cmd.Process.Signal(s)
}

// Freeze stops the program, if it runs, and returns once none of its threads runs any more, which the signal alone does not
// say.
func (e *Environment) Freeze(ctx context.Context) error {
	if err := e.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	e.mu.Lock()
	pid := e.process.cmd.Process.Pid
	e.mu.Unlock()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for !stopped(pid) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// stopped reports whether all threads of a process are stopped. Where there is no /proc to ask it believes so.
func stopped(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)) // the pattern is a good one
	for _, thread := range threads {
		data, err := os.ReadFile(thread)
		if err != nil {
			continue // it has just ended
		}
		if _, state, ok := strings.Cut(string(data), ") "); ok && !strings.HasPrefix(state, "T") {
			return false
		}
	}
	return true
}

// Extensions is how many extensions the program has registered.
func (e *Environment) Extensions() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.extensions
}

// Close kills the program and ends the server. Closing twice is fine.
func (e *Environment) Close() { e.closing.Do(e.close) }

func (e *Environment) close() {
	e.mu.Lock()
	p := e.process
	e.process = nil
	close(e.closed) // under the lock, so that no program is started after it
	e.mu.Unlock()
	if p != nil {
		_ = p.cmd.Process.Kill()
		<-p.exited
	}
	_ = e.server.Close()
}
