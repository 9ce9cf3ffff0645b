package exec_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest/spy"
	"github.com/seed-6f6f2c11/duly/handlers/exec"
)

// The test binary is its own victim: started with a script it runs that as a task, until it is killed.
func TestMain(m *testing.M) {
	if script := os.Getenv("DULY_TEST_VICTIM"); script != "" {
		victim(script)
		return
	}
	goleak.VerifyTestMain(m)
}

func victim(script string) {
	w, err := start(exec.Config{Argv: []string{"sh", "-c", script}})
	if err == nil {
		_, err = w.s.Submit(context.Background(), core.NewTask{Agent: "a", ID: "i", Kind: "x"})
	}
	if err == nil {
		_, err = w.s.RunDue(context.Background(), core.Scope{})
	}
	fmt.Println("not killed:", err)
}

// world is a scheduler with a program for the kind x.
type world struct{ s *core.Scheduler }

func start(c exec.Config) (*world, error) {
	h, err := exec.New(c)
	if err != nil {
		return nil, err
	}
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{
		MaxResult: 1000, Default: core.KindConfig{Backoff: time.Millisecond, MaxBackoff: time.Millisecond, Lease: 300 * time.Millisecond},
	})
	if err != nil {
		return nil, err
	}
	core.Handle(s, "x", h.Run)
	return &world{s: s}, nil
}

// once runs a script as a task, once, and returns what became of it.
func once(t *testing.T, script string, task core.NewTask) core.TaskInfo {
	t.Helper()
	w, err := start(exec.Config{Argv: []string{"sh", "-c", script}, SnoozeFor: time.Hour})
	require.NoError(t, err)
	task.Agent, task.ID, task.Kind = "a", "i", "x"
	_, err = w.s.Submit(t.Context(), task)
	require.NoError(t, err)
	return w.run(t)
}

func (w *world) run(t *testing.T) core.TaskInfo {
	t.Helper()
	_, err := w.s.RunDue(t.Context(), core.Scope{MaxTasks: 1})
	var failed *core.RunsError
	require.True(t, err == nil || errors.As(err, &failed), "%v", err)
	info, err := w.s.Task(t.Context(), "a", "i")
	require.NoError(t, err)
	require.EqualValues(t, 1, info.RunCount)
	return info
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		status core.Status
		last   model.Outcome
		reason string
		err    string
	}{
		"ok":          {"exit 0", core.StatusCompleted, model.OutcomeSuccess, "", ""},
		"later":       {"exit 75", core.StatusWaiting, model.OutcomeSnoozed, "", ""},
		"no retry":    {"echo wrong >&2; exit 65", core.StatusFailed, model.OutcomeFailed, "no_retry", "exit status 65: wrong"},
		"failed":      {"exit 1", core.StatusWaiting, model.OutcomeFailed, "", "exit status 1"},
		"with stderr": {"echo err >&2; exit 1", core.StatusWaiting, model.OutcomeFailed, "", "exit status 1: err"},
		"with stdout": {"echo out; exit 1", core.StatusWaiting, model.OutcomeFailed, "", "exit status 1: out"},
		"with both":   {"echo out; echo err >&2; exit 1", core.StatusWaiting, model.OutcomeFailed, "", "exit status 1: err (stdout: out)"},
		"signalled":   {"kill -9 $$", core.StatusWaiting, model.OutcomeFailed, "", "signal: killed"},
		"only the ends": {
			"for i in 1 2; do head -c 100000 /dev/zero | tr '\\0' x >&$i; echo end$i >&$i; done; exit 1", core.StatusWaiting, model.OutcomeFailed, "",
			"exit status 1: " + strings.Repeat("x", 595) + "end2 (stdout: " + strings.Repeat("x", 245) + "end1)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := once(t, c.script, core.NewTask{})
			assert.Equal(t, c.status, task.Status)
			assert.Equal(t, c.last, task.LastOutcome)
			assert.Equal(t, c.reason, task.Reason)
			assert.Equal(t, c.err, task.LastError)
			if name == "later" {
				assert.WithinDuration(t, time.Now().Add(time.Hour), task.NextRun, 30*time.Second)
				assert.Equal(t, 1, task.Attempt)
			}
		})
	}
}

