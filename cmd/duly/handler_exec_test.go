package main_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

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
		last   core.Outcome
		exit   int
		err    string
		errors int64
	}{
		"ok":          {"exit 0", core.StatusCompleted, core.OutcomeSuccess, 0, "", 0},
		"later":       {"exit 75", core.StatusWaiting, core.OutcomeSnoozed, 0, "", 0},
		"no retry":    {"echo wrong >&2; exit 65", core.StatusFailed, core.OutcomeFailed, 4, "exit status 65: wrong", 1},
		"failed":      {"echo out; echo err >&2; exit 1", core.StatusWaiting, core.OutcomeFailed, 4, "exit status 1: err", 1},
		"signalled":   {"kill -9 $$", core.StatusWaiting, core.OutcomeFailed, 4, "signal: killed", 1},
		"only a tail": {"head -c 100000 /dev/zero | tr '\\0' x >&2; echo end >&2; exit 1", core.StatusWaiting, core.OutcomeFailed, 4, "xxxend", 1},
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

func TestAProgramGetsItsTask(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "DULY_TOKEN=hunter2", "MINE=yes")
	task, _ := runOnce(t, w, exec1(t, `printf '{"stdin":'; cat; printf ',"env":"%s"}' "$(env | grep -e DULY -e MINE | sort | tr '\n' ' ')"`, ""), core.NewTask{
		Payload: map[string]string{"text": "hi"}, Group: "g", Level: core.LevelHigh, TraceID: "t", Traceparent: "p", SessionID: "s",
		UserID: "u", MemCubeID: "m", UserName: "n", Info: []byte(`{"k":1}`), Tags: []string{"x"},
	})
	require.Equal(t, core.StatusCompleted, task.Status, task.LastError)
	got := parse[struct {
		Stdin map[string]any
		Env   string
	}](t, string(task.Result))
	for name, want := range map[string]any{
		"agent_id": "a", "id": "i", "kind": "x", "group": "g", "level": 1.0, "attempt": 1.0, "crashes": 0.0, "trace_id": "t",
		"traceparent": "p", "session_id": "s", "user_id": "u", "mem_cube_id": "m", "user_name": "n",
		"payload": map[string]any{"text": "hi"}, "info": map[string]any{"k": 1.0}, "tags": []any{"x"},
	} {
		assert.Equal(t, want, got.Stdin[name], name)
	}
	assert.Positive(t, got.Stdin["fence"])
	due := task.Due.Time().Format("2006-01-02T15:04:05.000Z07:00")
	assert.Equal(t, due, got.Stdin["due_at"])
	for _, want := range []string{
		"DULY_AGENT=a ", "DULY_TASK_ID=i ", "DULY_KIND=x ", "DULY_GROUP=g ", "DULY_ATTEMPT=1 ", "DULY_DUE=" + due + " ",
		"DULY_TRACE_ID=t ", "DULY_TRACEPARENT=p ", fmt.Sprintf("DULY_FENCE=%.0f ", got.Stdin["fence"]), "MINE=yes ",
	} {
		assert.Contains(t, got.Env, want)
	}
	for _, secret := range []string{"hunter2", "DULY_TOKEN", "DULY_REDIS_URL"} {
		assert.NotContains(t, got.Env, secret, "secrets of the daemon are not the program's")
	}
}

// What opens the API, by whatever name, and what other handlers sign with is kept from a program, which often runs what an
// agent wrote.
func TestAProgramGetsNoSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "DULY_TOKEN=hidden1", "API_TOKENS=hidden2", "CRON_SECRET=hidden3", "DIGEST_SECRET=hidden4", "MINE=yes")
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

func TestResultsOfPrograms(t *testing.T) {
	t.Parallel()
	long := strings.Repeat(`\001`, 10)
	for name, c := range map[string]struct{ script, want string }{
		"nothing":   {"true", ""},
		"JSON":      {`echo ' {"a": [1, 2]} '`, `{"a":[1,2]}`},
		"text":      {"echo plain text", `"plain text"`},
		"not UTF-8": {`printf 'a\377b'`, `"a\ufffdb"`},
		"too long":  {"yes '" + long + "' | head -c 1000000", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task, r := runOnce(t, newWorld(t), exec1(t, c.script, ""), core.NewTask{})
			require.Equal(t, 0, r.code, r.stderr)
			require.Equal(t, core.StatusCompleted, task.Status)
			switch name {
			case "nothing":
				assert.Empty(t, task.Result)
			case "too long":
				assert.Len(t, parse[string](t, string(task.Result)), core.DefaultMaxResult/8)
			default:
				assert.JSONEq(t, c.want, string(task.Result))
			}
		})
	}
}

// A payload of any size reaches a program, and one that does not read it succeeds all the same.
func TestLargePayloads(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{"read": `test "$(wc -c)" -gt 250000`, "unread": "exit 0"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task, r := runOnce(t, newWorld(t), exec1(t, script, ""), core.NewTask{Payload: strings.Repeat("x", 250_000)})
			assert.Equal(t, 0, r.code, r.stderr)
			assert.Equal(t, core.StatusCompleted, task.Status, task.LastError)
		})
	}
}

// At its timeout a program is asked to end, and may still say how; what it started ends with it.
func TestTimeoutsOfPrograms(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		want   string
		status core.Status
	}{
		"ends":     {"sleep 300 & echo $! >PID; trap 'echo asked >&2; exit 1' TERM; wait", "asked", core.StatusWaiting},
		"is later": {"sleep 300 & echo $! >PID; trap 'exit 75' TERM; wait", "", core.StatusWaiting},
		"ignores":  {"trap '' TERM; sleep 300 & echo $! >PID; sleep 300", "the handler ran into its timeout", core.StatusWaiting},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pidFile := filepath.Join(t.TempDir(), "pid")
			begun := time.Now()
			task, _ := runOnce(t, newWorld(t), exec1(t, strings.ReplaceAll(c.script, "PID", pidFile), ", timeout: 300ms"), core.NewTask{})
			assert.Equal(t, c.status, task.Status)
			assert.Contains(t, task.LastError, c.want)
			assert.Less(t, time.Since(begun), 9*time.Second)
			gone(t, grandchild(t, pidFile))
		})
	}
}

// A program that leaves a process behind, which even holds its output, does not delay its run, nor does that outlive it.
func TestNothingIsLeftOfAProgram(t *testing.T) {
	t.Parallel()
	pidFile := filepath.Join(t.TempDir(), "pid")
	begun := time.Now()
	task, _ := runOnce(t, newWorld(t), exec1(t, "sleep 300 & echo $! >"+pidFile+"; echo done", ""), core.NewTask{})
	assert.Equal(t, core.StatusCompleted, task.Status)
	assert.JSONEq(t, `"done"`, string(task.Result))
	assert.Less(t, time.Since(begun), 4*time.Second)
	gone(t, grandchild(t, pidFile))
}
