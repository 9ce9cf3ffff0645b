package cli_test

// duly work: a program as a pulled worker, against servers on a real Redis.

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// shop is a server with a Redis, and a world for workers, which have none.
type shop struct {
	*world

	t   *testing.T
	s   *core.Scheduler
	far *world
}

// openShop starts a server for workers.
func openShop(t *testing.T) *shop {
	t.Helper()
	local, far := served(t, "")
	at := &shop{world: local, t: t, s: local.scheduler(t), far: far}
	return at
}

// work starts a worker whose program is a script of sh.
func (s *shop) work(script string, more ...string) *running {
	s.t.Helper()
	w := s.far.start(s.t, append(append([]string{"work", "--kind", "x", "--lease", "3s"}, more...), "--", "sh", "-c", script)...)
	w.line(s.t, "duly is working")
	return w
}

// submit submits a task of the kind that the workers run.
func (s *shop) submit(id string, more ...string) {
	s.t.Helper()
	s.ok(s.t, append([]string{"submit", "--agent", "a", "--id", id, "--kind", "x", "--backoff", "1ms"}, more...)...)
}

// becomes waits until something is so about a task.
func (s *shop) becomes(id string, so func(t *core.TaskInfo) bool) core.TaskInfo {
	s.t.Helper()
	var task core.TaskInfo
	require.Eventually(s.t, func() bool {
		var err error
		task, err = s.s.Task(s.t.Context(), "a", id)
		return err == nil && so(&task)
	}, 30*time.Second, 20*time.Millisecond, id)
	return task
}

// A program's result, exit codes, retries and steering are those of a handler of the file.
func TestWorkRunsAProgram(t *testing.T) {
	t.Parallel()
	at := openShop(t)
	w := at.work(`in=$(cat)
case "$DULY_TASK_ID" in
  good) echo "$in" ;;
  dead) echo wrong >&2; exit 65 ;;
  again) [ "$DULY_ATTEMPT" = 2 ] || exit 3 ;;
  later) echo 'duly-snooze: 1h' >&3; exit 75 ;;
  yields) case "$in" in *'"checkpoint":{"page":1}'*) echo '"two"' ;; *) echo 'duly-yield: 0s {"page":1}' >&3; exit 75 ;; esac ;;
  awaits) case "$in" in *'"told":true'*) echo "$in" ;; *) echo 'duly-await: key null' >&3; exit 76 ;; esac ;;
  uses) echo '{"duly_usage":{"tokens":5}}'; echo 'duly-usage: {"tokens":2}' >&3 ;;
  odd) echo '"\ud800"' ;;
  env) env ;;
  long) sleep 5 ;;
esac`, "--name", "w1", "--concurrency", "2")
	at.submit("long") // than its lease
	at.submit("good", "--payload", `{"n":1}`, "--group", "g", "--tag", "t", "--label", "l=v")
	for _, id := range []string{"dead", "again", "later", "yields", "awaits", "uses", "odd", "env"} {
		at.submit(id)
	}
	good := settled(t, at.s, "a", "good", core.StatusCompleted)
	in := parse[map[string]any](t, string(good.Result))
	assert.Equal(t, map[string]any{"n": 1.0}, in["payload"])
	assert.Equal(t, []any{"g", 1.0, 1.0, []any{"t"}, map[string]any{"l": "v"}}, []any{in["group"], in["attempt"], in["call"], in["tags"], in["labels"]})
	assert.Equal(t, "w1", good.Runs[0].Process)
	dead := settled(t, at.s, "a", "dead", core.StatusFailed)
	assert.Equal(t, "exit status 65: wrong", dead.LastError)
	assert.Len(t, dead.Runs, 1, "a retry would not help")
	again := settled(t, at.s, "a", "again", core.StatusCompleted)
	assert.Equal(t, "exit status 3", again.Runs[0].Error)
	assert.Equal(t, model.OutcomeSnoozed, at.becomes("later", func(t *core.TaskInfo) bool { return t.RunCount > 0 }).LastOutcome)
	assert.JSONEq(t, `"two"`, string(settled(t, at.s, "a", "yields", core.StatusCompleted).Result))
	at.becomes("awaits", func(t *core.TaskInfo) bool { return t.Awaiting != nil })
	at.ok(t, "signal", "a", "key")
	settled(t, at.s, "a", "awaits", core.StatusCompleted)
	assert.Equal(t, core.Usage{"tokens": 7}, settled(t, at.s, "a", "uses", core.StatusCompleted).Runs[0].Used, "what a result says is counted once")
	assert.Contains(t, settled(t, at.s, "a", "odd", core.StatusFailed).LastError, "surrogate")
	env := parse[string](t, string(settled(t, at.s, "a", "env", core.StatusCompleted).Result))
	assert.Contains(t, env, "DULY_PARENT=a/env")
	assert.NotContains(t, env, serverToken)
	assert.Zero(t, settled(t, at.s, "a", "long", core.StatusCompleted).Crashes)
	w.line(t, "done", "kind=x", "task=good")
	w.line(t, "failed for good", "task=dead", "exit status 65")
	w.line(t, "failed, will retry", "task=again")
	code, _ := w.stop(t, syscall.SIGTERM)
	assert.Equal(t, 0, code, w.log())
}

