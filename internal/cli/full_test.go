package cli_test

// A Redis at maxmemory: everything opens, reads, ends and deletes; only what adds is refused.

import (
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// fill lets Redis accept nothing more.
func (w *world) fill(t *testing.T) {
	t.Helper()
	require.NoError(t, w.redis.Client(t).ConfigSet(t.Context(), "maxmemory", "1").Err())
}

// Every command opens a full Redis, with and without a file that it knows, and does what needs no room.
func TestAFullRedisOpensForEveryCommand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := file(t, `
owner: ops
limits: [{ kind: note, concurrency: 2 }]
budgets: [{ each: agent, unit: tokens, per: day, amount: 1000 }]
agents: [{ agent: ann, quiet: [{ from: "22:00", to: "22:01" }] }]
handlers:
  note: { exec: ["true"] }
  broken: { exec: ["false"], max_attempts: 1 }
tasks: [{ agent: ann, id: news, kind: note, every: 24h, delay: 24h }]
`)
	w.ok(t, "run-due", "-c", config, "--all")
	for i := range 12 {
		w.ok(t, "submit", "--agent", "ada", "--id", fmt.Sprint(i), "--kind", "note", "--delay", "1h")
	}
	w.ok(t, "submit", "--agent", "eve", "--id", "1", "--kind", "note", "--delay", "1h")
	w.ok(t, "submit", "--agent", "ada", "--id", "dead", "--kind", "broken")
	assert.Equal(t, 4, w.duly(t, "run-due", "-c", config, "--all").code)
	w.ok(t, "submit", "--agent", "ada", "--id", "now", "--kind", "note")
	w.ok(t, "pause", "ada", "1")
	w.fill(t)

	for _, args := range [][]string{
		{"stats"},
		{"list", "--agent", "ada"},
		{"list", "--status", "failed"},
		{"status", "ada", "1"},
		{"explain", "ada", "1"},
		{"runs", "ada", "dead"},
		{"agents"},
		{"kinds"},
		{"queue"},
		{"pauses"},
		{"limit", "list"},
		{"budget", "list"},
		{"processes"},
		{"agent", "show", "ann"},
		{"agent", "export", "ada"},
		{"audit"},
		{"audit", "--repair"},
		{"resume", "ada", "1"},
		{"cancel", "ada", "2"},
		{"delete", "ada", "3"},
		{"agent", "forget", "eve", "--yes"},
		{"run", "ada", "4"},
		{"pause", "ada", "5"},
		{"limit", "set", "--kind", "note", "--concurrency", "1"},
		{"limit", "unset", "--kind", "note"},
	} {
		r := w.duly(t, args...)
		assert.Equal(t, 0, r.code, "%v: %s%s", args, r.stdout, r.stderr)
	}
	r := w.duly(t, "doctor", "-c", config)
	assert.NotContains(t, r.stdout+r.stderr, "test run of the scripts")
	assert.Contains(t, r.stdout, "Redis is at maxmemory")
	oneLine(t, w.duly(t, "submit", "--agent", "new", "--id", "1", "--kind", "note"), 5, "the store is out of memory")
	oneLine(t, w.duly(t, "replay", "ada", "dead"), 5, "the store is out of memory")

	r = w.duly(t, "run-due", "-c", config, "--all")
	assert.Zero(t, r.code, r.stderr)
	s := w.scheduler(t)
	assert.Equal(t, core.StatusCompleted, settled(t, s, "ada", "now", core.StatusCompleted).Status)
	assert.Equal(t, core.StatusCompleted, settled(t, s, "ada", "4", core.StatusCompleted).Status)

	d := w.start(t, "daemon", "-c", config, "--http", "127.0.0.1:0")
	d.line(t, "duly is running")
	w.ok(t, "run", "ada", "6")
	settled(t, s, "ada", "6", core.StatusCompleted)
	code, _ := d.stop(t, syscall.SIGTERM)
	assert.Zero(t, code)
}

// A daemon whose file has a task that a full Redis refuses starts all the same, and submits it once there is room.
func TestATaskOfTheFileWaitsForRoom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok(t, "submit", "--agent", "ada", "--id", "1", "--kind", "note", "--delay", "1h")
	w.fill(t)
	d := w.start(t, "daemon", "-c", file(t, `
limits: [{ kind: note, concurrency: 2 }]
handlers: { note: { exec: ["true"] } }
tasks: [{ agent: ann, id: news, kind: note, every: 24h }]
`))
	d.line(t, "tasks of this process cannot be stored as the store is full")
	d.line(t, "duly is running")
	w.ok(t, "run", "ada", "1")
	s := w.scheduler(t)
	settled(t, s, "ada", "1", core.StatusCompleted)
	require.NoError(t, w.redis.Client(t).ConfigSet(t.Context(), "maxmemory", "0").Err())
	require.Eventually(t, func() bool {
		task, err := s.Task(t.Context(), "ann", "news")
		return err == nil && task.RunCount == 1
	}, 20*time.Second, 20*time.Millisecond)
}

// With callbacks, a budget and a limit each run ends once while Redis is full, and each end is told.
func TestRunsEndOnceWhileRedisIsFull(t *testing.T) {
	t.Parallel()
	rec := newReceiver(t, func(http.ResponseWriter, *http.Request) {})
	w := newCallbackWorld(t)
	config := callbackFile(t, rec.URL+"/ends/", " }\nlimits: [{ kind: fine, concurrency: 3 }]\nbudgets: [{ kind: fine, unit: runs, per: day, amount: 1000 }]\nconcurrency: 10 #")
	config = file(t, strings.ReplaceAll(read(t, config), "# }", ""))
	s := w.scheduler(t)
	const tasks = 30
	for i := range tasks {
		kind := []string{"fine", "fails"}[i%2]
		w.ok(t, "submit", "-c", config, "--agent", fmt.Sprint("a", i%5), "--id", fmt.Sprint(i), "--kind", kind, "--callback", rec.URL+"/ends/"+fmt.Sprint(i), "--max-attempts", "1")
	}
	w.fill(t)
	d := w.start(t, "daemon", "-c", config)
	require.Eventually(t, func() bool { return len(rec.messages()) >= tasks }, 25*time.Second, 20*time.Millisecond)
	require.Eventually(t, func() bool {
		stats, err := s.Stats(t.Context())
		return err == nil && stats.InProgress == 0 && stats.Waiting == 0
	}, 20*time.Second, 20*time.Millisecond)
	for i := range tasks {
		runs, err := s.Task(t.Context(), fmt.Sprint("a", i%5), fmt.Sprint(i))
		require.NoError(t, err)
		assert.Equal(t, int64(1), runs.RunCount, "it ran once")
		assert.True(t, runs.Status.Finished())
	}
	assert.Len(t, rec.messages(), tasks)
	code, _ := d.stop(t, syscall.SIGTERM)
	assert.Zero(t, code)
}
