package cli_test

// Apply: what it would do, whose tasks it touches, and what is left when it is killed.

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// declared is a file with some tasks of agent ada, and some of agent bob.
func declared(t *testing.T, head, every string, ids ...string) string {
	t.Helper()
	var b strings.Builder
	_, _ = b.WriteString(head + "\nhandlers: { note: { log: {} } }\ntasks:\n")
	for _, id := range ids {
		agent := "ada"
		if strings.HasPrefix(id, "b") {
			agent = "bob"
		}
		_, _ = fmt.Fprintf(&b, "  - { agent: %s, id: %s, kind: note, every: %s }\n", agent, id, every)
	}
	return file(t, b.String())
}

// actions are what apply says of each task.
func actions(t *testing.T, answer map[string]any) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, row := range answer["tasks"].([]any) {
		r := row.(map[string]any)
		all[fmt.Sprint(r["id"])] = fmt.Sprint(r["action"])
	}
	return all
}

// apply is the start of a daemon without the daemon.
func TestApplyMakesTheTasksThoseOfTheFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := "handlers: { note: { log: {} } }\ntasks:\n  - { agent: ada, id: a, kind: note, every: %s }\n  - { agent: bob, id: b, kind: note, every: 1h }\n"
	hourly := file(t, fmt.Sprintf(text, "1h"))
	assert.Equal(t, "2 tasks created, 0 updated, 0 unchanged\n", w.ok(t, "apply", "-f", hourly))
	daily := file(t, fmt.Sprintf(text, "24h"))
	assert.Equal(t, map[string]any{
		"created": 0.0, "changed": 1.0, "unchanged": 1.0, "deleted": 0.0, "conflicts": 0.0, "dry_run": false,
		"tasks": []any{map[string]any{"action": "update", "agent_id": "ada", "id": "a"}},
	}, w.object(t, "apply", "-f", daily))
	assert.Equal(t, "24h0m0s", w.object(t, "status", "ada", "a")["every"])
	oneLine(t, w.duly(t, "apply"), 2, "needs a file with tasks", "name one with -f")
	bad := file(t, "handlers: { note: { log: {} } }\ntasks:\n  - { agent: ada, id: c, kind: note, every: 1h }\n  - { agent: ada, id: d, kind: note, every: soon }\n")
	oneLine(t, w.duly(t, "apply", "-f", bad), 2, ":4:")
	_, err := w.scheduler(t).Task(t.Context(), "ada", "c")
	require.Error(t, err, "nothing of a bad file is stored")
}

// Two owners and a task that was submitted by hand: only what one of them has declared, and declares no more, is deleted.
func TestPruneDeletesWhatItsOwnerDeclaresNoMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok(t, "apply", "-f", declared(t, "owner: deploy-7", "1h", "a1", "a2", "b1"))
	w.ok(t, "apply", "-f", declared(t, "", "1h", "a3"), "--owner", "deploy-8")
	w.ok(t, "submit", "--kind", "note", "--agent", "ada", "--id", "hand", "--every", "1h")

	less := declared(t, "owner: deploy-7", "2h", "a1", "a4")
	dry := w.object(t, "apply", "-f", less, "--prune", "--dry-run")
	want := map[string]string{"a1": "update", "a4": "create", "a2": "delete", "b1": "delete"}
	assert.Equal(t, want, actions(t, dry))
	assert.Equal(t, dry["tasks"], w.object(t, "apply", "-f", less, "--prune", "--dry-run")["tasks"], "a dry run changes nothing")
	assert.Contains(t, w.ok(t, "apply", "-f", less, "--prune", "--dry-run"), "1 task would be created, 1 updated, 0 unchanged, 2 deleted\n")

	assert.Equal(t, want, actions(t, w.object(t, "apply", "-f", less, "--prune")), "what the dry run has said")
	assert.Equal(t, "0 tasks created, 0 updated, 2 unchanged, 0 deleted\n", w.ok(t, "apply", "-f", less, "--prune"), "again: nothing is left to do")
	s := w.scheduler(t)
	for id, exists := range map[string]bool{"a1": true, "a2": false, "a3": true, "a4": true, "hand": true} {
		_, err := s.Task(t.Context(), "ada", id)
		assert.Equal(t, exists, err == nil, "%s: %v", id, err)
	}
	assert.Len(t, w.object(t, "list", "--label", "duly-owner=deploy-7")["tasks"], 2)

	oneLine(t, w.duly(t, "apply", "-f", declared(t, "", "1h", "a1"), "--prune"), 2, "need an owner", "--owner")
	oneLine(t, w.duly(t, "apply", "-f", less, "--owner", "a\nb"), 2, "--owner")
	_, err := s.Submit(t.Context(), core.NewTask{Agent: "ada", Kind: "note", Labels: map[string]string{model.LabelOwner: "deploy-7"}})
	require.ErrorContains(t, err, "labels.duly-owner is set by duly apply alone")
}

