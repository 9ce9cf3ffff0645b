package cli_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// objects are the things in a list that --json of a command says.
func (w *world) objects(t *testing.T, name string, args ...string) []map[string]any {
	t.Helper()
	var out []map[string]any
	for _, o := range parse[map[string]any](t, w.ok(t, append(args, "--json")...))[name].([]any) {
		out = append(out, o.(map[string]any))
	}
	return out
}

// A job keeps failing and is paused; somebody finds out why, tries it, and gives it up.
func TestTheStoryOfAFailingJob(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := file(t, `handlers: { bad: { exec: ["sh", "-c", "echo broken >&2; exit 3"], pause_after_failures: 1 } }`)
	w.ok(t, "submit", "--agent", "ada", "--id", "job", "--kind", "bad", "--every", "1h")
	r := w.duly(t, "run-due", "-c", config, "--all")
	assert.Equal(t, 4, r.code)
	assert.Contains(t, r.stderr, `WARN paused kind=bad agent=ada task=job reason="the last occurrence failed: exit status 3: broken"`)

	why := w.ok(t, "explain", "ada", "job")
	assert.True(t, strings.HasPrefix(why, "the task has been paused since "), why)
	for _, part := range []string{
		"by duly: the last occurrence failed: exit status 3: broken\n", "\n  to resume: duly resume ada job\n", "\n  to run it now: duly run ada job\n",
		"\nstatus    paused\n", "\ndue       ", "\npaused    task job of agent ada, since ", ", failed: exit status 3: broken\n",
	} {
		assert.Contains(t, why, part)
	}
	assert.Equal(t, "paused", w.objects(t, "reasons", "explain", "ada", "job")[0]["code"])
	assert.Contains(t, w.ok(t, "jobs", "ada"), "  PAUSED  ")
	assert.Contains(t, w.ok(t, "list", "--agent", "ada"), "  paused  ")
	assert.Contains(t, w.ok(t, "status", "ada", "job"), "by duly: the last occurrence")

	assert.Equal(t, "resumed: task job of agent ada\n", w.ok(t, "resume", "ada", "job"))
	assert.Equal(t, false, w.object(t, "resume", "ada", "job")["is_paused"], "resuming twice is fine")
	assert.Equal(t, "task job of agent ada is due now\n", w.ok(t, "run", "ada", "job"))
	assert.Equal(t, 4, w.duly(t, "run-due", "-c", config, "--all").code)
	assert.Contains(t, w.ok(t, "runs", "ada", "job"), "exit status 3")
	assert.Len(t, w.objects(t, "runs", "runs", "ada", "job"), 2)

	assert.Equal(t, "task job of agent ada is cancelled\n", w.ok(t, "cancel", "ada", "job", "--reason", "hopeless", "--by", "ann"))
	again := w.object(t, "cancel", "ada", "job")
	assert.Equal(t, "cancelled", again["status"], "cancelling twice is fine")
	assert.Equal(t, "cancelled by ann: hopeless", again["reason"])
	assert.Contains(t, w.ok(t, "explain", "ada", "job"), "it was cancelled at ")
	oneLine(t, w.duly(t, "run", "ada", "job"), 7, "is cancelled", "see duly status ada job")
	oneLine(t, w.duly(t, "pause", "ada", "job"), 3, `agent "ada" has no live task "job"; see duly status ada job`)
	assert.Equal(t, "deleted: task job of agent ada\n", w.ok(t, "delete", "ada", "job"))
	oneLine(t, w.duly(t, "status", "ada", "job"), 3, "has no task")
}

