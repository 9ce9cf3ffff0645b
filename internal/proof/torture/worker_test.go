package torture_test

// A worker: one process that runs tasks, and dies as it is told.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/storetest"
	"github.com/seed-6f6f2c11/duly/handlers/exec"
)

// What a worker is told by its environment.
const (
	workerEnv  = "DULY_TORTURE_REDIS"   // the URL of its Redis: the process is a worker
	crashesEnv = "DULY_TORTURE_CRASHES" // Config.MaxCrashes
	logEnv     = "DULY_TORTURE_LOG"     // the file of all starts and ends
	failEnv    = "DULY_TORTURE_FAIL"    // one in so many calls of the store kills the process, before or after it; 0: none
)

// lease is that of every task: what died is taken over after it.
const lease = time.Second

// The kinds. All but poison end well sooner or later, whatever is killed.
const (
	kindQuick  = "quick"  // a few milliseconds
	kindFails  = "fails"  // at its first attempt
	kindLong   = "long"   // longer than its lease
	kindExec   = "exec"   // a program
	kindPoison = "poison" // kills its process
)

// work runs tasks until SIGTERM.
func work() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s, err := newWorker(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := s.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	_ = os.NewFile(3, "works").Close() // the supervisor sees that
	<-ctx.Done()
	ending, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := s.Stop(ending); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// newWorker is a daemon on the Redis of the environment; one that is away is waited for.
func newWorker(ctx context.Context) (*daemon.Daemon, error) {
	st, err := redisstore.Open(ctx, redisstore.Config{URL: os.Getenv(workerEnv)})
	for err != nil && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
		st, err = redisstore.Open(ctx, redisstore.Config{URL: os.Getenv(workerEnv)})
	}
	if err != nil {
		return nil, err
	}
	every, err := strconv.Atoi(os.Getenv(failEnv))
	if err != nil {
		return nil, err
	}
	spy := &storetest.Spy{Store: st}
	if every > 0 {
		// Of the calls that die, one half does so before Redis has heard of it, one half before the answer is read.
		spy.Before = func(context.Context, string) error { return die(every * 2) }
		spy.After = func(context.Context, string, any) error { return die(every * 2) }
	}
	crashes, _ := strconv.Atoi(os.Getenv(crashesEnv)) // the default without it
	s, err := core.New(spy, core.Config{
		Concurrency: 10, MaxCrashes: crashes, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Default: core.KindConfig{Lease: lease, Backoff: 20 * time.Millisecond, MaxBackoff: 200 * time.Millisecond, MaxAttempts: 3},
	})
	if err != nil {
		return nil, err
	}
	if err := handle(s); err != nil {
		return nil, err
	}
	return daemon.New(s, daemon.Config{Tick: 100 * time.Millisecond, Grace: time.Second, Waker: st})
}

// die kills the process with kill -9 once in so many calls.
func die(every int) error {
	if rand.IntN(every) == 0 && !spared() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {} // until the signal is there
	}
	return nil
}

// spare ends the deaths at random, of all workers of the log.
func spare(log string) error { return os.WriteFile(log+".spared", nil, 0o600) }

func spared() bool {
	_, err := os.Stat(os.Getenv(logEnv) + ".spared")
	return err == nil
}

// handle registers the kinds.
func handle(s *core.Scheduler) error {
	log, err := os.OpenFile(os.Getenv(logEnv), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	core.Handle(s, kindQuick, logged(log, func(context.Context, *core.RunInfo) error {
		time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
		return nil
	}))
	core.Handle(s, kindFails, logged(log, func(_ context.Context, t *core.RunInfo) error {
		if t.Attempt == 1 {
			return errors.New("not at once")
		}
		return nil
	}))
	core.Handle(s, kindLong, logged(log, func(ctx context.Context, _ *core.RunInfo) error {
		select {
		case <-time.After(lease + lease/2):
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}))
	core.Handle(s, kindPoison, logged(log, func(context.Context, *core.RunInfo) error {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}))
	// One write of a line is not torn by a kill, and lines of several writers are not mixed up.
	program, err := exec.New(exec.Config{Argv: []string{
		"sh", "-c", `echo "start $DULY_AGENT_ID $DULY_TASK_ID $DULY_FENCE $DULY_ATTEMPT $PPID" >>"$0"; sleep 0.01`, os.Getenv(logEnv),
	}})
	if err != nil {
		return err
	}
	core.Handle(s, kindExec, program.Run)
	handleStories(s, log)
	return nil
}

// logged writes down that a run starts, and gives its fence as its result: what is read back is of the run that was counted.
func logged(log *os.File, handler func(ctx context.Context, t *core.RunInfo) error) func(context.Context, *core.Task[any]) error {
	return func(ctx context.Context, t *core.Task[any]) error {
		if _, err := fmt.Fprintf(log, "start %s %s %d %d %d\n", t.Agent, t.ID, t.Fence, t.Attempt, os.Getpid()); err != nil {
			return err
		}
		if err := handler(ctx, t.RunInfo); err != nil {
			return err
		}
		return t.SetResult(t.Fence)
	}
}