// A task has one owner. Another file changes it only if it takes it over; a start without the owner leaves it.
func TestATaskBelongsToOneOwner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok(t, "submit", "--kind", "note", "--agent", "ada", "--id", "a2", "--every", "1h")
	first := declared(t, "", "1h", "a1", "a2")
	w.ok(t, "apply", "-f", first, "--owner", "one")
	owner := func() string {
		info, err := w.scheduler(t).Task(t.Context(), "ada", "a1")
		require.NoError(t, err)
		return info.Owner() + " " + info.Every.String()
	}
	assert.Equal(t, "one 1h0m0s", owner())
	assert.Equal(t, "0 tasks created, 0 updated, 2 unchanged\n", w.ok(t, "apply", "-f", first), "the owner stays")
	w.ok(t, "apply", "-f", declared(t, "", "2h", "a1"))
	assert.Equal(t, "one 2h0m0s", owner(), "with another definition, too")

	second := declared(t, "owner: two", "3h", "a1", "a9")
	r := w.duly(t, "apply", "-f", second)
	assert.Equal(t, 1, r.code)
	assert.Contains(t, r.stdout, "conflict  ada    a1  one\n")
	assert.Contains(t, r.stdout, "1 task created, 0 updated, 0 unchanged\n")
	assert.Contains(t, r.stderr, "take them over with --adopt")
	assert.Equal(t, "one 2h0m0s", owner())
	r = w.duly(t, "run-due", "--all", "-c", second)
	assert.Equal(t, 0, r.code, "a start goes on without it")
	assert.Contains(t, r.stderr, "a task of the file belongs to another owner")
	w.ok(t, "apply", "-f", second, "--adopt")
	assert.Equal(t, "two 3h0m0s", owner())

	// Nor does one that replaces what exists.
	replace := file(t, "owner: one\nhandlers: { note: { log: {} } }\ntasks: [{ agent: ada, id: a1, kind: note, every: 9h, on_conflict: replace }]")
	assert.Equal(t, 1, w.duly(t, "apply", "-f", replace).code)
	assert.Equal(t, "two 3h0m0s", owner())

	// An edit keeps the owner, and gives none.
	w.ok(t, "edit", "ada", "a1", "--set", `{"every": "4h", "labels": {"team": "x"}}`)
	assert.Equal(t, "two 4h0m0s", owner())
	oneLine(t, w.duly(t, "edit", "ada", "a1", "--set", `{"labels": {"duly-owner": "me"}}`), 2, "labels.duly-owner", "leave it out")
	assert.Equal(t, "two 4h0m0s", owner())
}

// A task that runs goes as with any delete, and so does one that has failed for good; one that has completed is history.
func TestPruneOfTasksThatRunAndThatHaveFailed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := file(t, `
owner: deploy-7
handlers: { fails: { exec: ["false"], max_attempts: 1 }, works: { exec: ["true"] }, slow: { log: {} } }
tasks: [{ agent: ada, id: failed, kind: fails }, { agent: ada, id: done, kind: works }, { agent: ada, id: runs, kind: slow, lease: 300ms, delay: 1h }]`)
	w.duly(t, "run-due", "--all", "-c", config) // one of them fails

	s := w.scheduler(t)
	started, ended := make(chan struct{}), make(chan error, 1)
	core.Handle(s, "slow", func(ctx context.Context, _ *core.Task[any]) error {
		close(started)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return ctx.Err()
	})
	_, err := s.RunNow(t.Context(), "ada", "runs")
	require.NoError(t, err)
	pull := make(chan error, 1)
	go func() {
		_, err := s.RunDue(t.Context(), core.Scope{})
		pull <- err
	}()
	<-started
	empty := file(t, "owner: deploy-7\nhandlers: { works: { exec: [\"true\"] } }")
	assert.Equal(t, map[string]string{"failed": "delete", "runs": "delete"}, actions(t, w.object(t, "apply", "-f", empty, "--prune")))
	require.Error(t, <-ended, "its run is told to end")
	require.NoError(t, <-pull)
	for id, exists := range map[string]bool{"failed": false, "runs": false, "done": true} {
		_, err := s.Task(t.Context(), "ada", id)
		assert.Equal(t, exists, err == nil, "%s: %v", id, err)
	}
}