// A cancel, the run's own timeout and the loss of the run end a program, and what it started.
func TestWorkEndsPrograms(t *testing.T) {
	t.Parallel()
	at := openShop(t)
	dir := t.TempDir()
	w := at.work(`trap 'echo ended > `+dir+`/"$DULY_TASK_ID"; exit 1' TERM; echo 'duly-progress: {"half":true}' >&3; sleep 60 & wait`, "--concurrency", "3")
	at.submit("cancelled")
	at.submit("timeout", "--timeout", "1s", "--max-attempts", "1")
	at.submit("lost")
	running := at.becomes("cancelled", func(t *core.TaskInfo) bool { return len(t.Progress) > 0 })
	assert.JSONEq(t, `{"half":true}`, string(running.Progress))
	at.ok(t, "cancel", "a", "cancelled")
	assert.Contains(t, settled(t, at.s, "a", "timeout", core.StatusFailed).LastError, core.ErrTimeout.Error())
	at.becomes("lost", func(t *core.TaskInfo) bool { return len(t.Progress) > 0 })
	require.NoError(t, at.s.Delete(t.Context(), "a", "lost"))
	settled(t, at.s, "a", "cancelled", core.StatusCancelled)
	w.line(t, "lost its lease", "task=lost")
	for _, id := range []string{"cancelled", "timeout", "lost"} {
		assert.FileExists(t, filepath.Join(dir, id))
	}
}

// A checkpoint outlives kill -9 of the worker: the next run of the task has it.
func TestWorkIsKilled(t *testing.T) {
	t.Parallel()
	at := openShop(t)
	const script = `in=$(cat); case "$in" in *'"checkpoint":{"page":7}'*) echo "$in"; exit 0 ;; esac
echo 'duly-save: {"page":7}' >&3; read -r answer <&4; echo "duly-progress: \"$answer\"" >&3; sleep 60`
	w := at.work(script)
	at.submit("1")
	at.becomes("1", func(t *core.TaskInfo) bool { return string(t.Progress) == `"saved"` })
	require.NoError(t, w.cmd.Process.Kill())
	<-w.ended
	at.work(script)
	done := settled(t, at.s, "a", "1", core.StatusCompleted)
	assert.EqualValues(t, 1, parse[map[string]any](t, string(done.Result))["crashes"])
}

// SIGTERM lets runs end in the grace, and gives back what has not, uncharged.
func TestWorkGivesBack(t *testing.T) {
	t.Parallel()
	at := openShop(t)
	w := at.work(`echo 'duly-progress: 1' >&3; [ "$DULY_TASK_ID" = slow ] && exec sleep 60; sleep 1`, "--concurrency", "2", "--grace", "3s")
	at.submit("slow")
	at.submit("quick")
	for _, id := range []string{"slow", "quick"} { // their programs run: a worker that stops before it has an answer gives back what is in it
		at.becomes(id, func(t *core.TaskInfo) bool { return len(t.Progress) > 0 })
	}
	code, took := w.stop(t, syscall.SIGTERM)
	assert.Equal(t, 0, code, w.log())
	assert.Less(t, took, 12*time.Second)
	assert.Contains(t, w.log(), "released")
	slow, err := at.s.Task(t.Context(), "a", "slow")
	require.NoError(t, err)
	assert.Equal(t, core.StatusWaiting, slow.Status)
	assert.Zero(t, slow.ErrorCount+int64(slow.Crashes))
	settled(t, at.s, "a", "quick", core.StatusCompleted)
}