func TestAProgramGetsItsTask(t *testing.T) {
	t.Setenv("DULY_TEST_SECRET", "hunter2")
	t.Setenv("DULY_TEST_MINE", "yes")
	w, err := start(exec.Config{
		Argv:       []string{"sh", "-c", `printf '{"stdin":'; cat; printf ',"env":"%s"}' "$(env | grep DULY_ | sort | tr '"\n' '~ ')"`},
		WithoutEnv: []string{"DULY_TEST_SECRET"},
	})
	require.NoError(t, err)
	_, err = w.s.Submit(t.Context(), core.NewTask{
		Agent: "a", ID: "i", Kind: "x", Payload: map[string]string{"k": "v"}, Level: core.LevelHigh, SessionID: "s",
		UserID: "u", Labels: map[string]string{"tier": "gold"}, Cron: "* * * * *", Zone: "Asia/Tokyo",
	})
	require.NoError(t, err)
	_, err = w.s.RunNow(t.Context(), "a", "i")
	require.NoError(t, err)
	task := w.run(t)
	require.Equal(t, model.OutcomeSuccess, task.LastOutcome, task.LastError)
	var got struct {
		Stdin map[string]any
		Env   string
	}
	require.NoError(t, json.Unmarshal(task.Result, &got))
	assert.Equal(t, "Asia/Tokyo", got.Stdin["zone"])
	assert.Equal(t, map[string]any{"k": "v"}, got.Stdin["payload"])
	for _, want := range []string{
		"DULY_AGENT=a ", "DULY_AGENT_ID=a ", "DULY_TASK_ID=i ", "DULY_KIND=x ", "DULY_GROUP= ", "DULY_LEVEL=1 ", "DULY_ATTEMPT=1 ",
		fmt.Sprintf("DULY_FENCE=%.0f ", got.Stdin["fence"]), fmt.Sprintf("DULY_DUE=%s ", got.Stdin["due_at"]),
		fmt.Sprintf("DULY_OCCURRENCE=%s ", got.Stdin["occurrence"]), "DULY_ZONE=Asia/Tokyo ", "DULY_SESSION_ID=s ",
		"DULY_USER_ID=u ", "DULY_LABELS={~tier~:~gold~} ", "DULY_TEST_MINE=yes ", "DULY_PARENT=a/i ",
	} {
		assert.Contains(t, got.Env, want)
	}
	assert.NotContains(t, got.Env, "SECRET")
}

