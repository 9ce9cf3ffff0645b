package cli_test

// The questions about all agents, and the command bulk, with the real program on Redis.

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAnIncidentOfManyAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := file(t, `handlers: { mail: { exec: ["sh", "-c", "exit 3"] }, digest: { exec: ["sh", "-c", "exit 4"] } }`)
	for i := range 4 {
		w.ok(t, "submit", "--agent", fmt.Sprint("a", i), "--id", "t", "--kind", []string{"mail", "digest"}[i%2], "--max-attempts", "1", "--limit-key", "openai:x")
	}
	w.ok(t, "submit", "--agent", "z", "--id", "later", "--kind", "mail", "--delay", "1d")
	assert.Equal(t, 4, strings.Count(w.ok(t, "list", "--overdue"), "waiting"))
	w.duly(t, "run-due", "-c", config, "--all")

	dead := w.ok(t, "list", "--status", "failed", "--since", "1d")
	assert.Equal(t, []string{"AGENT", "ID", "KIND"}, strings.Fields(dead)[:3])
	assert.Equal(t, 4, strings.Count(dead, "exit status"))
	assert.Len(t, w.objects(t, "tasks", "list", "--status", "failed", "--kind", "mail"), 2)
	assert.Equal(t, "no tasks\n", w.ok(t, "list", "--status", "failed", "--until", "PT1H"))
	assert.Len(t, w.objects(t, "tasks", "list"), 1, "all that is live")

	assert.Equal(t, "2 tasks that are stored now would be replayed: add --yes to do it\n", w.ok(t, "bulk", "replay", "--kind", "mail"))
	assert.Equal(t, "4 tasks that are stored now would be replayed: add --yes to do it\n", w.ok(t, "bulk", "replay", "--key", "openai:x", "--dry-run", "--yes"))
	assert.Equal(t, "replayed: 2 tasks\n", w.ok(t, "bulk", "replay", "--kind", "mail", "--since", "1h", "--yes"))
	assert.Equal(t, "paused: 3 tasks\n", w.ok(t, "bulk", "pause", "--yes", "--all", "--reason", "incident", "--by", "ann"))
	assert.Contains(t, w.ok(t, "explain", "a0", "t"), "incident")
	assert.Equal(t, "resumed: 1 task\n", w.ok(t, "bulk", "resume", "--yes", "--agent", "z"))
	assert.Equal(t, "cancelled: 2 tasks\n", w.ok(t, "bulk", "cancel", "--yes", "--key", "openai:x"))
	out := w.object(t, "bulk", "delete", "--status", "failed", "--yes")
	assert.InDelta(t, 2, out["changed"], 0)
	assert.Equal(t, false, out["dry_run"])
	assert.Equal(t, "no tasks match\n", w.ok(t, "bulk", "replay", "--yes", "--all"))
	require.Equal(t, "made due now: 1 task\n", w.ok(t, "bulk", "run", "--yes", "--all"))

	w.ok(t, "submit", "--agent", "ada", "--id", "nightly", "--kind", "mail", "--every", "1d", "--delay", "1h")
	assert.Contains(t, w.ok(t, "edit", "ada", "nightly", "--set", `{"limit_key":"x","every":"2h"}`), "task nightly of agent ada is changed, and due 2")
	task := w.object(t, "status", "ada", "nightly")
	assert.Equal(t, []any{"x", "2h0m0s"}, []any{task["limit_key"], task["every"]})
	oneLine(t, w.duly(t, "edit", "ada", "nightly"), 2, "expected the fields to change", "--set")
	oneLine(t, w.duly(t, "edit", "ada", "nightly", "--set", "x"), 2, "--set is not JSON")
	oneLine(t, w.duly(t, "edit", "ada", "nightly", "--set", `{"id":"x"}`), 2, "cannot be edited")
	oneLine(t, w.duly(t, "edit", "ada", "none", "--set", `{"level":1}`), 3, "has no task")

	oneLine(t, w.duly(t, "bulk"), 2, "expected what to do", "use replay, cancel, delete, run, pause or resume")
	oneLine(t, w.duly(t, "bulk", "explode"), 2, "expected what to do")
	oneLine(t, w.duly(t, "bulk", "cancel", "--yes"), 2, "all must be true if every task is meant")
	oneLine(t, w.duly(t, "bulk", "delete", "--yes", "--all"), 2, "status must say which tasks of all agents are to be deleted")
	oneLine(t, w.duly(t, "bulk", "replay", "--since", "yesterday"), 2, `since must be a time such as "2026-01-02T15:04:05Z", how long ago`)
	oneLine(t, w.duly(t, "list", "--status", "completed"), 2, "--agent must be given")
	oneLine(t, w.duly(t, "list", "--status", "failed", "--cursor", "x"), 2, "cursor is invalid")
}
