package cli_test

// Limits from the command line, from the file, and over several daemons.

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
)

// Limits are set, listed, changed and lifted by the same flags.
func TestLimitsAreSetListedAndUnset(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	assert.Equal(t, "no limits\n", w.ok(t, "limit", "list"))
	assert.Equal(t, map[string]any{"limits": []any{}}, w.object(t, "limit", "list"))
	for _, c := range []struct{ about, bounds, name, allows string }{
		{"--all", "--concurrency 200", "everything", "200 at once"},
		{"--each agent", "--rate 100/1h", "each agent", "100/1h, burst 1"},
		{"--kind digest", "--concurrency 5", `kind "digest"`, "5 at once"},
		{"--kind digest --each agent", "--concurrency 1", `each agent of kind "digest"`, "1 at once"},
		{"--key openai", "--rate 60/1m --burst 0", `limit key "openai"`, "60/1m, burst 0"},
		{"--key openai:* --each key", "--concurrency 8 --rate 600/1m --burst 10", `each limit key "openai:*"`, "8 at once, 600/1m, burst 10"},
	} {
		args := strings.Fields("limit set " + c.about + " " + c.bounds)
		assert.Equal(t, "limit on "+c.name+": "+c.allows+"\n", w.ok(t, args...))
		assert.Equal(t, 0., w.object(t, args...)["running"], "again")
	}
	list := w.ok(t, "limit", "list")
	assert.Regexp(t, `(?m)^LIMIT ON +ALLOWS +RUNNING +WAITING +TO UNSET$`, list)
	assert.Regexp(t, `(?m)^each limit key "openai:\*" +8 at once, 600/1m, burst 10 +0 +0 +duly limit unset --key 'openai:\*' --each key$`, list)
	assert.Regexp(t, `(?m)^everything +200 at once +0 +0 +duly limit unset --all$`, list)
	all := w.objects(t, "limits", "limit", "list")
	require.Len(t, all, 6)
	assert.Equal(t, map[string]any{"limit_key": "openai", "rate": "60/1m", "burst": 0., "running": 0., "waiting": 0.}, all[2])

	assert.Equal(t, "limit on kind \"digest\": 7 at once\n", w.ok(t, "limit", "set", "--kind", "digest", "--concurrency", "7"), "it is set as a whole")
	assert.Equal(t, "lifted: limit on kind \"digest\"\n", w.ok(t, "limit", "unset", "--kind", "digest"))
	oneLine(t, w.duly(t, "limit", "unset", "--kind", "digest"), 3,
		`duly: limit unset: no limit on kind "digest" exists; duly limit list shows all limits and how to unset each`)
	assert.Equal(t, map[string]any{"kind": "digest", "each": "agent", "deleted": true}, w.object(t, "limit", "unset", "--kind", "digest", "--each", "agent"))
	w.ok(t, "limit", "unset", "--all")
	assert.Len(t, w.objects(t, "limits", "limit", "list"), 3)
}

// What makes no sense is refused by the name of its flag, and nothing is set.
func TestLimitsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for args, want := range map[string]string{
		"set --concurrency 5":                      "duly: limit set: expected what the limit is about; name it with --kind, --key and --each, or with --all alone",
		"set --all --kind a --concurrency 5":       "or with --all alone",
		"unset":                                    "duly: limit unset: expected what the limit is about",
		"set --kind a":                             "concurrency or rate is required",
		"set --kind a --concurrency 0":             "--concurrency must not be 0",
		"set --kind a --concurrency -1":            "--concurrency must be between 1 and 1000000, not -1",
		"set --kind a --concurrency x":             "--concurrency",
		"set --kind a --rate 60":                   `--rate must be a number of starts and a duration, such as 60/1m, not "60"`,
		"set --kind a --rate 0/1m":                 `--rate must be a number of starts`,
		"set --kind a --rate 1/0s":                 `--rate must be a number of starts`,
		"set --kind a --rate 1/1us":                "--rate must be for whole milliseconds between 1ms and 744h, not 1µs",
		"set --kind a --rate 1000001/1m":           "--rate must be between 1 and 1000000, not 1000001",
		"set --kind a --rate 1/1s --burst -1":      "--burst must not be negative, not -1; use 0 for none",
		"set --kind a --rate 1/1s --burst 1000001": "--burst must be at most 1000000, not 1000001",
		"set --kind a --concurrency 1 --burst 2":   "--rate is required with burst",
		"set --kind= --concurrency 1":              "--kind must not be empty",
		"set --kind a? --concurrency 1":            `--kind "a?" has the character '?'`,
		"set --key a*b --concurrency 1":            "--key may have a * at its end only",
		"set --each task --concurrency 1":          `--each must be agent or key, not "task"`,
		"set --each key --concurrency 1":           "--key is required with each: key",
		"unset --each task":                        `--each must be agent or key, not "task"`,
		"remove --kind a":                          "--kind",
		"remove":                                   `duly: limit: unknown command "remove"; use set, list or unset`,
		"list digest":                              `takes no arguments, and has "digest"`,
	} {
		oneLine(t, w.duly(t, append([]string{"limit"}, strings.Fields(args)...)...), 2, want)
	}
	assert.Equal(t, "no limits\n", w.ok(t, "limit", "list"))
	oneLine(t, noRedis().duly(t, "limit", "list"), 2, "no Redis is configured")
	for _, name := range []string{"set", "list", "unset"} {
		assert.Contains(t, w.ok(t, "limit", "--help"), "  "+name+" ")
		assert.Contains(t, w.ok(t, "limit", name, "--help"), "Examples:\n  duly limit "+name)
	}
	assert.Equal(t, w.ok(t, "limit", "--help"), w.ok(t, "limit"))
	assert.Contains(t, w.ok(t, "__complete", "limit", "set", "--each", "a"), "agent\n")
}

