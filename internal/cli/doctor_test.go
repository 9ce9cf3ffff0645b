package cli_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// checks are what doctor found, by name.
func (w *world) checks(t *testing.T, args ...string) map[string]string {
	t.Helper()
	r := w.duly(t, append([]string{"doctor", "--json"}, args...)...)
	found := map[string]string{}
	for _, c := range parse[struct {
		Checks []struct{ Check, Severity, Message string }
	}](t, r.stdout).Checks {
		found[c.Check] = c.Severity + ": " + c.Message
	}
	failed := strings.Contains(r.stdout, `"failed"`)
	assert.Equal(t, failed, r.code == 1, r.stderr)
	return found
}

// A task that was lost is found by doctor and audit, put back, and runs.
func TestAuditPutsBackWhatWasLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := file(t, handlersFile)
	w.ok(t, "submit", "--agent", "ada", "--id", "1", "--kind", "note", "--delay", "1h")
	w.ok(t, "submit", "--agent", "bob", "--id", "1", "--kind", "note", "--delay", "1h")
	assert.Equal(t, "2 tasks checked, 0 faults found\n", w.ok(t, "audit"))
	assert.Equal(t, "nothing is paused\n", w.ok(t, "pauses"))
	assert.Equal(t, map[string]any{"pauses": []any{}, "next_cursor": ""}, w.object(t, "pauses"))
	found := w.checks(t, "-c", config)
	for _, name := range []string{"clock", "work", "handlers", "pauses", "failures", "processes", "history", "audit"} {
		assert.Regexp(t, "^ok: ", found[name], name)
	}
	assert.Regexp(t, "^warning: Redis has no persistence", found["redis"])

	options, err := redis.ParseURL(w.redis.URL)
	require.NoError(t, err)
	client := redis.NewClient(options)
	defer client.Close()
	agendas, err := client.Keys(t.Context(), "duly:*:agenda").Result()
	require.NoError(t, err)
	require.NotEmpty(t, agendas)
	require.NoError(t, client.Del(t.Context(), agendas...).Err())

	r := w.duly(t, "audit")
	assert.Equal(t, 1, r.code)
	assert.Equal(t, "duly: audit: 2 faults found: these tasks would not run; requeue them with duly audit --repair\n", r.stderr)
	assert.Regexp(t, `(?m)^lost +ada +1 +the task is in no queue: it neither waits nor runs nor is parked$`, r.stdout)
	assert.Equal(t, "failed: 2 faults: some tasks would never run", w.checks(t)["audit"])

	out := w.ok(t, "audit", "--repair")
	assert.Contains(t, out, "2 repaired: lost tasks are due now")
	assert.EqualValues(t, 0, w.object(t, "audit")["found"])
	assert.Contains(t, w.ok(t, "run-due", "-c", config, "--all"), "ran 2 tasks")
}

// damage changes a key of the first partition in the Redis of the world by hand.
func (w *world) damage(t *testing.T, command, key string, args ...any) {
	t.Helper()
	client := w.redis.Client(t)
	agents, err := client.Keys(t.Context(), "duly:*:agents").Result()
	require.NoError(t, err)
	require.NotEmpty(t, agents)
	all := append([]any{command, strings.TrimSuffix(agents[0], "agents") + key}, args...)
	require.NoError(t, client.Do(t.Context(), all...).Err())
}

