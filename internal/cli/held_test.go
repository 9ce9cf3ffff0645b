package cli_test

import (
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// What is due and cannot start is shown with what holds it.
func TestHeldTasksAreListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok(t, "submit", "--agent", "ada", "--id", "1", "--kind", "note")
	w.ok(t, "submit", "--agent", "bob", "--id", "1", "--kind", "note", "--delay", "1h")
	assert.Equal(t, "no tasks\n", w.ok(t, "list", "--held"))
	w.ok(t, "pause", "--kind", "note", "--reason", "a move")
	assert.Regexp(t, `(?m)^AGENT +ID +KIND +DUE +BECAUSE\nada +1 +note +\S+ +its kind note has been paused since .*: a move`, w.ok(t, "list", "--held", "--limit", "10"))
	held := w.objects(t, "tasks", "list", "--held", "--limit", "10")
	if assert.Len(t, held, 1) {
		assert.Equal(t, "paused", held[0]["held_by"].(map[string]any)["code"])
		assert.Equal(t, "kind note", held[0]["held_by"].(map[string]any)["about"])
	}
}

// All that is held is in one answer, by what holds it, however many agents have nothing that is: on a store and through a server.
func TestHeldTasksAreGroupedByWhatHoldsThem(t *testing.T) {
	t.Parallel()
	local, far := served(t, "")
	s := local.scheduler(t)
	var idle []core.NewTask
	for i := range 300 {
		idle = append(idle, core.NewTask{Agent: "idle-" + strconv.Itoa(i), ID: "1", Kind: "note", Delay: time.Hour})
	}
	_, err := s.Submit(t.Context(), idle...)
	require.NoError(t, err)
	for _, task := range []string{"ada/1/note", "ada/2/note", "bob/1/note", "bob/2/digest", "eve/1/digest", "eve/2/other", "zoe/1/other"} {
		part := strings.Split(task, "/")
		_, err := s.Submit(t.Context(), core.NewTask{Agent: part[0], ID: part[1], Kind: part[2]})
		require.NoError(t, err)
	}
	local.ok(t, "pause", "--kind", "note", "--reason", "a move", "--by", "ann")
	local.ok(t, "pause", "eve", "2", "--by", "ann")
	local.ok(t, "pause", "zoe", "1", "--by", "bob")
	local.ok(t, "run-due", "--all", "-c", file(t, "handlers: { none: { log: {} } }\n"))
	type group struct {
		Code, About string
		Tasks       int
		Agents      int
		Since       time.Time `json:"due_since"`
		Examples    []taskJSON
	}
	for name, w := range map[string]*world{"store": local, "server": far} {
		all := parse[struct {
			Held   int
			Groups []group
		}](t, w.ok(t, "list", "--held", "--json"))
		assert.Equal(t, 7, all.Held, name)
		require.Len(t, all.Groups, 3, name)
		for i, want := range []group{{"paused", "kind note", 3, 2, time.Time{}, nil}, {"no_handler", "kind digest", 2, 2, time.Time{}, nil}, {"paused", "", 2, 2, time.Time{}, nil}} {
			got := all.Groups[i]
			assert.Len(t, got.Examples, got.Tasks, name)
			assert.False(t, got.Since.IsZero(), name)
			got.Since, got.Examples = time.Time{}, nil
			assert.Equal(t, want, got, name)
		}
		out := w.ok(t, "list", "--held")
		assert.Regexp(t, `^7 due tasks held, for 3 reasons:\n\n3 tasks of 2 agents: its kind note has been paused since .* by ann: a move\n  duly pauses lists`, out, name)
		assert.Regexp(t, `(?m)^2 tasks of 2 agents: no process that claims tasks has a handler for the kind "digest"`, out, name)
	}
	alike(t, local, far, true, "list", "--held")
	assert.Equal(t, 1, strings.Count(local.ok(t, "list", "--held", "--agent", "bob", "--kind", "digest"), " of 1 agent: "))
}

// Of a group that is large some tasks are shown, and how many more there are.
func TestALargeGroupOfHeldTasksIsCut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i := range 5 {
		w.ok(t, "submit", "--agent", "ada", "--id", strconv.Itoa(i), "--kind", "note")
	}
	w.ok(t, "pause", "ada")
	out := w.ok(t, "list", "--held")
	assert.Contains(t, out, "5 tasks of 1 agent: its agent has been paused")
	assert.Contains(t, out, "and 2 more: duly list --held --limit 1000 has each\n")
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
