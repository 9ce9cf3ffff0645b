package cli_test

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core"
)

// At each start the tasks of the file are made what the file says: what is the same is not touched, what differs has the
// new definition and its history, and what is finished stays so.
func TestTheTasksOfAFileAreUpserted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.scheduler(t)
	text := func(every, payload string) string {
		return file(t, fmt.Sprintf(`
handlers: { note: { log: {} } }
tasks:
  - { agent: ada, id: job, kind: note, every: %s, payload: { text: %s }, pause_after_failures: 3 }
  - { agent: ada, id: late, kind: note, every: 3h, delay: 1h }
  - { agent: ada, id: once, kind: note, payload: { text: %s } }
  - { agent: ada, id: soon, kind: note, delay: 2h, payload: { text: %s } }
  - { agent: ada, id: at, kind: note, at: 2090-01-02T03:04:05Z }
  - { agent: ada, id: mine, kind: note, every: %s, on_conflict: keep }
  - { agent: ada, unique_key: u, kind: note, every: %s }
`, every, payload, payload, payload, every, every))
	}
	daemon := func(config, want string) {
		d := w.start(t, "daemon", "-c", config)
		d.line(t, "duly is running", want)
		settled(t, s, "ada", "once", core.StatusCompleted)
		for _, id := range []string{"job", "mine"} {
			assert.Eventually(t, func() bool { info, err := s.Task(t.Context(), "ada", id); return err == nil && info.RunCount > 0 }, 20*time.Second, 5*time.Millisecond)
		}
		code, _ := d.stop(t, syscall.SIGTERM)
		assert.Equal(t, 0, code)
	}
	first := text("1h", "first")
	daemon(first, "new=7 changed=0")
	w.ok(t, "run-due", "-c", first, "--all") // whatever the daemon has left
	before := w.ok(t, "list", "--agent", "ada", "--json")

	assert.Contains(t, w.ok(t, "run-due", "-c", first, "--all"), "ran 0 tasks")
	daemon(first, "new=0 changed=0")
	assert.Equal(t, before, w.ok(t, "list", "--agent", "ada", "--json"), "nothing has moved")

	second := text("2h", "second")
	assert.Contains(t, w.ok(t, "run-due", "-c", second, "--all"), "ran 2 tasks", "those whose interval begins anew")
	job, late, once := w.object(t, "status", "ada", "job"), w.object(t, "status", "ada", "late"), w.object(t, "status", "ada", "once")
	assert.Equal(t, "2h0m0s", job["every"])
	assert.Equal(t, map[string]any{"text": "second"}, job["payload"])
	assert.EqualValues(t, 3, job["pause_after_failures"])
	assert.EqualValues(t, 2, job["run_count"], "with its history")
	assert.Equal(t, "completed", once["status"], "what has completed does not run again")
	assert.EqualValues(t, 1, once["run_count"])
	assert.EqualValues(t, 0, late["run_count"])
	assert.Equal(t, map[string]any{"text": "second"}, w.object(t, "status", "ada", "soon")["payload"])
	assert.Equal(t, "1h0m0s", w.object(t, "status", "ada", "mine")["every"], "it says itself that it is to be kept")

	third := strings.NewReplacer("2090-01-02", "2091-01-02").Replace(read(t, second))
	assert.Contains(t, w.ok(t, "run-due", "-c", file(t, third), "--all"), "ran 0 tasks")
	assert.Equal(t, "2091-01-02T03:04:05.000Z", w.object(t, "status", "ada", "at")["due_at"])
}

// A one-shot that is under way when another process starts with the same file does not run once more.
func TestAStartLeavesARunAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.scheduler(t)
	config, pidFile := sleeperFile(t, "0.3; kill $!")
	both := file(t, read(t, config)+"\ntasks:\n  - { agent: a, id: i, kind: sleep, at: 2020-01-01T00:00:00Z }\n")
	d := w.start(t, "daemon", "-c", both)
	grandchild(t, pidFile)
	w.ok(t, "run-due", "--agents", "nobody", "-c", both)
	assert.EqualValues(t, 1, settled(t, s, "a", "i", core.StatusCompleted).RunCount)
	w.start(t, "daemon", "-c", both).line(t, "duly is running", "new=0 changed=0")
	code, _ := d.stop(t, syscall.SIGTERM)
	assert.Equal(t, 0, code)
}