// What cannot be repaired is told as that: nobody is sent to a command that does nothing for it.
func TestAuditTellsWhatItCannotRepair(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok(t, "submit", "--agent", "ada", "--id", "1", "--kind", "note", "--delay", "1h")
	w.damage(t, "HSET", "agents", "zoe", "?")
	w.damage(t, "HSET", "tasks", "bob:3", "?")
	for _, args := range [][]string{{"audit"}, {"audit", "--repair"}} {
		r := w.duly(t, args...)
		assert.Equal(t, 1, r.code)
		assert.Equal(t, "duly: audit: 2 records unreadable and beyond repair; restore them from a backup; duly has no other copy\n", r.stderr)
		assert.Regexp(t, `(?m)^unreadable +zoe +\(the agent\) +the record cannot be read$`, r.stdout)
		assert.Regexp(t, `(?m)^unreadable +bob +3 +the record cannot be read$`, r.stdout)
	}
	out := w.duly(t, "doctor").stdout
	assert.Regexp(t, `(?m)^failed +audit +2 records unreadable and beyond repair$`, out)
	assert.Contains(t, out, "-> duly audit names them; restore them from a backup")
	assert.NotContains(t, out, "--repair")

	w.damage(t, "DEL", "agenda")
	out = w.duly(t, "doctor").stdout
	assert.Regexp(t, `(?m)^failed +audit +3 faults: some tasks would never run$`, out)
	assert.Contains(t, out, "-> duly audit --repair; duly audit lists the faults that it cannot repair")
}

// A store that fails in part fails the check that asked it, and the others are made.
func TestDoctorGoesOnWithoutFigures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok(t, "submit", "--agent", "ada", "--id", "1", "--kind", "note", "--delay", "1h")
	w.damage(t, "DEL", "counters")
	w.damage(t, "SET", "counters", "x")
	found := w.checks(t)
	assert.Regexp(t, `^failed: cannot be read: stats: WRONGTYPE`, found["stats"])
	assert.Equal(t, "ok: every live task (1) waits, runs or is parked", found["audit"])
	assert.Regexp(t, "^failed: the store does not answer, or contains what cannot be read", found["store"])
	assert.NotContains(t, found, "work")
}

// What keeps work from running is told, with what to do.
func TestDoctorTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := file(t, handlersFile)
	w.ok(t, "submit", "--agent", "ada", "--id", "1", "--kind", "note")
	w.ok(t, "submit", "--agent", "ada", "--id", "2", "--kind", "foreign")
	w.ok(t, "submit", "--agent", "bob", "--id", "1", "--kind", "note")
	w.ok(t, "submit", "--agent", "bob", "--id", "2", "--kind", "broken", "--max-attempts", "1")
	w.ok(t, "pause", "ada", "1", "--reason", "quota")
	broken := file(t, "handlers:\n  broken: { exec: [\"false\"], max_attempts: 1 }\n")
	assert.Equal(t, 4, w.duly(t, "run-due", "-c", broken, "--all").code)

	assert.Regexp(t, `(?m)^task 1 of agent ada +\d{4}-.* - +quota +duly resume ada 1$`, w.ok(t, "pauses"))
	found := w.checks(t, "-c", config)
	assert.Equal(t, "warning: the file has no handler for these kinds of live tasks: foreign (1)", found["handlers"])
	assert.Equal(t, "warning: 1 due task paused", found["pauses"])
	assert.Equal(t, "warning: 1 task failed for good", found["failures"])
	assert.Equal(t, "warning: no process that is known has a handler for these kinds of live tasks: foreign (1), note (2)", w.checks(t)["handlers"])
	out := w.duly(t, "doctor", "-c", config).stdout
	assert.Regexp(t, `(?m)^warning +pauses +1 due task paused$`, out)
	assert.Contains(t, out, "-> duly pauses lists them; duly resume resumes them")

	oneLine(t, noRedis().duly(t, "doctor"), 2, "no Redis is configured")
	lost := noRedis()
	lost.env = append(lost.env, "DULY_REDIS_URL=unix:///nowhere")
	oneLine(t, lost.duly(t, "doctor"), 5, "cannot reach Redis", "start it, or name another with --redis")
}

// A kind that workers outside are to pull and that none asks for is no kind that has a handler, although the file has it.
func TestDoctorMissesWorkers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := file(t, "handlers:\n  gpu: { worker: {} }\n")
	w.ok(t, "submit", "--agent", "ada", "--id", "1", "--kind", "gpu", "-c", config)
	w.ok(t, "submit", "--agent", "ada", "--id", "2", "--kind", "gpu", "--delay", "1h", "-c", config)
	assert.Equal(t, "ok: the file has a handler for every task", w.checks(t, "-c", config)["handlers"], "it has been due for a moment")
	w.ok(t, "run-due", "--all", "-c", config)
	out := w.duly(t, "doctor", "-c", config).stdout
	assert.Regexp(t, `(?m)^warning +handlers +tasks are due, and no worker asks for these kinds of live tasks: gpu$`, out)
	assert.Contains(t, out, "duly work --kind gpu -- PROGRAM")
	w.ok(t, "cancel", "ada", "1")
	assert.Equal(t, "ok: the file has a handler for every task", w.checks(t, "-c", config)["handlers"], "nothing is due")
}

