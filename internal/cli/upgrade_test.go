package cli_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The binary of another version is named by DULY_TEST_BEFORE: make test-upgrade builds that of a commit.
const beforeEnv = "DULY_TEST_BEFORE"

// Two versions share a Redis during a deploy: what one has stored the other shows, runs, cancels and replays, in both orders.
func TestVersionsShareARedis(t *testing.T) {
	t.Parallel()
	before := os.Getenv(beforeEnv)
	if before == "" {
		t.Skip("set " + beforeEnv + " to the binary of another version, or run make test-upgrade")
	}
	for name, order := range map[string][2]string{"upgrade": {before, binary}, "downgrade": {binary, before}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			config := file(t, handlersFile)
			as := func(program string, args ...string) (string, error) {
				cmd := exec.CommandContext(t.Context(), program, args...)
				cmd.Env = w.env
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			ok := func(program string, args ...string) string {
				out, err := as(program, args...)
				require.NoError(t, err, "%v: %s", args, out)
				return out
			}
			ok(before, "stats") // it lays the tasks out as both can read them
			first, second := order[0], order[1]
			for i := range 20 {
				ok(first, "submit", "--agent", fmt.Sprint("a", i%3), "--id", fmt.Sprint("t", i), "--kind", "note", "--group", "g")
			}
			ok(first, "submit", "--agent", "a0", "--id", "later", "--kind", "note", "--delay", "1h")
			ok(first, "submit", "--agent", "a0", "--id", "dead", "--kind", "bad")
			ok(first, "submit", "--agent", "a0", "--id", "often", "--kind", "note", "--every", "1h")
			_, _ = as(first, "run-due", "-c", config, "--agents", "a0")
			assert.Contains(t, ok(second, "status", "a0", "dead"), "failed")
			assert.Contains(t, ok(second, "explain", "a0", "later"), "not due until")
			ok(second, "replay", "a0", "dead")
			ok(second, "pause", "a1", "--by", "ann")
			ok(second, "cancel", "a0", "later")
			assert.Contains(t, ok(first, "status", "a0", "later"), "cancelled")
			ok(first, "resume", "a1")
			_, _ = as(second, "run-due", "-c", config, "--all", "--timeout", (10 * time.Second).String())
			for i := range 20 {
				assert.Contains(t, ok(first, "status", fmt.Sprint("a", i%3), fmt.Sprint("t", i)), "completed", i)
			}
			assert.Contains(t, ok(second, "runs", "a0", "often"), "success")
			ok(second, "audit") // it fails if it finds anything
			ok(first, "audit")
		})
	}
}

// Daemons of two versions work side by side while tasks come in and one after the other is killed: each task is completed, and both find
// nothing to repair.
func TestVersionsWorkSideBySide(t *testing.T) {
	t.Parallel()
	before := os.Getenv(beforeEnv)
	if before == "" {
		t.Skip("set " + beforeEnv + " to the binary of another version, or run make test-upgrade")
	}
	const kills, perKill = 20, 100
	w := newWorld(t)
	first := exec.CommandContext(t.Context(), before, "stats") // it lays the tasks out as both can read them
	first.Env = w.env
	out, err := first.CombinedOutput()
	require.NoError(t, err, "%s", out)
	s := w.scheduler(t)
	config := file(t, `
lease: 1s
max_crashes: 100
handlers:
  work: { exec: ["sh", "-c", "sleep 0.01"] }
`)
	programs := []string{before, binary}
	var daemons [2]*exec.Cmd
	start := func(i int) {
		daemons[i] = exec.CommandContext(t.Context(), programs[i], "daemon", "-c", config)
		daemons[i].Env = w.env
		require.NoError(t, daemons[i].Start())
	}
	kill := func(i int) {
		require.NoError(t, daemons[i].Process.Kill())
		_ = daemons[i].Wait()
	}
	start(0)
	start(1)
	defer func() { kill(0); kill(1) }()
	tasks := 0
	for i := range kills {
		tasks = submitWork(t, s, tasks, tasks+perKill)
		pause(time.Duration(rand.IntN(600)) * time.Millisecond)
		kill(i % 2)
		start(i % 2)
	}
	require.Eventually(t, func() bool {
		stats, err := s.Stats(t.Context())
		return err == nil && stats.Completed == int64(tasks) && stats.InProgress == 0
	}, 2*time.Minute, 50*time.Millisecond)
	for _, program := range programs {
		audit := exec.CommandContext(t.Context(), program, "audit")
		audit.Env = w.env
		out, err := audit.CombinedOutput()
		assert.NoError(t, err, string(out))
	}
	t.Logf("figure: %d tasks completed by daemons of two versions, %d of which were killed", tasks, kills)
}

// Once a store is upgraded an older binary is refused, and says why; what it had stored runs.
func TestUpgradedStoresRefuseOlderVersions(t *testing.T) {
	t.Parallel()
	before := os.Getenv(beforeEnv)
	if before == "" {
		t.Skip("set " + beforeEnv + " to the binary of another version, or run make test-upgrade")
	}
	w := newWorld(t)
	config := file(t, handlersFile)
	run := func(program string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), program, args...)
		cmd.Env = w.env
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	for i := range 6 {
		out, err := run(before, "submit", "--agent", fmt.Sprint("a", i%2), "--id", fmt.Sprint("t", i), "--kind", "note")
		require.NoError(t, err, out)
	}
	out, err := run(binary, "upgrade")
	require.Error(t, err)
	require.Contains(t, out, "pass --yes")
	out, err = run(binary, "upgrade", "--yes")
	require.NoError(t, err, out)
	require.Contains(t, out, "the store has layout 2 now; it had 1")
	out, err = run(before, "stats")
	require.Error(t, err)
	require.Contains(t, out, `has layout version "2", but this binary reads version 1`)
	for i := 6; i < 12; i++ {
		out, err := run(binary, "submit", "--agent", fmt.Sprint("a", i%4), "--id", fmt.Sprint("t", i), "--kind", "note")
		require.NoError(t, err, out)
	}
	out, err = run(binary, "run-due", "-c", config, "--all")
	require.NoError(t, err, out)
	require.Contains(t, out, "12")
	out, err = run(binary, "audit")
	require.NoError(t, err, out)
}

// A store of this version needs no upgrade.
func TestUpgradeOfANewStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	cmd := exec.CommandContext(t.Context(), binary, "upgrade", "--yes")
	cmd.Env = w.env
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "the store has layout 2 already")
}