// A pause has the name of who runs the command, as far as it is known.
func TestPauses(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env = append(w.env, "USER=ann")
	config := file(t, handlersFile)
	w.ok(t, "submit", "--agent", "ada", "--id", "n", "--kind", "note", "--limit-key", "openai", "--every", "1h")
	for args, target := range map[string]map[string]any{
		"ada": {"agent_id": "ada"}, "--agent ada": {"agent_id": "ada"}, "--kind note": {"kind": "note"}, "--key openai": {"limit_key": "openai"}, "--all": {"all": true},
		"ada n": {"agent_id": "ada", "id": "n"}, "--agent ada n": {"agent_id": "ada", "id": "n"},
	} {
		command := func(verb string, more ...string) []string {
			return append(append([]string{verb}, strings.Fields(args)...), more...)
		}
		paused := w.object(t, command("pause", "--reason", "a quota", "--for", "1h")...)
		assert.Equal(t, true, paused["is_paused"], args)
		if target["id"] == nil {
			assert.Equal(t, map[string]any{"target": target, "is_paused": true}, paused)
		}
		pauses := w.objects(t, "pauses", "status", "ada", "n")
		require.Len(t, pauses, 1, args)
		assert.Equal(t, target, pauses[0]["target"])
		assert.Equal(t, "ann", pauses[0]["by"])
		assert.NotEmpty(t, pauses[0]["until"])
		why := w.ok(t, "explain", "ada", "n")
		assert.Contains(t, why, "by ann until ")
		assert.Contains(t, why, ": a quota\n")
		_, resume, _ := strings.Cut(why, "to resume: duly ")
		resume, _, _ = strings.Cut(resume, "\n")
		assert.Contains(t, w.ok(t, command("pause", "--until", "2030-01-02T15:04:05Z", "--by", "bob")...), "paused: ", "again")
		assert.Contains(t, w.ok(t, strings.Fields(resume)...), "resumed: ", resume)
		assert.Equal(t, false, w.object(t, "status", "ada", "n")["is_paused"], args)
		assert.Equal(t, false, w.object(t, command("resume")...)["is_paused"])
	}
	w.ok(t, "pause", "ada")
	w.ok(t, "pause", "ada", "n")
	assert.Contains(t, w.ok(t, "resume", "ada", "n"), "still paused: agent ada, since ")
	assert.Contains(t, w.ok(t, "agents"), "  yes\n")
	assert.Equal(t, true, w.objects(t, "agents", "agents")[0]["is_paused"])
	assert.Contains(t, w.ok(t, "run-due", "-c", config, "--all"), "ran 0 tasks")
	assert.Equal(t, "waiting", w.object(t, "run", "ada", "n")["status"])
	assert.Contains(t, w.ok(t, "run-due", "-c", config, "--all"), "ran 1 task of 1 agent in ", "run goes before a pause")
}

// The next run has the other payload, and so has the one after it.
func TestReplayWithAnotherPayload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := file(t, handlersFile)
	w.ok(t, "submit", "--agent", "eve", "--id", "1", "--kind", "bad", "--payload", `{"text":"wrong"}`)
	assert.Equal(t, 4, w.duly(t, "run-due", "-c", config, "--all").code)
	oneLine(t, w.duly(t, "replay", "eve", "--all", "--payload", "1"), 2, "--payload is not for --all")
	oneLine(t, w.duly(t, "replay", "eve", "1", "--payload", "{"), 2, "--payload is not JSON")
	want := map[string]any{"text": "another"}
	assert.Equal(t, want, w.object(t, "replay", "eve", "1", "--payload", `{"text":"another"}`)["payload"])
	assert.Equal(t, 4, w.duly(t, "run-due", "-c", config, "--all").code)
	assert.Equal(t, want, w.object(t, "replay", "eve", "1")["payload"])
}

