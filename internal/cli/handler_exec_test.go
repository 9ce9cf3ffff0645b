package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// What programs get, and what they can say, is tested with the handler: these are about the file and the process.

// exec1 is a configuration with one program of sh, for the kind x.
func exec1(t *testing.T, script, more string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "script")
	require.NoError(t, os.WriteFile(path, []byte(script), 0o600))
	return file(t, fmt.Sprintf("handlers: { x: { exec: [sh, %q], max_attempts: 2, backoff: 1ms %s } }", path, more))
}

// runOnce runs a task of the kind x once and returns what became of it.
func runOnce(t *testing.T, w *world, config string, task core.NewTask) (core.TaskInfo, result) {
	t.Helper()
	s := w.scheduler(t)
	task.Agent, task.ID, task.Kind = "a", "i", "x"
	_, err := s.Submit(t.Context(), task)
	require.NoError(t, err)
	r := w.duly(t, "run-due", "--agents", "a", "-c", config, "--max", "1")
	info, err := s.Task(t.Context(), "a", "i")
	require.NoError(t, err)
	return info, r
}

func TestExitCodesOfPrograms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		status core.Status
		last   model.Outcome
		exit   int
		err    string
		errors int64
	}{
		"ok":       {"exit 0", core.StatusCompleted, model.OutcomeSuccess, 0, "", 0},
		"later":    {"exit 75", core.StatusWaiting, model.OutcomeSnoozed, 0, "", 0},
		"no retry": {"echo wrong >&2; exit 65", core.StatusFailed, model.OutcomeFailed, 4, "exit status 65: wrong", 1},
		"failed":   {"echo out; echo err >&2; exit 1", core.StatusWaiting, model.OutcomeFailed, 4, "exit status 1: err (stdout: out)", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task, r := runOnce(t, newWorld(t), exec1(t, c.script, ""), core.NewTask{})
			assert.Equal(t, c.exit, r.code, r.stderr)
			assert.Equal(t, c.status, task.Status)
			assert.Equal(t, c.last, task.LastOutcome)
			assert.Contains(t, task.LastError, c.err)
			assert.Less(t, len(task.LastError), 1000)
			assert.Equal(t, c.errors, task.ErrorCount)
		})
	}
}

// What opens the API, by whatever name, and what other handlers sign with is kept from a program, which often runs what an
// agent wrote.
func TestAProgramGetsNoSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "DULY_TOKEN=hidden1", "API_TOKENS=hidden2", "CRON_SECRET=hidden3", "DIGEST_SECRET=hidden4hidden4hidden4hidden4hidd", "MINE=yes")
	config := file(t, `token_env: API_TOKENS
handlers:
  x: { exec: [env] }
  digest: { webhook: "https://agents.example/digest", secret_env: DIGEST_SECRET }
`)
	task, r := runOnce(t, w, config, core.NewTask{})
	require.Equal(t, core.StatusCompleted, task.Status, r.stderr)
	env := parse[string](t, string(task.Result))
	assert.Contains(t, env, "MINE=yes")
	for _, secret := range []string{"hidden", "API_TOKENS", "CRON_SECRET", "DIGEST_SECRET", "DULY_TOKEN", w.redis.URL} {
		assert.NotContains(t, env, secret)
	}
}

// A batch of the file is one run of its program.
func TestBatchOfTheFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := exec1(t, `echo "[{\"result\": $DULY_BATCH}]"`, ", batch: 50, batch_by: [agent, mem_cube_id]")
	task, r := runOnce(t, w, config, core.NewTask{})
	assert.Equal(t, 0, r.code, r.stderr)
	assert.JSONEq(t, "1", string(task.Result))
}
