package exec

// The handler: its configuration, one run of a program, and what its exit means.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// The exit codes that say more than done or failed, as sysexits.h has them.
// Every other code but 0 is a failure that is retried.
const (
	exitNoRetry = 65 // EX_DATAERR: the task is dead; a recurring one continues with its next occurrence
	exitLater   = 75 // EX_TEMPFAIL: after the backoff of the kind, or when duly-snooze or duly-yield says
	exitAwaits  = 76 // the one that duly-await names, or the standard output if there is no such line
)

// Bounds of a program.
// The end of an output says more about a failure than its beginning.
const (
	killAfter   = 4 * time.Second // from SIGTERM to SIGKILL
	drainWithin = time.Second     // for its output, once it has ended
	mostStderr  = 600             // bytes of the end of each that go into the error
	mostStdout  = 250

	mostGateLine = 1024 // on file descriptor 3, where a gate has nothing to say
)

// Config says which program runs the tasks of a kind.
type Config struct {
	// Argv is the program, which is looked up in the PATH, and its arguments. Required.
	Argv []string
	// SnoozeFor is how long a run is put off by exit code 75 without a duly-snooze: core.DefaultBackoff if zero.
	SnoozeFor time.Duration
	// WithoutEnv names variables of this process that the program does not get, such as those that hold secrets. It gets
	// all others.
	WithoutEnv []string
	// NoOutput keeps nothing of what the program prints, but its result and the end of its errors. Otherwise its standard output and its standard
	// error are the output of the run: see [core.RunInfo.Output].
	NoOutput bool
	// Children, if set, gets what this handler starts: several handlers can share one.
	Children *Children
}

// Handler runs a program for each task. Its Run is a handler for [core.Handle].
type Handler struct {
	program

	snoozeFor time.Duration
	noOutput  bool
}

// New checks the configuration, starting nothing. Its error is a *[core.ConfigError].
// A program that does not exist is found now, and not by the first task that needs it.
func New(c Config) (*Handler, error) {
	if c.SnoozeFor < 0 {
		return nil, &core.ConfigError{
			Field: "SnoozeFor", Value: c.SnoozeFor, Reason: fmt.Sprintf("must not be negative, not %s", c.SnoozeFor),
		}
	}
	p, err := newProgram(c.Argv, c.WithoutEnv, c.Children)
	if err != nil {
		return nil, err
	}
	return &Handler{program: p, snoozeFor: cmp.Or(c.SnoozeFor, model.DefaultBackoff), noOutput: c.NoOutput}, nil
}

// Run runs the program for one task and waits until it has ended. When ctx is done it asks the program to end.
// It returns only when the program has gone, and what it had started with it.
func (h *Handler) Run(ctx context.Context, t *core.Task[json.RawMessage]) error {
	input, err := contract.Encode(t)
	if err != nil {
		return core.SkipRetry(fmt.Errorf("encode the task: %w", err))
	}
	// A byte more than the limit tells a result that is too long from one that fits.
	said := &output{
		stdout: head{most: t.MaxResult() + 1}, stdoutEnd: tail{most: mostStdout}, stderrEnd: tail{most: mostStderr},
		steering: contract.NewSteering(t.RunInfo), saves: func(checkpoint json.RawMessage) error { return t.Save(ctx, checkpoint) }, longest: max(t.MaxResult(), core.MaxCheckpoint) + 1024,
		printed: h.printed(t.RunInfo),
	}
	err = h.run(ctx, t.RunInfo, input, said)
	return h.outcome(t.RunInfo, err, said)
}

// printed takes what a program prints for some runs.
func (h *Handler) printed(runs ...*core.RunInfo) io.Writer {
	if h.noOutput {
		return io.Discard
	}
	all := make([]io.Writer, len(runs))
	for i, t := range runs {
		all[i] = t.Output()
	}
	return io.MultiWriter(all...)
}

// outcome turns the end of a program into the outcome of its run.
func (h *Handler) outcome(t *core.RunInfo, err error, said *output) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	later, awaits := ok && exit.ExitCode() == exitLater, ok && exit.ExitCode() == exitAwaits
	switch {
	// A failed program has no result, even if it printed one.
	case err != nil && !later && !awaits:
		err = said.explain(err)
		if ok && exit.ExitCode() == exitNoRetry {
			return core.SkipRetry(err)
		}
		return err
	case said.wrong != nil: // its work is done: doing it again would not mend that
		return core.SkipRetry(said.wrong)
	case later && !said.steering.Later():
		return core.Snooze(h.snoozeFor)
	case awaits && !said.steering.Awaits():
		if err := said.steering.Say(contract.Await, said.stdout.String()); err != nil {
			return core.SkipRetry(fmt.Errorf("exit %d, and the standard output: %w", exitAwaits, err))
		}
		return said.steering.Outcome()
	case later, awaits, said.steering.Awaits():
		return said.steering.Outcome()
	}
	// The program has done its work: running it again because its output
	// is too large would do it twice.
	if err := contract.Keep(t, said.stdout.Bytes()); err != nil {
		return core.SkipRetry(fmt.Errorf("the standard output cannot be kept: %w", err))
	}
	return said.steering.Outcome()
}