func TestDeleteAndReplaySeveral(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := file(t, handlersFile)
	for _, id := range []string{"1", "2", "3"} {
		w.ok(t, "submit", "--agent", "eve", "--id", id, "--kind", "bad")
	}
	w.ok(t, "submit", "--agent", "eve", "--id", "ok", "--kind", "note")
	assert.Equal(t, 4, w.duly(t, "run-due", "-c", config, "--all").code)
	assert.Contains(t, w.ok(t, "explain", "eve", "1"), "to run it again: duly replay eve 1")
	r := w.duly(t, "replay", "eve", "1", "ok", "nothing")
	assert.Equal(t, 7, r.code, "the first one that was refused is a conflict")
	assert.Equal(t, "task 1 of agent eve will be retried now\n", r.stdout)
	assert.Equal(t, 1, strings.Count(r.stderr, "\n"), r.stderr)
	assert.Contains(t, r.stderr, "only failed tasks can be replayed, and 1 more were refused; see duly status eve ok")

	out := strings.Split(strings.TrimSpace(w.ok(t, "replay", "eve", "--all", "--json")), "\n")
	require.Len(t, out, 2, "one line of JSON for each")
	again := []taskJSON{parse[taskJSON](t, out[0]), parse[taskJSON](t, out[1])}
	assert.ElementsMatch(t, []string{"2", "3"}, []string{again[0].ID, again[1].ID}, "by when they ended, at once here")
	assert.Equal(t, "waiting", again[0].Status)
	assert.Equal(t, "waiting", again[1].Status)
	r = w.duly(t, "replay", "--agent", "eve", "--all")
	assert.Equal(t, 0, r.code)
	assert.Equal(t, "agent eve has no failed tasks\n", r.stderr)

	assert.JSONEq(t, `{"agent_id":"eve","id":"1","deleted":true}`, w.ok(t, "delete", "eve", "1", "--json"))
	r = w.duly(t, "delete", "--agent", "eve", "1", "2", "3", "3", "4")
	assert.Equal(t, 3, r.code)
	assert.Equal(t, "2 tasks of agent eve would be deleted: add --yes to do it\n", r.stdout)
	assert.Contains(t, r.stderr, `agent "eve" has no task "1", and 1 more were refused`)
	assert.JSONEq(t, `{"agent_id":"eve","matched":2,"dry_run":true}`, w.ok(t, "delete", "eve", "2", "3", "--json"))
	r = w.duly(t, "delete", "--agent", "eve", "1", "2", "3", "4", "--yes")
	assert.Equal(t, 3, r.code)
	assert.Equal(t, "deleted: task 2 of agent eve\ndeleted: task 3 of agent eve\n", r.stdout)
	assert.Contains(t, r.stderr, `agent "eve" has no task "1", and 1 more were refused; see duly list --agent eve`)
}

