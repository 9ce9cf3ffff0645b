package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// The exit codes that say more than done or failed, as sysexits.h has them.
const (
	exitNoRetry = 65 // the task is dead; a recurring one goes on with its next occurrence
	exitLater   = 75 // the task is put off, and no attempt is charged
)

// Bounds of a program.
const (
	killAfter   = 5 * time.Second // from SIGTERM to SIGKILL
	drainWithin = time.Second     // for its output, once it has ended
	mostStderr  = 800             // bytes of its end that go into the error
)

// execHandler runs a program for each task, which gets the task as JSON on its standard input.
type execHandler struct {
	argv     []string
	pause    time.Duration // for exitLater
	secrets  []string      // variables of the environment that are not the program's business
	children *children
}

func (h *execHandler) run(ctx context.Context, t *core.Task[json.RawMessage]) error {
	input, err := encodeRun(t)
	if err != nil {
		return fmt.Errorf("encode task: %w", err)
	}
	cmd := exec.CommandContext(ctx, h.argv[0], h.argv[1:]...) //nolint:gosec // the operator's file names the program
	cmd.Stdin = bytes.NewReader(input)
	cmd.Env = h.environ(t)
	cmd.WaitDelay = killAfter
	ownGroup(cmd)
	stdout, stderr := &head{most: mostResultJSON + 1}, &tail{most: mostStderr}
	if err := h.children.run(cmd, stdout, stderr); err != nil {
		return h.outcome(err, stderr.String())
	}
	return keepResult(t.RunInfo, stdout.Bytes())
}

// outcome turns the end of a program that did not succeed into that of its run.
func (h *execHandler) outcome(err error, stderr string) error {
	if said := strings.TrimSpace(stderr); said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	switch {
	case ok && exit.ExitCode() == exitNoRetry:
		return core.SkipRetry(err)
	case ok && exit.ExitCode() == exitLater:
		pause := h.pause
		if pause == 0 {
			pause = core.DefaultBackoff
		}
		return core.Snooze(pause)
	default:
		return err
	}
}

// environ is the environment of a program: this process's without its secrets, and the task.
func (h *execHandler) environ(t *core.Task[json.RawMessage]) []string {
	var env []string
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); !slices.Contains(h.secrets, name) {
			env = append(env, kv)
		}
	}
	return append(env,
		"DULY_AGENT="+t.Agent, "DULY_TASK_ID="+t.ID, "DULY_KIND="+t.Kind, "DULY_GROUP="+t.Group,
		"DULY_ATTEMPT="+strconv.Itoa(t.Attempt), "DULY_FENCE="+strconv.FormatInt(int64(t.Fence), 10),
		"DULY_DUE="+instant(t.Due), "DULY_TRACE_ID="+t.TraceID, "DULY_TRACEPARENT="+t.Traceparent,
	)
}

// head keeps the beginning of what is written to it, and lets the rest go.
type head struct {
	bytes.Buffer
	most int
}

func (h *head) Write(p []byte) (int, error) {
	h.Buffer.Write(p[:min(len(p), h.most-h.Len())])
	return len(p), nil
}

// tail keeps the end of what is written to it.
type tail struct {
	kept []byte
	most int
}

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if extra := len(t.kept) - t.most; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string { return string(t.kept) }

var (
	_ io.Writer = (*head)(nil)
	_ io.Writer = (*tail)(nil)
)