// The server is killed and comes back: the program that runs is not disturbed, and its end arrives. Each change is a line of the log.
func TestWorkOutlivesItsServer(t *testing.T) {
	t.Parallel()
	local := newWorld(t)
	address := redistest.FreeAddr(t)
	serve := func() *running {
		d := local.start(t, "serve", "--http", address)
		d.line(t, "listening")
		return d
	}
	server := serve()
	far := noRedis()
	far.env = append(far.env, "DULY_SERVER=http://"+address)
	at := &shop{world: local, t: t, s: local.scheduler(t), far: far}
	dir := t.TempDir()
	w := at.work(`touch `+dir+`/began-$DULY_TASK_ID-$$; until [ -e `+dir+`/go ]; do sleep 0.1; done; echo 1`, "--lease", "30s")
	at.submit("1")
	at.submit("2")
	at.becomes("1", func(t *core.TaskInfo) bool { return t.Status == core.StatusInProgress })
	require.NoError(t, server.cmd.Process.Kill())
	<-server.ended
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	w.line(t, "does not answer as it should", "call=return")
	serve()
	settled(t, at.s, "a", "1", core.StatusCompleted)
	settled(t, at.s, "a", "2", core.StatusCompleted)
	w.line(t, "the server answers again", "call=return")
	assert.Equal(t, 1, strings.Count(w.log(), "call=return err="), w.log())
	began, err := filepath.Glob(dir + "/began-*")
	require.NoError(t, err)
	assert.Len(t, began, 2, "none ran twice")
	code, _ := w.stop(t, syscall.SIGTERM)
	assert.Equal(t, 0, code, w.log())
}

// Three programs run at once, each waiting for the others; one that takes longer than its time is ended.
func TestWorkConcurrency(t *testing.T) {
	t.Parallel()
	at := openShop(t)
	dir := t.TempDir()
	at.submit("1")
	at.submit("2")
	at.submit("3")
	r := at.far.duly(t, "work", "--kind", "x", "--kind", "y", "--agent", "a", "--concurrency", "3", "--once", "--", "sh", "-c",
		`touch `+dir+`/$DULY_TASK_ID; until [ -e `+dir+`/1 ] && [ -e `+dir+`/2 ] && [ -e `+dir+`/3 ]; do sleep 0.05; done`)
	assert.Equal(t, 0, r.code, r.stderr)
	for _, id := range []string{"1", "2", "3"} {
		settled(t, at.s, "a", id, core.StatusCompleted)
	}
	at.submit("slow", "--timeout", "1s", "--max-attempts", "1")
	begun := time.Now()
	at.far.ok(t, "work", "--kind", "x", "--once", "--", "sleep", "60")
	assert.Less(t, time.Since(begun), 10*time.Second, "its time ends by itself, and not with the next sign of life")
	assert.Contains(t, settled(t, at.s, "a", "slow", core.StatusFailed).LastError, core.ErrTimeout.Error())
}