func TestQueueJobsAndAgents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	assert.Equal(t, "no tasks\n", w.ok(t, "queue"))
	assert.Equal(t, "no agents\n", w.ok(t, "agents"))
	assert.Equal(t, "no recurring tasks\n", w.ok(t, "jobs", "eve"))
	assert.JSONEq(t, `{"kinds":[]}`, w.ok(t, "queue", "--json"))
	assert.JSONEq(t, `{"jobs":[],"next_cursor":""}`, w.ok(t, "jobs", "eve", "--json"))
	assert.JSONEq(t, `{"agents":[],"next_cursor":""}`, w.ok(t, "agents", "--json"))
	w.ok(t, "submit", "--agent", "eve", "--id", "b", "--kind", "bad")
	w.ok(t, "submit", "--agent", "eve", "--id", "hourly", "--kind", "note", "--every", "1h", "--jitter", "1s", "--pause-after-failures", "0")
	w.ok(t, "submit", "--agent", "eve", "--id", "daily", "--kind", "note", "--cron", "@daily", "--overlap", "queue_one", "--misfire", "all")
	w.ok(t, "submit", "--agent", "eve", "--id", "far", "--kind", "note", "--delay", "1h")
	assert.Equal(t, 4, w.duly(t, "run-due", "-c", file(t, handlersFile), "--all").code)

	require.Len(t, w.objects(t, "jobs", "jobs", "--agent", "eve", "--limit", "1"), 1)
	var overlaps []any
	for _, job := range w.objects(t, "jobs", "jobs", "--agent", "eve") {
		overlaps = append(overlaps, job["overlap"])
	}
	assert.Contains(t, overlaps, "queue_one")
	table := w.ok(t, "jobs", "eve", "--kind", "note")
	assert.Equal(t, 3, strings.Count(table, "\n"), table)
	assert.Regexp(t, `daily +note +@daily UTC +IDLE +- +- +20`, table)
	status := w.ok(t, "status", "eve", "daily")
	assert.Regexp(t, "overlap +queue_one\nmisfire +all\n", status)
	assert.Equal(t, "no runs yet\n", w.ok(t, "runs", "eve", "far"))
	assert.JSONEq(t, `{"runs":[]}`, w.ok(t, "runs", "eve", "far", "--json"))

	kinds := w.objects(t, "kinds", "queue")
	require.Len(t, kinds, 2)
	assert.EqualValues(t, 1, kinds[0]["failures"])
	assert.Regexp(t, `bad +0 +0 +0 +1 +1 +\d`, w.ok(t, "queue"))
	assert.Regexp(t, `FAILED +AGENT +ID +ERROR\n20.* +eve +b +exit status 3: broken\n`, w.ok(t, "queue", "bad"))
	one := w.object(t, "queue", "bad")
	assert.Equal(t, "bad", one["kind"])
	assert.Len(t, one["recent_failures"], 1)
	assert.Regexp(t, `eve +3 +20.* +no\n`, w.ok(t, "agents"))
	assert.EqualValues(t, 3, w.objects(t, "agents", "agents", "--limit", "10")[0]["live"])
}

func TestActivityAndPresets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := file(t, `
handlers:
  summary: { log: {}, activity: { delay: 30m, mode: debounce, max_wait: 2h, min_interval: 1h, max_failures: 0, dimensions: 2, level: 2 } }
  off: { log: {}, disabled: true, activity: { delay: 1s } }
`)
	out := w.ok(t, "activity", "summary", "-c", config, "--user", "ann", "--device", "phone", "--agent", "ada")
	assert.Regexp(t, `scheduled a run +yes\nreason +activity\ndue +20.*\nagent +ann\nid +activity/summary/ann:phone\n`, out)
	again := w.object(t, "activity", "summary", "-c", config, "--user", "ann", "--device", "phone")
	assert.Equal(t, false, again["scheduled"])
	assert.Equal(t, "waiting", again["reason"])
	assert.NotEmpty(t, again["due_at"])
	task := w.object(t, "status", "ann", "activity/summary/ann:phone")
	assert.EqualValues(t, 2, task["level"])
	assert.Equal(t, "1h0m0s", task["min_interval"])
	oneLine(t, w.duly(t, "activity", "summary", "-c", config), 2, "--user is required")
	oneLine(t, w.duly(t, "activity", "summary", "-c", config, "--user", "ann", "--device", "\x01"), 2, "--device has the control character")
	oneLine(t, w.duly(t, "activity", "off", "-c", config, "--user", "ann"), 7, `the kind "off" is disabled here`, "remove disabled: true from the file")
	oneLine(t, w.duly(t, "submit", "-c", config, "--agent", "a", "--kind", "off"), 7, `the kind "off" is disabled here`)

	presets := noRedis().objects(t, "presets", "presets")
	assert.Equal(t, map[string]any{
		"name": "memory.rollup_day", "kind": "memory.rollup_day", "cron": "0 0 1 * * *", "jitter": "5m0s", "min_age": "1h0m0s",
	}, presets[0])
	assert.Contains(t, noRedis().ok(t, "presets"), "memory.compaction")
	first := parse[tasksJSON](t, w.ok(t, "submit", "--agent", "ada", "--preset", "memory.rollup_day", "--unique-key", "u", "--json")).Tasks[0]
	second := parse[tasksJSON](t, w.ok(t, "submit", "--agent", "ada", "--preset", "memory.rollup_day", "--unique-key", "u", "--json")).Tasks[0]
	assert.Equal(t, "memory.rollup_day", first.Kind)
	assert.Equal(t, first.ID, second.ID)
	assert.False(t, second.Created)
	assert.Contains(t, w.ok(t, "submit", "--agent", "ada", "--kind", "note", "--unique-key", "u", "--on-conflict", "replace"), "  replaced\n")
	oneLine(t, w.duly(t, "submit", "--agent", "ada", "--kind", "note", "--unique-key", "u", "--on-conflict", "fail"), 7, "already exists", "see duly status ada unique-")
}

