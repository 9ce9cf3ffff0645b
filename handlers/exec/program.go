package exec

// A program: how it is found, what it gets, and how it is called for a run, by a handler or by a gate.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// valuePrefix begins the names of the variables that hold the values of bindings.
const valuePrefix = "DULY_VALUE_"

// program is what is run, with what it must not know.
type program struct {
	argv       []string
	withoutEnv []string
	children   *Children
}

// newProgram looks whether a program exists, starting nothing. Its error is a *[core.ConfigError].
func newProgram(argv, withoutEnv []string, children *Children) (program, error) {
	if len(argv) == 0 || argv[0] == "" {
		return program{}, &core.ConfigError{Field: "Argv", Reason: "needs a program"}
	}
	if _, err := exec.LookPath(argv[0]); err != nil {
		return program{}, &core.ConfigError{
			Field: "Argv", Value: argv[0], Reason: fmt.Sprintf("names the program %q, which was not found: name one in the PATH, or its path", argv[0]),
		}
	}
	if children == nil {
		children = &Children{}
	}
	return program{argv: argv, withoutEnv: withoutEnv, children: children}, nil
}

// run runs the program for a run of a task, with input on its standard input, until it has ended. When ctx is done it asks the
// program to end.
func (p *program) run(ctx context.Context, t *core.RunInfo, input []byte, said *output) error {
	return p.runWith(ctx, p.environ(t), input, said)
}

// runWith is run with an environment.
func (p *program) runWith(ctx context.Context, env []string, input []byte, said *output) error {
	cmd := exec.CommandContext(ctx, p.argv[0], p.argv[1:]...) //nolint:gosec // whoever configures it names the program
	cmd.Stdin = bytes.NewReader(input)
	// The parent of tasks that it submits. It is always set: this process may have inherited a value, which is not the program's.
	cmd.Env = append(env, "DULY_PARENT="+core.ParentOf(ctx))
	cmd.WaitDelay = killAfter
	return p.children.run(ctx, cmd, said)
}

// inherited is this process's environment without what is not the program's business, and the values of bindings. With a prefix of their own they
// replace nothing of this process, such as its PATH, and nothing of the task.
func (p *program) inherited(values core.Values) []string {
	var env []string
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); !slices.Contains(p.withoutEnv, name) {
			env = append(env, kv)
		}
	}
	for name, value := range values {
		env = append(env, valuePrefix+name+"="+value)
	}
	return env
}

// labelsJSON are labels as a JSON object; empty if there are none.
func labelsJSON(labels map[string]string) string {
	if len(labels) == 0 {
		return ""
	}
	data, _ := json.Marshal(labels) // of texts it cannot fail
	return string(data)
}

// environ is the environment of a program: this process's without what is not the program's business, and the task.
// The variables of the task come last, so that none of this process can stand in for them.
func (p *program) environ(t *core.RunInfo) []string {
	return append(p.inherited(t.Bound()),
		"DULY_AGENT_ID="+t.Agent, "DULY_TASK_ID="+t.ID, "DULY_KIND="+t.Kind, "DULY_GROUP="+t.Group,
		"DULY_LEVEL="+strconv.Itoa(int(t.Level)), "DULY_ATTEMPT="+strconv.Itoa(t.Attempt),
		"DULY_FENCE="+strconv.FormatInt(int64(t.Fence), 10),
		"DULY_DUE="+contract.Instant(t.Due), "DULY_OCCURRENCE="+contract.Instant(t.Occurrence), "DULY_ZONE="+t.Zone,
		"DULY_TRACE_ID="+t.TraceID, "DULY_TRACEPARENT="+t.Traceparent, "TRACEPARENT="+t.Traceparent, "DULY_SESSION_ID="+t.SessionID,
		"DULY_USER_ID="+t.UserID, "DULY_LABELS="+labelsJSON(t.Labels),
		"DULY_AGENT="+t.Agent, // the name before DULY_AGENT_ID, for one release
	)
}
