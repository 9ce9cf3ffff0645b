package exec

// A program as the gate of a kind: what its exit and its output say about a run.

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// exitClosed is how a program says that there is nothing to do, as test and grep do.
const exitClosed = 1

// GateConfig says which program is asked whether there is anything to do.
type GateConfig struct {
	// Argv, WithoutEnv and Children are those of [Config].
	Argv       []string
	WithoutEnv []string
	Children   *Children
	// Timeout is how long it may take: 30 seconds if zero. The timeout of the run counts from before the gate is asked.
	Timeout time.Duration
}

// Gate asks a program whether there is anything to do. Its Ask is a gate for [core.Gate].
//
// The program gets the run as one that runs tasks does. Exit code 0 lets the run start, and its standard output goes to
// the handler, unless that is, or ends with a line that is, a JSON object with "wake" or "wakeAgent" false. With exit code 1 there is nothing to do.
// Any other is an error: the run fails, and is tried again.
type Gate struct {
	program

	timeout time.Duration
}

// NewGate checks the configuration as New does.
func NewGate(c GateConfig) (*Gate, error) {
	if c.Timeout < 0 {
		return nil, &core.ConfigError{Field: "Timeout", Value: c.Timeout, Reason: fmt.Sprintf("must not be negative, not %s", c.Timeout)}
	}
	p, err := newProgram(c.Argv, c.WithoutEnv, c.Children)
	if err != nil {
		return nil, err
	}
	return &Gate{program: p, timeout: cmp.Or(c.Timeout, contract.GateTimeout)}, nil
}

// Ask runs the program for one run and waits until it has ended.
func (g *Gate) Ask(ctx context.Context, t *core.RunInfo) (core.GateAnswer, error) {
	input, err := contract.EncodeGate(t)
	if err != nil {
		return core.GateAnswer{}, core.SkipRetry(fmt.Errorf("encode the task: %w", err))
	}
	said := &output{
		stdout: head{most: model.MaxGateInput + 1}, stdoutEnd: tail{most: mostStdout}, stderrEnd: tail{most: mostStderr}, longest: mostGateLine,
		unsteered: "is for handlers: a gate has no run to steer",
	}
	within, cancel := context.WithTimeout(ctx, g.timeout)
	defer cancel()
	err = g.run(within, t, input, said)
	exit, exited := errors.AsType[*exec.ExitError](err)
	switch {
	// Output after its time was up does not count.
	case within.Err() != nil && ctx.Err() == nil && err != nil:
		return core.GateAnswer{}, said.explain(fmt.Errorf("it did not end within %s", g.timeout))
	case said.wrong != nil:
		return core.GateAnswer{}, said.wrong
	case exited && exit.ExitCode() == exitClosed && ctx.Err() == nil:
		return core.GateAnswer{}, nil
	case err != nil:
		return core.GateAnswer{}, said.explain(err)
	}
	text := bytes.TrimSpace(said.stdout.Bytes())
	if contract.Declines(text[bytes.LastIndexByte(text, '\n')+1:]) {
		return core.GateAnswer{}, nil
	}
	return contract.Answer(text)
}