// An activity task that waits for activity, and one that failed too often.
func TestRestingAndCooling(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := file(t, `
handlers:
  note: { log: {}, activity: { delay: 1ms } }
  bad: { exec: ["sh", "-c", "echo broken >&2; exit 3"], max_attempts: 1, activity: { delay: 1ms, max_failures: 1 } }
`)
	for _, kind := range []string{"note", "bad"} {
		w.ok(t, "activity", kind, "-c", config, "--user", "ann")
	}
	assert.Equal(t, 4, w.duly(t, "run-due", "-c", config, "--all").code)
	list := w.ok(t, "list", "--agent", "ann")
	assert.Regexp(t, `activity/bad/ann\S+ +bad +cooling +20`, list)
	assert.Regexp(t, `activity/note/ann\S+ +note +resting +- `, list)
	const bad = "activity/bad/ann:default:default"
	assert.Contains(t, w.ok(t, "status", "ann", bad), "\ncooling until ")
	assert.Regexp(t, "^the last occurrence failed, so it cools down until .*\n  to run it now: duly run ann "+bad, w.ok(t, "explain", "ann", bad))
	assert.Regexp(t, `activity/bad\S+ +bad +activity +IDLE +20\S+Z +failed`, w.ok(t, "jobs", "ann"))
}

// A task that runs is told to end; one without a handler is shown as such.
func TestWhatATaskWaitsFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d, s, pid := sleeping(t, w, "300", "--grace", "100ms")
	assert.Contains(t, w.ok(t, "explain", "a", "i"), "its lease (fence ")
	oneLine(t, w.duly(t, "run", "a", "i"), 7, `task "i" of agent "a" is running; see duly status a i`)
	assert.Equal(t, "paused: task i of agent a\nthe run in progress continues\n", w.ok(t, "pause", "a", "i"))
	w.ok(t, "submit", "--agent", "b", "--id", "lost", "--kind", "nobody")
	d.line(t, "duly is running")
	assert.Equal(t, "task i of agent a is running: it was asked to stop, and will then be cancelled\n", w.ok(t, "cancel", "a", "i"))
	settled(t, s, "a", "i", "cancelled")
	gone(t, pid)
	assert.Contains(t, w.ok(t, "list", "--agent", "b"), "  parked  ")
	assert.Contains(t, w.ok(t, "explain", "b", "lost"), `has a handler for the kind "nobody", and no worker has asked for it lately: start one that has, or delete the task`)
}

// A misspelt name is told, with the flag for what is to come.
func TestPausingWhatDoesNotExist(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, target := range [][]string{{"toc_rollup_day"}, {"--kind", "nothing"}} {
		oneLine(t, w.duly(t, append([]string{"pause"}, target...)...), 3, "does not exist", "pass --ahead if it will exist later")
		oneLine(t, w.duly(t, append([]string{"resume"}, target...)...), 3, "does not exist", "pass --ahead")
		w.ok(t, append([]string{"resume", "--ahead"}, target...)...)
		w.ok(t, append([]string{"pause", "--ahead"}, target...)...)
		w.ok(t, append([]string{"pause"}, target...)...)
		w.ok(t, append([]string{"resume"}, target...)...)
	}
	oneLine(t, w.duly(t, "pause", "ada", "job", "--ahead"), 2, "--ahead is for an agent")
	config := file(t, "handlers: { note: { log: {} } }")
	w.ok(t, "pause", "--kind", "note", "-c", config)
}