// What a program writes is kept: JSON as it is, text as text, and of what is too large the beginning, which says so.
func TestResults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ script, want string }{
		"JSON":      {`echo ' {"a": [1, 2]} '`, `{"a":[1,2]}`},
		"text":      {"echo plain text", `"plain text"`},
		"not UTF-8": {`printf 'a\377b'`, `"a\ufffdb"`},
		"too long":  {"head -c 1000000 /dev/zero | tr '\\0' x", `{"truncated":true,"text":"` + strings.Repeat("x", 500) + `"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := once(t, c.script, core.NewTask{})
			assert.Equal(t, core.StatusCompleted, task.Status, task.LastError)
			assert.JSONEq(t, c.want, string(task.Result))
		})
	}
	assert.Empty(t, once(t, "true", core.NewTask{}).Result)
}

// A payload of any size reaches a program, and one that does not read it succeeds all the same.
func TestLargePayloads(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{"read": `test "$(wc -c)" -gt 250000`, "unread": "exit 0"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := once(t, script, core.NewTask{Payload: strings.Repeat("x", 250_000)})
			assert.Equal(t, core.StatusCompleted, task.Status, task.LastError)
		})
	}
}

// A program steers its run with lines on file descriptor 3.
func TestSteering(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		status core.Status
		last   model.Outcome
		wait   time.Duration
		err    string
	}{
		"snooze":           {"echo 'duly-snooze: 10m' >&3", core.StatusWaiting, model.OutcomeSnoozed, 10 * time.Minute, ""},
		"snooze, exit 75":  {"echo 'duly-snooze: 10m' >&3; exit 75", core.StatusWaiting, model.OutcomeSnoozed, 10 * time.Minute, ""},
		"the last counts":  {"printf 'duly-snooze: 5m\nduly-snooze: 10m\n' >&3", core.StatusWaiting, model.OutcomeSnoozed, 10 * time.Minute, ""},
		"yield":            {`echo 'Duly-Yield: 5m {"page": 2}' >&3`, core.StatusWaiting, model.OutcomeYielded, 5 * time.Minute, ""},
		"no line end":      {"printf 'duly-snooze: 10m' >&3", core.StatusWaiting, model.OutcomeSnoozed, 10 * time.Minute, ""},
		"empty lines":      {"printf '\n\nduly-progress: 1\n\n' >&3", core.StatusCompleted, model.OutcomeSuccess, 0, ""},
		"next in, once":    {"echo 'duly-next-in: 10m' >&3", core.StatusCompleted, model.OutcomeSuccess, 0, ""},
		"next in, exit 75": {"echo 'duly-next-in: 10m' >&3; exit 75", core.StatusWaiting, model.OutcomeSnoozed, time.Hour, ""},
		"failed":           {"echo 'duly-snooze: 10m' >&3; exit 1", core.StatusWaiting, model.OutcomeFailed, 0, "exit status 1"},
		"yield nothing":    {"echo 'duly-yield: 5m' >&3", core.StatusFailed, model.OutcomeFailed, 0, `duly-yield needs a checkpoint that is JSON, not ""`},
		"unknown":          {"echo 'duly-snoze: 5m' >&3", core.StatusFailed, model.OutcomeFailed, 0, "duly-snoze is unknown: use duly-snooze, duly-yield, duly-await, duly-next-in, duly-progress or duly-usage"},
		"chatter":          {"echo 'hello: there' >&3", core.StatusFailed, model.OutcomeFailed, 0, `must be such as duly-snooze: 10m, not "hello: there"`},
		"no colon":         {"echo 'duly-snooze 10m' >&3", core.StatusFailed, model.OutcomeFailed, 0, `must be such as duly-snooze: 10m, not "duly-snooze 10m"`},
		"two of them":      {"printf 'duly-snooze: 5m\nduly-next-in: 5m\n' >&3", core.StatusFailed, model.OutcomeFailed, 0, "duly-snooze and duly-next-in exclude each other"},
		"too long":         {"head -c 1000000 /dev/zero | tr '\\0' x >&3; echo done", core.StatusFailed, model.OutcomeFailed, 0, "a line on file descriptor 3 is longer than 263168 bytes"},
		"save nothing":     {"echo 'duly-save: page 2' >&3", core.StatusFailed, model.OutcomeFailed, 0, `duly-save needs a checkpoint that is JSON, not "page 2"`},
		"save too much":    {`printf 'duly-save: "%s"\n' $(head -c 262143 /dev/zero | tr '\0' x) >&3`, core.StatusFailed, model.OutcomeFailed, 0, "save: checkpoint is 262145 bytes long: the limit is 262144"},
		"saves unread":     {"yes 'duly-save: 1' | head -n 20000 >&3", core.StatusCompleted, model.OutcomeSuccess, 0, ""},
		"much progress":    {"yes 'duly-progress: [1]' | head -n 20000 >&3", core.StatusCompleted, model.OutcomeSuccess, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			task := once(t, c.script, core.NewTask{})
			assert.Equal(t, c.status, task.Status, task.LastError)
			assert.Equal(t, c.last, task.LastOutcome)
			assert.Contains(t, task.LastError, c.err)
			if c.wait > 0 {
				assert.WithinDuration(t, time.Now().Add(c.wait), task.NextRun, 30*time.Second)
			}
		})
	}
}

// Progress is seen while the program runs, and the checkpoint of one run is in the task of the next.
func TestProgressAndCheckpoints(t *testing.T) {
	t.Parallel()
	seen := filepath.Join(t.TempDir(), "seen")
	require.NoError(t, os.WriteFile(seen+".sh", []byte(`
input=$(cat)
case $input in *'"checkpoint":{"page":2}'*) echo "$input"; exit 0 ;; esac
echo 'duly-progress: {"done": 1}' >&3
while ! test -e `+seen+`; do sleep 0.01; done
echo 'duly-yield: 0s {"page": 2}' >&3
`), 0o600))
	w, err := start(exec.Config{Argv: []string{"sh", seen + ".sh"}})
	require.NoError(t, err)
	_, err = w.s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "i", Kind: "x"})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := w.s.RunDue(t.Context(), core.Scope{})
		ended <- err
	}()
	require.Eventually(t, func() bool {
		info, err := w.s.Task(t.Context(), "a", "i")
		return err == nil && string(info.Progress) == `{"done":1}` && info.Status == core.StatusInProgress
	}, 10*time.Second, 5*time.Millisecond)
	require.NoError(t, os.WriteFile(seen, nil, 0o600))
	require.NoError(t, <-ended)
	var info core.TaskInfo
	require.Eventually(t, func() bool {
		_, err := w.s.RunDue(t.Context(), core.Scope{})
		require.NoError(t, err)
		info, err = w.s.Task(t.Context(), "a", "i")
		return err == nil && info.Status == core.StatusCompleted
	}, 10*time.Second, 5*time.Millisecond)
	assert.EqualValues(t, 2, info.RunCount)
	assert.Zero(t, info.ErrorCount)
}

func TestConfigsAreChecked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config exec.Config
		want   string
	}{
		{exec.Config{}, "Argv needs a program"},
		{exec.Config{Argv: []string{""}}, "Argv needs a program"},
		{exec.Config{Argv: []string{"no-such-thing"}}, `Argv names the program "no-such-thing", which was not found: name one in the PATH, or its path`},
		{exec.Config{Argv: []string{"sh"}, SnoozeFor: -1}, "SnoozeFor must not be negative, not -1ns"},
	} {
		_, err := exec.New(c.config)
		require.EqualError(t, err, c.want)
		assert.ErrorAs(t, err, new(*core.ConfigError))
	}
}

// A program says in three ways that its task waits, and finds what that was told in its input.
func TestAwaits(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]string{
		"a line":               `echo 'duly-await: yes {"page":2}' >&3`,
		"a line and its exit":  `echo 'duly-await: {"key":"yes","timeout":"48h"} {"page":2}' >&3; exit 76`,
		"its exit, and output": `echo '{"key":"yes","on_timeout":"fail","checkpoint":{"page":2}}'; exit 76`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := `read input; case "$input" in *'"heard"'*) echo "$input";; *) ` + first + `;; esac`
			w, err := start(exec.Config{Argv: []string{"sh", "-c", script}})
			require.NoError(t, err)
			_, err = w.s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "i", Kind: "x"})
			require.NoError(t, err)
			info := w.run(t)
			require.NotNil(t, info.Awaiting, info.LastError)
			assert.Equal(t, "yes", info.Awaiting.Key)
			_, err = w.s.Signal(t.Context(), "a", "yes", json.RawMessage(`[1]`))
			require.NoError(t, err)
			_, err = w.s.RunDue(t.Context(), core.Scope{})
			require.NoError(t, err)
			info, err = w.s.Task(t.Context(), "a", "i")
			require.NoError(t, err)
			require.Equal(t, core.StatusCompleted, info.Status)
			var got struct {
				Heard, Checkpoint json.RawMessage
			}
			require.NoError(t, json.Unmarshal(info.Result, &got))
			assert.Contains(t, string(got.Heard), `{"key":"yes","told":true,"payload":[1],"timed_out":false,"how":"process","by":`)
			assert.JSONEq(t, `{"page":2}`, string(got.Checkpoint))
		})
	}
	info := once(t, `exit 76`, core.NewTask{})
	assert.Equal(t, core.StatusFailed, info.Status)
	assert.Contains(t, info.LastError, "exit 76, and the standard output: duly-await needs a key")
}

// A program that has saved a checkpoint knows that it is stored, and goes on from there after it has died.
func TestAProgramSaves(t *testing.T) {
	t.Parallel()
	w, err := start(exec.Config{Argv: []string{"sh", "-c", `
input=$(cat)
case $input in *'"checkpoint":{"page":2}'*) echo '"went on"'; exit 0 ;; esac
for page in 1 2; do
  echo "duly-save: {\"page\": $page}" >&3
  read -r answer <&4
  test "$answer" = saved || exit 65
