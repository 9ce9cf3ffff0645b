package cli_test

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

// What is due and cannot start is shown with what holds it.
func TestHeldTasksAreListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok(t, "submit", "--agent", "ada", "--id", "1", "--kind", "note")
	w.ok(t, "submit", "--agent", "bob", "--id", "1", "--kind", "note", "--delay", "1h")
	assert.Equal(t, "no tasks\n", w.ok(t, "list", "--held"))
	w.ok(t, "pause", "--kind", "note", "--reason", "a move")
	assert.Regexp(t, `(?m)^AGENT +ID +KIND +DUE +BECAUSE\nada +1 +note +\S+ +its kind note has been paused since .*: a move`, w.ok(t, "list", "--held"))
	held := w.objects(t, "tasks", "list", "--held")
	if assert.Len(t, held, 1) {
		assert.Equal(t, "paused", held[0]["held_by"].(map[string]any)["code"])
	}
}

// A task that has not succeeded in time is in the log of the daemon, on the list, and what the doctor finds, until it succeeds.
func TestLateTasksAreListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := file(t, "handlers:\n  hangs: { exec: [sleep, \"600\"] }\n  note: { log: {}, expect_success: 3s }\ndefault_agent: ada\ntasks:\n  - { id: beat, kind: note, every: 1s }\n  - { id: slow, kind: note, every: 1h }\n")
	d := w.start(t, "daemon", "-c", config, "--http", "127.0.0.1:0")
	t.Cleanup(func() { d.stop(t, syscall.SIGTERM) })
	url := d.url(t)
	w.ok(t, "submit", "--agent", "bob", "--id", "own", "--kind", "note", "--every", "1s", "--expect-success", "4s", "--on-late", "signal:late")
	oneLine(t, w.duly(t, "submit", "--agent", "bob", "--kind", "note", "--every", "5s", "--expect-success", "4s"), 2, "--expect-success must be longer than the 5s")
	assert.Equal(t, "no tasks\n", w.ok(t, "list", "--late"))
	w.ok(t, "submit", "--agent", "eve", "--id", "stuck", "--kind", "hangs", "--expect-success", "1s")
	d.line(t, "late: it has not succeeded within the time that it was to kind=hangs agent=eve task=stuck")
	assert.Regexp(t, `(?m)^AGENT +ID +KIND +DUE +BECAUSE\neve +stuck +hangs +\S+ +late since \S+: it is running in process`, w.ok(t, "list", "--late"))
	w.ok(t, "cancel", "eve", "stuck")
	d.line(t, "cancelled kind=hangs agent=eve")
	w.ok(t, "pause", "--kind", "note", "--reason", "a move")
	for _, task := range []string{"agent=ada task=beat", "agent=bob task=own"} {
		d.line(t, "late: it has not succeeded within the time that it was to kind=note "+task)
	}
	for _, at := range [][]string{nil, {"--server", url}} {
		assert.Regexp(t, `(?m)^ada +beat +note +\S+ +late since \S+: its kind note has been paused since .*: a move`, w.ok(t, append([]string{"list", "--late"}, at...)...))
		assert.Len(t, w.objects(t, "tasks", append([]string{"list", "--late"}, at...)...), 2)
		assert.Len(t, w.objects(t, "tasks", append([]string{"list", "--late", "--agent", "bob"}, at...)...), 1)
	}
	r := w.duly(t, "doctor")
	assert.Equal(t, 1, r.code)
	assert.Regexp(t, `late +2 tasks without a success within the time of expect_success`, r.stdout)
	status := w.ok(t, "status", "bob", "own")
	assert.Regexp(t, `(?m)^expect success +4s$`, status)
	assert.Regexp(t, `(?m)^last success +20`, status)
	w.ok(t, "resume", "--kind", "note")
	for _, task := range []string{"agent=ada task=beat", "agent=bob task=own"} {
		d.line(t, "on time again kind=note "+task)
	}
	assert.Equal(t, "no tasks\n", w.ok(t, "list", "--late"))
}
