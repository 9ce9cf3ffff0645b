package cli_test

import (
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
	assert.Regexp(t, `(?m)^AGENT +ID +KIND +DUE +HELD BY\nada +1 +note +\S+ +its kind note has been paused since .*: a move`, w.ok(t, "list", "--held"))
	held := w.objects(t, "tasks", "list", "--held")
	if assert.Len(t, held, 1) {
		assert.Equal(t, "paused", held[0]["held_by"].(map[string]any)["code"])
	}
}
