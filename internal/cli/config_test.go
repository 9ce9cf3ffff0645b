package cli_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A mistake in the file is told in one line that names the place, with exit code 2, and nothing is written. dulyfile tests each
// mistake.
func TestMistakesInTheFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok(t, "stats") // what Open writes is there
	before := w.dbsize(t)
	const note = "handlers:\n  note: { log: {} }\ntasks:\n"
	for text, want := range map[string]string{
		"handlers: {a: [}":      "duly.yaml:1: is not YAML: did not find expected node content",
		"redis: a\nhandler: {}": "duly.yaml:2: handler: unknown key; expected one of",
		"lease: 1ms":            "duly.yaml:1: lease: must be between 100ms and 1h0m0s, not 1ms",
		"handlers:\n  note: { log: {}, timout: 5s }":                                      "duly.yaml:2: handlers.note.timout: unknown key; expected one of",
		note + "  - { agent: a, id: i, kind: note, evry: 5s }":                            "duly.yaml:4: tasks[0].evry: is not a field of a task",
		note + "  - { agent: a, id: i, kind: note }\n  - { agent: a, id: i, kind: note }": "duly.yaml:5: tasks[1].id: another task of this agent above has the same id",
	} {
		config := file(t, text)
		for _, command := range [][]string{{"daemon"}, {"run-due", "--all"}} {
			r := w.duly(t, append(command, "-c", config)...)
			oneLine(t, r, 2, want)
		}
	}
	assert.Equal(t, before, w.dbsize(t))
}

// What YAML takes for a number, a time or a truth is a text where a text is wanted.
func TestTextsOfTheFileStandAsTheyAre(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := file(t, `
prefix: "p:"
handlers: { note: { log: } }
tasks:
  - { agent: 007, id: true, kind: note, at: 2030-01-01T00:00:00Z, group: 1e3, level: 0x1, tags: ["1", b], user_id: null,
      payload: { when: 2030-01-01T00:00:00Z, list: [1, 1.5, yes, null, "x"] }, info: { a: b } }
  - &template { agent: a, id: one, kind: note, delay: 1h, from: , every: 2h }
`)
	w.ok(t, "run-due", "--all", "-c", config)
	r := w.ok(t, "status", "-c", config, "--json", "007", "true")
	task := parse[map[string]any](t, r)
	assert.Equal(t, "2030-01-01T00:00:00.000Z", task["due_at"])
	assert.Equal(t, "1e3", task["group"])
	assert.EqualValues(t, 1, task["level"])
	assert.Equal(t, []any{"1", "b"}, task["tags"])
	assert.NotContains(t, task, "user_id")
	assert.Equal(t, map[string]any{"when": "2030-01-01T00:00:00Z", "list": []any{1.0, 1.5, "yes", nil, "x"}}, task["payload"])
	assert.Equal(t, map[string]any{"a": "b"}, task["info"])
	assert.Equal(t, "2h0m0s", parse[map[string]any](t, w.ok(t, "status", "-c", config, "--json", "a", "one"))["every"])
}

// An empty file is one without handlers and tasks.
func TestAnEmptyFile(t *testing.T) {
	t.Parallel()
	r := inMemory().duly(t, "run-due", "--all", "-c", file(t, "\n# nothing\n"))
	require.Equal(t, 0, r.code, r.stderr)
	assert.Contains(t, r.stderr, "no handlers")
}

// The flag, then the variable, then the file name the process in the history of the tasks that it runs.
func TestTheNameOfAProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	file := filepath.Join(t.TempDir(), "duly.yaml")
	require.NoError(t, os.WriteFile(file, []byte("name: by-file\nhandlers:\n  note: { log: {} }\n"), 0o600))
	named := func(id string, env []string, args ...string) string {
		w.ok(t, "submit", "--agent", "a", "--id", id, "--kind", "note")
		with := &world{redis: w.redis, env: append(slices.Clone(w.env), env...)}
		with.ok(t, append([]string{"run-due", "-c", file, "--all"}, args...)...)
		return w.ok(t, "runs", "a", id, "--json")
	}
	assert.Contains(t, named("1", nil), `"by-file"`)
	assert.Contains(t, named("2", []string{"DULY_NAME=by-variable"}), `"by-variable"`)
	assert.Contains(t, named("3", []string{"DULY_NAME=by-variable"}, "--name", "by-flag"), `"by-flag"`)
	oneLine(t, w.duly(t, "run-due", "-c", file, "--all", "--name", ""), 2, "--name must not be empty")
}
