package torture_test

// The supervisor: it starts workers, kills and freezes them, and starts those that have died again.

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

// supervisor keeps so many workers running.
type supervisor struct {
	t     *testing.T
	env   []string
	done  sync.WaitGroup
	kills atomic.Int64 // workers that have died by a kill, whoever sent it

	mu      sync.Mutex
	workers []*exec.Cmd     // nil where none runs
	works   []chan struct{} // closed once the worker works, or has died
	stopped bool
	frozen  map[int]bool // by process id: has been frozen at least once
}

func supervise(t *testing.T, workers int, url, log string, fail int) *supervisor {
	t.Helper()
	s := &supervisor{
		t: t, workers: make([]*exec.Cmd, workers), works: make([]chan struct{}, workers), frozen: map[int]bool{},
		env: append(os.Environ(), workerEnv+"="+url, logEnv+"="+log, failEnv+"="+strconv.Itoa(fail)),
	}
	for i := range s.workers {
		s.done.Go(func() { s.keep(i) })
	}
	t.Cleanup(s.stop)
	return s
}

// keep starts the i-th worker again and again, until the supervisor is stopped.
func (s *supervisor) keep(i int) {
	for {
		cmd := exec.Command(os.Args[0])
		cmd.Env = s.env
		r, w, err := os.Pipe()
		if !assert.NoError(s.t, err) {
			return
		}
		cmd.ExtraFiles = []*os.File{w} // the worker closes it when it works
		works := make(chan struct{})
		s.mu.Lock()
		if s.stopped {
			s.mu.Unlock()
			_, _ = r.Close(), w.Close()
			return
		}
		err = cmd.Start()
		s.workers[i], s.works[i] = cmd, works
		s.mu.Unlock()
		_ = w.Close()
		go func() {
			defer close(works)
			_, _ = r.Read(make([]byte, 1)) // it ends with the pipe, also when the worker dies
			_ = r.Close()
		}()
		if !assert.NoError(s.t, err) {
			return
		}
		err = cmd.Wait()
		s.mu.Lock()
		s.workers[i] = nil
		s.mu.Unlock()
		status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if status.Signaled() && status.Signal() == syscall.SIGKILL {
			s.kills.Add(1)
			continue
		}
		assert.NoError(s.t, err, "a worker ends when it is told to, or is killed")
		return
	}
}

// signal sends a signal to the i-th worker, if it runs. It returns the worker's process id, or 0.
func (s *supervisor) signal(i int, signals ...syscall.Signal) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	cmd := s.workers[i]
	if cmd == nil {
		return 0
	}
	for _, sig := range signals {
		if sig == syscall.SIGSTOP {
			s.frozen[cmd.Process.Pid] = true
		}
		_ = cmd.Process.Signal(sig)
	}
	return cmd.Process.Pid
}

// wasFrozen reports whether a process has been frozen.
func (s *supervisor) wasFrozen(pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.frozen[pid]
}

// stop ends all workers in peace: none before it works, as it would not listen.
func (s *supervisor) stop() {
	s.mu.Lock()
	s.stopped = true
	for i, cmd := range s.workers {
		if cmd != nil {
			<-s.works[i]
			// One that was killed a moment ago may have been waited for by now.
			if err := cmd.Process.Signal(syscall.SIGTERM); !errors.Is(err, os.ErrProcessDone) {
				assert.NoError(s.t, err)
			}
		}
	}
	s.mu.Unlock()
	s.done.Wait()
}