// An agent finishes more tasks than the file says to keep: doctor says so, and the ids are known all the same.
func TestRecordsThatAreDroppedAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := file(t, "kept: 1\nretention: 1h\n"+handlersFile)
	for _, id := range []string{"1", "2", "3"} {
		w.ok(t, "submit", "--agent", "ada", "--id", id, "--kind", "note")
		w.ok(t, "run-due", "--all", "-c", config)
	}
	assert.Regexp(t, `^warning: 2 finished tasks dropped before the retention time ended, the last at 20`, w.checks(t, "-c", config)["history"])
	assert.EqualValues(t, 2, w.object(t, "stats")["trimmed"])
	again := parse[tasksJSON](t, w.ok(t, "submit", "--agent", "ada", "--id", "1", "--kind", "note", "--json")).Tasks[0]
	assert.False(t, again.Created)
	assert.Equal(t, "completed", again.Status)
	known := w.object(t, "status", "ada", "1")
	assert.Equal(t, "completed", known["status"])
	assert.Contains(t, known["reason"], "its record was dropped")
	assert.NotEmpty(t, known["finished_at"])
}

// A server finds what a command on its store finds: the same checks with the same results and the same exit code.
func TestDoctorFindsTheSameByAServer(t *testing.T) {
	t.Parallel()
	local, far := served(t, "")
	// What a command sees by itself: this machine, how Redis is set up and divided. A server says of itself whether it may claim.
	apart := map[string]bool{"redis": true, "clock": true, "partitions": true, "process": true}
	same := func(step string, code int, want map[string]string) {
		t.Helper()
		severities := func(w *world) (map[string]string, int) {
			r := w.duly(t, "doctor", "--json")
			found := map[string]string{}
			for _, c := range parse[struct {
				Checks []struct{ Check, Severity, Message string }
			}](t, r.stdout).Checks {
				if !apart[c.Check] {
					found[c.Check] = c.Severity + ": " + steady(c.Message)
				}
			}
			return found, r.code
		}
		here, codeHere := severities(local)
		there, codeThere := severities(far)
		assert.Equal(t, here, there, step)
		assert.Equal(t, code, codeHere, step)
		assert.Equal(t, code, codeThere, step)
		assert.Greater(t, len(here), 15, step)
		for check, severity := range want {
			assert.Regexp(t, "^"+severity+": ", here[check], "%s: %s", step, check)
		}
	}
	same("empty", 0, map[string]string{"work": "ok", "audit": "ok", "persistence": "warning"})
	bad := file(t, "handlers:\n  bad: { exec: [\"false\"], max_attempts: 1 }\n")
	for range 12 {
		local.ok(t, "submit", "--agent", "ada", "--kind", "bad")
	}
	assert.Equal(t, 4, local.duly(t, "run-due", "-c", bad, "--all").code)
	local.ok(t, "submit", "--agent", "ada", "--id", "held", "--kind", "note")
	local.ok(t, "submit", "--agent", "bob", "--id", "parked", "--kind", "foreign")
	local.ok(t, "pause", "ada", "held")
	local.ok(t, "run-due", "-c", bad, "--all")
	local.ok(t, "limit", "set", "--kind", "note", "--concurrency", "1")
	local.ok(t, "budget", "set", "--all", "--unit", "runs", "--per", "day", "--amount", "1000")
	same("faults", 1, map[string]string{"failures": "warning", "failing": "failed", "handlers": "warning", "pauses": "warning", "audit": "ok"})
	local.damage(t, "HSET", "tasks", "bob:3", "?")
	same("damage", 1, map[string]string{"audit": "failed"})
}