// What cannot be mended by waiting ends the worker, with what to do.
func TestWorkIsRefused(t *testing.T) {
	t.Parallel()
	at := openShop(t)
	program := []string{"--", "true"}
	work := func(args ...string) result {
		return at.far.duly(t, append(append([]string{"work"}, args...), program...)...)
	}
	refused := func(r result, code int, parts ...string) {
		t.Helper()
		assert.Equal(t, code, r.code, r.stderr)
		lines := strings.Split(strings.TrimSpace(r.stderr), "\n")
		for _, part := range parts {
			assert.Contains(t, lines[len(lines)-1], part)
		}
	}
	refused(work("--kind", "x", "--token", "wrong"), 6, "does not accept the token", "pass --token")
	refused(work("--kind", "x!"), 2, `"x!"`, "duly work --help")
	refused(work(), 2, "--kind is required")
	refused(work("--kind", "x", "--concurrency", "-1"), 2, "--concurrency must be between")
	refused(work("--kind", "x", "--lease", "1ms"), 2, "--lease must be between")
	refused(work("--kind", "x", "--grace", "-1s"), 2, "--grace must not be negative")
	refused(at.far.duly(t, "work", "--kind", "x"), 2, "needs a program")
	refused(at.far.duly(t, "work", "--kind", "x", "--", "no-such-program"), 2, "was not found")
	refused(at.duly(t, "work", "--kind", "x", "--", "true"), 2, "needs a server")
	narrow := newWorld(t)
	narrow.env = append(narrow.env, "GPU=only-x-only-x-only-x-only-x-only")
	url := narrow.start(t, "serve", "--http", "127.0.0.1:0", "-c", file(t, "tokens:\n  - { env: GPU, scopes: [work], kinds: [x], agents: [ada, 'team-*'] }\n")).url(t)
	at.far.env = append(at.far.env, "DULY_SERVER="+url, "DULY_TOKEN=only-x-only-x-only-x-only-x-only")
	refused(work("--kind", "y", "--agent", "ada"), 6, "does not cover the kind y", "--agent")
	refused(work("--kind", "x"), 6, "covers agents by a pattern", "--agent")
	r := work("--kind", "x", "--agent", "ada", "--once")
	assert.Equal(t, 0, r.code, r.stderr)
}

// While the server stays away a worker tries again, with pauses that grow, and one line.
func TestWorkWaitsForItsServer(t *testing.T) {
	t.Parallel()
	calls := make(chan time.Time, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		calls <- time.Now()
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = fmt.Fprint(w, `{"code":"unavailable","detail":"no store"}`)
	}))
	t.Cleanup(server.Close)
	w := noRedis()
	d := w.start(t, "work", "--server", server.URL, "--kind", "x", "--", "true")
	first := <-calls
	var last time.Time
	for range 4 {
		last = <-calls
	}
	assert.Greater(t, last.Sub(first), 700*time.Millisecond, "0.1, 0.2, 0.4 and 0.8 s, of which half is left to chance")
	code, took := d.stop(t, syscall.SIGTERM)
	assert.Equal(t, 0, code, d.log())
	assert.Less(t, took, 5*time.Second)
	assert.Equal(t, 1, strings.Count(d.log(), "no store"), d.log())
}

// What a program of a worker prints is seen on the server while it runs, and is whole once it has ended.
func TestWhatAWorkerPrintsIsKept(t *testing.T) {
	t.Parallel()
	at := openShop(t)
	sign := filepath.Join(t.TempDir(), "go")
	at.work(`echo begun; while [ ! -e ` + sign + ` ]; do sleep 0.05; done; i=0; while [ $i -lt 3000 ]; do echo "line $i of what is printed"; i=$((i+1)); done; printf '\377\001 wrong' >&2; exit 65`)
	at.submit("1")
	require.Eventually(t, func() bool { return strings.Contains(at.ok(t, "logs", "a", "1"), "begun") }, 20*time.Second, 50*time.Millisecond)
	assert.Equal(t, core.StatusInProgress, at.becomes("1", func(*core.TaskInfo) bool { return true }).Status)
	require.NoError(t, os.WriteFile(sign, nil, 0o600))
	settled(t, at.s, "a", "1", core.StatusFailed)
	var out inspect.Output
	require.Eventually(t, func() bool {
		out = parse[inspect.Output](t, at.far.ok(t, "logs", "a", "1", "--json"))
		return out.Ended
	}, 10*time.Second, 50*time.Millisecond)
	assert.Contains(t, out.Text, "line 2999 of what is printed\n")
	assert.Contains(t, out.Text, " wrong")
	assert.NotContains(t, out.Text, "begun", "the last 64 KiB are kept")
	assert.Positive(t, out.Left)
}