// A store with several partitions has limits over all of them.
func TestALimitOverPartitions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: w.redis.URL, Partitions: 4})
	require.NoError(t, err)
	require.NoError(t, st.Close())
	config := file(t, "limits:\n  - { kind: note, concurrency: 1 }\n"+handlersFile)
	for _, agent := range []string{"a", "b", "c", "d", "e"} {
		w.ok(t, "submit", "-c", config, "--agent", agent, "--id", "1", "--kind", "note")
	}
	for range 5 { // on a busy machine a pull may end while a permit is on its way from one partition to another: the next one takes it up
		w.ok(t, "run-due", "--all", "-c", config)
	}
	assert.Contains(t, w.ok(t, "limit", "list"), `kind "note"  1 at once`)
	for _, agent := range []string{"a", "b", "c", "d", "e"} {
		assert.Contains(t, w.ok(t, "status", agent, "1"), "completed")
	}
	assert.Equal(t, "ok: 1 limit, 0 tasks in line for them", w.checks(t, "-c", config)["limits"])
}

// A limit that holds tasks back although nothing counts in it is found, and one that is used is not.
func TestDoctorFindsAStuckLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	end := filepath.Join(t.TempDir(), "end")
	config := file(t, fmt.Sprintf(`
limits: [{ kind: slow, concurrency: 1 }, { kind: paced, rate: 1/1h, burst: 0 }]
handlers:
  slow: { exec: ["sh", "-c", 'while [ ! -e "$0" ]; do sleep 0.02; done', %s] }
  paced: { log: {} }
`, end))
	for _, id := range []string{"1", "2", "3"} {
		w.ok(t, "submit", "--agent", "ada", "--id", id, "--kind", "paced")
	}
	w.ok(t, "run-due", "--all", "-c", config)
	assert.Equal(t, "ok: 2 limits, 2 tasks in line for them", w.checks(t)["limits"], "a rate lets the next in when it is time")

	w.ok(t, "submit", "--agent", "bob", "--id", "1", "--kind", "slow")
	w.ok(t, "submit", "--agent", "bob", "--id", "2", "--kind", "slow")
	one := w.start(t, "run-due", "--all", "--max", "1", "-c", config)
	settled(t, w.scheduler(t), "bob", "1", core.StatusInProgress)
	assert.Contains(t, w.ok(t, "run-due", "--all", "-c", config), "ran 0 tasks")
	assert.Equal(t, "ok: 2 limits, 3 tasks in line for them", w.checks(t)["limits"])
	assert.Contains(t, w.ok(t, "explain", "bob", "2"), `the limit on kind "slow" holds it back: 1 run at once; 1 running, 1 task in line; the next starts when a run ends`)
	require.NoError(t, os.WriteFile(end, nil, 0o600))
	<-one.ended
	assert.Equal(t, `failed: 1 task in line for the limit on kind "slow", and none of its 1 at once in use: nothing lets them in`, w.checks(t)["limits"])
	assert.Contains(t, w.duly(t, "doctor").stdout, "else unset the limit as duly limit list says, and report it")
	assert.Contains(t, w.ok(t, "run-due", "--all", "-c", config), "ran 1 task")
	assert.Equal(t, "ok: 2 limits, 2 tasks in line for them", w.checks(t)["limits"])
}
