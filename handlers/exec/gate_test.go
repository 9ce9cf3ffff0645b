//go:build unix

package exec_test

// Gates that are programs: what their exit and their output mean.

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/handlers/exec"
)

// asked runs a task whose gate is a script, and returns what became of it, and the gate's input as its handler got it.
func asked(t *testing.T, script string, c exec.GateConfig, task core.NewTask) (core.TaskInfo, []string) {
	t.Helper()
	c.Argv = []string{"sh", "-c", script}
	gate, err := exec.NewGate(c)
	require.NoError(t, err)
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	require.NoError(t, err)
	core.Gate(s, "x", gate.Ask)
	var inputs []string
	core.Handle(s, "x", func(_ context.Context, task *core.Task[json.RawMessage]) error {
		inputs = append(inputs, string(task.GateInput()))
		return nil
	})
	task.Agent, task.ID, task.Kind, task.Every = "a", "i", "x", time.Hour
	_, err = s.Submit(t.Context(), task)
	require.NoError(t, err)
	return (&world{s: s}).run(t), inputs
}

func TestGates(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		last   model.Outcome
		input  string
		err    string
	}{
		"go":                        {script: `echo '{"mails": 3}'`, last: model.OutcomeSuccess, input: `{"mails": 3}`},
		"go, with text":             {script: `echo three; echo mails`, last: model.OutcomeSuccess, input: `"three\nmails"`},
		"go, with nothing":          {script: `true`, last: model.OutcomeSuccess},
		"no":                        {script: `exit 1`, last: model.OutcomeSkipped, err: "gate"},
		"no, whatever it says":      {script: `echo hello; echo there >&2; exit 1`, last: model.OutcomeSkipped, err: "gate"},
		"declines":                  {script: `echo '{"wake": false}'`, last: model.OutcomeSkipped, err: "gate"},
		"declines for the agent":    {script: `echo '{"wakeAgent": false}'`, last: model.OutcomeSkipped, err: "gate"},
		"declines in its last line": {script: `echo 'looking ...'; echo '{"wakeAgent": false}'`, last: model.OutcomeSkipped, err: "gate"},
		"does not decline":          {script: `echo '{"wake": true}'`, last: model.OutcomeSuccess, input: `{"wake": true}`},
		"fails":                     {script: `echo broken >&2; exit 2`, last: model.OutcomeFailed, err: "gate: exit status 2: broken"},
		"dies":                      {script: `kill -9 $$`, last: model.OutcomeFailed, err: "gate: signal: killed"},
		"says too much":             {script: `head -c 70000 /dev/zero | tr '\0' x`, last: model.OutcomeFailed, err: "larger than the limit of 65536 bytes"},
		"steers":                    {script: `echo 'duly-snooze: 10m' >&3`, last: model.OutcomeFailed, err: "duly-snooze on file descriptor 3 is for handlers: a gate has no run to steer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			info, inputs := asked(t, c.script, exec.GateConfig{}, core.NewTask{})
			assert.Equal(t, c.last, info.LastOutcome)
			assert.Contains(t, info.LastError, c.err)
			if c.last == model.OutcomeSuccess {
				assert.Equal(t, []string{c.input}, inputs)
			} else {
				assert.Empty(t, inputs)
			}
		})
	}
}

// A gate gets the run, with its payload, and none of the secrets.
func TestAGateGetsTheRun(t *testing.T) {
	t.Setenv("GATE_SECRET", "s3cr3t")
	_, inputs := asked(t, `cat; echo "$DULY_AGENT_ID $GATE_SECRET"`, exec.GateConfig{WithoutEnv: []string{"GATE_SECRET"}}, core.NewTask{Payload: "inbox"})
	require.Len(t, inputs, 1)
	var said string
	require.NoError(t, json.Unmarshal([]byte(inputs[0]), &said))
	data, rest, ok := strings.Cut(said, "}")
	require.True(t, ok)
	assert.Contains(t, data, `"payload":"inbox"`)
	assert.Equal(t, "a", strings.TrimSpace(rest))
}

// A gate that hangs is ended after its own timeout, with what it has started, and the run fails.
func TestAGateThatHangs(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"ends":    `sleep 300 & echo $! >PIDS; echo looking; trap 'exit 1' TERM; wait`,
		"says go": `sleep 300 & echo $! >PIDS; echo looking; trap 'exit 0' TERM; wait`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "pids")
			info, inputs := asked(t, strings.ReplaceAll(script, "PIDS", file), exec.GateConfig{Timeout: 300 * time.Millisecond}, core.NewTask{})
			assert.Equal(t, model.OutcomeFailed, info.LastOutcome)
			assert.Equal(t, "gate: it did not end within 300ms: looking", info.LastError)
			assert.Empty(t, inputs)
			gone(t, pids(t, file, 1)...)
		})
	}
}

// The program of a handler finds what the gate said in its input.
func TestAHandlerGetsTheInputOfTheGate(t *testing.T) {
	t.Parallel()
	w, err := start(exec.Config{Argv: []string{"cat"}})
	require.NoError(t, err)
	gate, err := exec.NewGate(exec.GateConfig{Argv: []string{"echo", `{"mails": 3}`}})
	require.NoError(t, err)
	core.Gate(w.s, "x", gate.Ask)
	_, err = w.s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "i", Kind: "x"})
	require.NoError(t, err)
	info := w.run(t)
	var input struct {
		Gate struct{ Mails int }
	}
	require.NoError(t, json.Unmarshal(info.Result, &input))
	assert.Equal(t, 3, input.Gate.Mails)
}

func TestGateConfigIsChecked(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]exec.GateConfig{
		"Argv needs a program": {},
		"Argv names the program \"no-such-program\", which was not found": {Argv: []string{"no-such-program"}},
		"Timeout must not be negative, not -1s":                           {Argv: []string{"sh"}, Timeout: -time.Second},
	} {
		_, err := exec.NewGate(c)
		assert.ErrorContains(t, err, want)
		assert.ErrorAs(t, err, new(*core.ConfigError))
	}
}
