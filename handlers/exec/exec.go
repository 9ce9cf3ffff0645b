package exec

// The handler: its configuration, one run of a program, and what its exit means.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/handlers/internal/contract"
)

// The exit codes that say more than done or failed, as sysexits.h has them.
// Every other code but 0 is a failure that is retried.
const (
	exitNoRetry = 65 // EX_DATAERR: the task is dead; a recurring one continues with its next occurrence
	exitLater   = 75 // EX_TEMPFAIL: the task is put off, and no attempt is charged
)

// Bounds of a program.
// The end of an output says more about a failure than its beginning.
const (
	killAfter   = 4 * time.Second // from SIGTERM to SIGKILL
	drainWithin = time.Second     // for its output, once it has ended
	mostStderr  = 600             // bytes of the end of each that go into the error
	mostStdout  = 250
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
	// Children, if set, gets what this handler starts: several handlers can share one.
	Children *Children
}

// Handler runs a program for each task. Its Run is a handler for [core.Handle].
type Handler struct{ config Config }

// New checks the configuration, starting nothing. Its error is a *[core.ConfigError].
// A program that does not exist is found now, and not by the first task that needs it.
func New(c Config) (*Handler, error) {
	switch {
	case len(c.Argv) == 0 || c.Argv[0] == "":
		return nil, &core.ConfigError{Field: "Argv", Reason: "needs a program"}
	case c.SnoozeFor < 0:
		return nil, &core.ConfigError{
			Field: "SnoozeFor", Value: c.SnoozeFor, Reason: fmt.Sprintf("must not be negative, not %s", c.SnoozeFor),
		}
	}
	if _, err := exec.LookPath(c.Argv[0]); err != nil {
		return nil, &core.ConfigError{
			Field: "Argv", Value: c.Argv[0], Reason: fmt.Sprintf("names the program %q, which was not found: name one in the PATH, or its path", c.Argv[0]),
		}
	}
	c.SnoozeFor = cmp.Or(c.SnoozeFor, core.DefaultBackoff)
	if c.Children == nil {
		c.Children = &Children{}
	}
	return &Handler{config: c}, nil
}

// Run runs the program for one task and waits until it has ended. When ctx is done it asks the program to end.
// It returns only when the program has gone, and what it had started with it.
func (h *Handler) Run(ctx context.Context, t *core.Task[json.RawMessage]) error {
	input, err := contract.Encode(t)
	if err != nil {
		return core.SkipRetry(fmt.Errorf("encode the task: %w", err))
	}
	cmd := exec.CommandContext(ctx, h.config.Argv[0], h.config.Argv[1:]...) //nolint:gosec // whoever configures the handler names the program
	cmd.Stdin = bytes.NewReader(input)
	cmd.Env = h.environ(t.RunInfo)
	cmd.WaitDelay = killAfter
	// A byte more than the limit tells a result that is too long from one that fits.
	said := &output{
		stdout: head{most: t.MaxResult() + 1}, stdoutEnd: tail{most: mostStdout}, stderrEnd: tail{most: mostStderr},
		steering: contract.NewSteering(t.RunInfo), longest: t.MaxResult() + 1024,
	}
	err = h.config.Children.run(cmd, said)
	return h.outcome(t.RunInfo, err, said)
}

// outcome turns the end of a program into that of its run.
func (h *Handler) outcome(t *core.RunInfo, err error, said *output) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	later := ok && exit.ExitCode() == exitLater
	switch {
	// A failed program has no result, whatever it has printed.
	case err != nil && !later:
		err = said.explain(err)
		if ok && exit.ExitCode() == exitNoRetry {
			return core.SkipRetry(err)
		}
		return err
	case said.wrong != nil: // its work is done: doing it again would not mend that
		return core.SkipRetry(said.wrong)
	case later && !said.steering.Later():
		return core.Snooze(h.config.SnoozeFor)
	case later:
		return said.steering.Outcome()
	}
	// The program has done its work: running it again because its output
	// is too large would do it twice.
	if err := contract.Keep(t, said.stdout.Bytes()); err != nil {
		return core.SkipRetry(fmt.Errorf("the standard output cannot be kept: %w", err))
	}
	return said.steering.Outcome()
}

// environ is the environment of a program: this process's without what is not the program's business, and the task.
// The variables of the task come last, so that none of this process can stand in for them.
func (h *Handler) environ(t *core.RunInfo) []string {
	var env []string
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); !slices.Contains(h.config.WithoutEnv, name) {
			env = append(env, kv)
		}
	}
	return append(env,
		"DULY_AGENT_ID="+t.Agent, "DULY_TASK_ID="+t.ID, "DULY_KIND="+t.Kind, "DULY_GROUP="+t.Group,
		"DULY_LEVEL="+strconv.Itoa(int(t.Level)), "DULY_ATTEMPT="+strconv.Itoa(t.Attempt),
		"DULY_FENCE="+strconv.FormatInt(int64(t.Fence), 10),
		"DULY_DUE="+contract.Instant(t.Due), "DULY_OCCURRENCE="+contract.Instant(t.Occurrence), "DULY_ZONE="+t.Zone,
		"DULY_TRACE_ID="+t.TraceID, "DULY_TRACEPARENT="+t.Traceparent, "DULY_SESSION_ID="+t.SessionID,
		"DULY_USER_ID="+t.UserID, "DULY_MEM_CUBE_ID="+t.Labels["mem_cube_id"], "DULY_USER_NAME="+t.Labels["user_name"],
		"DULY_AGENT="+t.Agent, // the name before DULY_AGENT_ID, for one release
	)
}