// What is given on the command line is never taken for what is left out.
func TestFlagsThatSayNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok(t, "submit", "--agent", "a", "--id", "i", "--kind", "k", "--delay", "1h")
	before := w.dbsize(t)
	for _, c := range [][2]string{
		{"run-due --agents=", "--agents must not be empty"},
		{"run-due --all --max 0", "--max must not be 0"},
		{"run-due --all --timeout 0s", "--timeout must not be 0s"},
		{"stats --prefix=", "--prefix must not be empty"},
		{"stats --redis=", "--redis must not be empty"},
		{"daemon --concurrency 0", "--concurrency must not be 0"},
		{"serve --http=", "--http must not be empty"},
		{"list --agent a --limit 0", "--limit must not be 0"},
		{"list --agent a --cursor=", "--cursor must not be empty"},
		{"list --agent a --status=", "--status must not be empty"},
		{"pause a --for 0s", "--for must not be 0s"},
		{"pause a --until=", "--until must not be empty"},
		{"pause a --until 1999-01-01T00:00:00Z", "--until has passed"},
		{"submit --agent a --kind k --id=", "--id must not be empty"},
		{"submit --agent a --kind k --at=", "--at must not be empty"},
		{"submit --agent a --kind k --cron=", "--cron must not be empty"},
		{"submit --agent a --kind k --every 0s", "--every must be longer than"},
		{"submit --agent a --kind k --level 0", "--level must be 1, 2 or 3, not 0"},
		{"submit --agent a --kind k --max-attempts 0", "--max-attempts must be a whole number from 1 on, not 0"},
		{"submit --agent a --kind k --lease 0s", "--lease must be longer than"},
		{"submit --agent a --kind k --payload=", "--payload must not be empty"},
		{"submit --agent a\xff --kind k", "--agent is not valid UTF-8"},
		{"submit -f x.json --level 0", "-f excludes"},
	} {
		oneLine(t, w.duly(t, strings.Fields(strings.ReplaceAll(c[0], `\xff`, "\xff"))...), 2, c[1])
	}
	assert.Equal(t, before, w.dbsize(t))
	w.ok(t, "submit", "--agent", "a", "--id", "none", "--preset", "memory.rollup_day", "--jitter", "0s", "--timeout", "0s", "--backoff", "0s",
		"--pause-after-failures", "0")
	task := w.object(t, "status", "a", "none")
	assert.NotContains(t, task, "jitter")
	assert.Equal(t, []any{"0s", "0s", -1.0}, []any{task["timeout"], task["backoff"], task["pause_after_failures"]})
	w.ok(t, "pause", "a", "--reason", "", "--by", "")
}

// An agent, a task or a kind may be called 0: only numbers and durations mean nothing with it.
func TestZeroIsAName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok(t, "submit", "--agent", "0", "--id", "0", "--kind", "0")
	assert.Contains(t, w.ok(t, "status", "0", "0"), "waiting")
	oneLine(t, w.duly(t, "run-due", "--all", "--max", "0"), 2, "--max must not be 0")
}

// While everything is paused no task can be run by hand, and nobody is told to try.
func TestNothingRunsByHandWhileEverythingIsPaused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok(t, "submit", "--agent", "ann", "--id", "n", "--kind", "note", "--delay", "1h")
	assert.Contains(t, w.ok(t, "explain", "ann", "n"), "duly run ann n")
	w.ok(t, "pause", "--all")
	why := w.ok(t, "explain", "ann", "n")
	assert.Contains(t, why, "to resume: duly resume --all")
	assert.NotContains(t, why, "duly run")
	r := w.duly(t, "run", "ann", "n")
	assert.Equal(t, 7, r.code)
	assert.Contains(t, r.stderr, "as everything is paused: resume that first")
}