done
kill -9 $$
`}})
	require.NoError(t, err)
	_, err = w.s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "i", Kind: "x", MaxAttempts: 2, Backoff: -1})
	require.NoError(t, err)
	for range 2 {
		_, _ = w.s.RunDue(t.Context(), core.Scope{}) // the first run fails
	}
	info, err := w.s.Task(t.Context(), "a", "i")
	require.NoError(t, err)
	assert.Equal(t, core.StatusCompleted, info.Status, info.LastError)
	assert.JSONEq(t, `"went on"`, string(info.Result))
}

// A program whose task another process has is answered so, as one is whose store is away.
func TestASaveIsAnswered(t *testing.T) {
	t.Parallel()
	for want, answer := range map[string]func(answer any) error{
		"lost": func(answer any) error { answer.([]store.Extended)[0] = store.Extended{}; return nil },
		"failed: save: the checkpoint may not be stored yet: away for long": func(any) error { return errors.New("away\nfor long") },
	} {
		st := &spy.Store{Store: memstore.New(memstore.Config{})}
		st.After = func(_ context.Context, verb string, got any) error {
			if verb == "Extend" {
				return answer(got)
			}
			return nil
		}
		s, err := core.New(st, core.Config{})
		require.NoError(t, err)
		got := filepath.Join(t.TempDir(), "got")
		h, err := exec.New(exec.Config{Argv: []string{"sh", "-c", `trap "" TERM; echo 'duly-save: 1' >&3; read -r answer <&4; printf %s "$answer" > ` + got}})
		require.NoError(t, err)
		core.Handle(s, "x", h.Run)
		_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "i", Kind: "x"})
		require.NoError(t, err)
		_, err = s.RunDue(t.Context(), core.Scope{})
		require.NoError(t, err)
		said, err := os.ReadFile(got)
		require.NoError(t, err)
		assert.Equal(t, want, string(said))
	}
}
