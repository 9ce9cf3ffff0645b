package exec

// Batches: one run of a program for several tasks, and what its exit and its output mean for each.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// mostBatchLine is how long a line on file descriptor 3 may be where no run is steered by it.
const mostBatchLine = 1024

// RunBatch runs the program once for all tasks of a batch: it is a handler for [core.HandleBatch]. The program gets a JSON array of the runs on its
// standard input, and prints a JSON array with an outcome for each, in the same order. Any other output fails all of them,
// which are tried again; the exit code means for all what it means for one.
func (h *Handler) RunBatch(ctx context.Context, ts []*core.Task[json.RawMessage]) []error {
	input, err := contract.EncodeBatch(ts)
	if err != nil {
		return contract.All(ts, fmt.Errorf("encode the tasks: %w", err))
	}
	said := &output{
		stdout: head{most: contract.MostOutcomes(ts)}, stdoutEnd: tail{most: mostStdout}, stderrEnd: tail{most: mostStderr}, longest: mostBatchLine,
		unsteered: "steers one run: the program of a batch says it in the outcome of a task", printed: h.printed(runsOf(ts)...),
	}
	err = h.runWith(ctx, h.environOf(ts), input, said)
	exit, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case exited && exit.ExitCode() == exitLater && ctx.Err() == nil:
		return contract.All(ts, core.Snooze(h.snoozeFor))
	case exited && exit.ExitCode() == exitNoRetry:
		return contract.All(ts, core.SkipRetry(said.explain(err)))
	case err != nil:
		return contract.All(ts, said.explain(err))
	case said.wrong != nil:
		return contract.All(ts, said.wrong)
	}
	outcomes, err := contract.Outcomes(ts, said.stdout.Bytes(), core.SystemClock{}.Now())
	if err != nil {
		return contract.All(ts, fmt.Errorf("the standard output of a batch %w", err))
	}
	return outcomes
}

// runsOf are the runs of a batch: what its program prints is the output of each.
func runsOf(ts []*core.Task[json.RawMessage]) []*core.RunInfo {
	runs := make([]*core.RunInfo, len(ts))
	for i, t := range ts {
		runs[i] = t.RunInfo
	}
	return runs
}

// environOf is the environment of a program that runs a batch: of its tasks what all have in common.
func (p *program) environOf(ts []*core.Task[json.RawMessage]) []string {
	t := ts[0]
	return append(p.inherited(contract.Shared(ts)), "DULY_AGENT_ID="+t.Agent, "DULY_KIND="+t.Kind, "DULY_BATCH="+strconv.Itoa(len(ts)),
		"TRACEPARENT="+contract.Trace(ts))
}
