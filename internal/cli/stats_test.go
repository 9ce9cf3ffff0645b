package cli_test

// duly stats: what ran lately.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A command that runs tasks and ends leaves behind what it has counted.
func TestStatsOfTheLastHour(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := filepath.Join(t.TempDir(), "duly.yaml")
	require.NoError(t, os.WriteFile(config, []byte("handlers:\n  note: { log: {} }\n  bad: { exec: [\"false\"], max_attempts: 1 }\n"), 0o600))
	for _, kind := range []string{"note", "note", "bad"} {
		w.ok(t, "submit", "--agent", "ada", "--kind", kind)
	}
	w.duly(t, "run-due", "--all", "-c", config) // it says that a run failed
	type kinds struct {
		Window string
		Kinds  []struct {
			Kind           string
			Runs, Failures int
			Rate           float64 `json:"failure_rate"`
		}
	}
	got := parse[kinds](t, w.ok(t, "stats", "--window", "1h", "--json"))
	assert.Equal(t, "1h", got.Window)
	if assert.Len(t, got.Kinds, 2) {
		assert.Equal(t, "bad", got.Kinds[0].Kind)
		assert.Equal(t, 1, got.Kinds[0].Failures)
		assert.InDelta(t, 1, got.Kinds[0].Rate, 0)
		assert.Equal(t, 2, got.Kinds[1].Runs)
	}
	table := w.ok(t, "stats", "--window", "24h")
	assert.Contains(t, table, "FAILURE RATE")
	assert.Contains(t, table, "100.0 %")
	oneLine(t, w.duly(t, "stats", "--window", "1m"), 2, "window must be from 5m to 24h, not 1m0s")
}

// What exists now is apart from what was counted since the store was first used.
func TestStatsSayWhichNumbersAreOfNow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok(t, "submit", "--agent", "ada", "--id", "1", "--kind", "note", "--delay", "1h")
	w.ok(t, "submit", "--agent", "ada", "--id", "2", "--kind", "note", "--delay", "1h")
	w.ok(t, "cancel", "ada", "2")
	w.ok(t, "delete", "ada", "2")
	now, ever, ok := strings.Cut(w.ok(t, "stats"), "\nof all time, also of tasks that are gone:\n")
	require.True(t, ok)
	assert.Regexp(t, `^now:\n  agents +1\n  waiting +1\n`, now)
	assert.Regexp(t, `(?m)^  next due +20`, now)
	assert.NotContains(t, now, "cancelled")
	assert.Regexp(t, `(?m)^  cancelled +1$`, ever, "it is counted, though it is gone")
	assert.Equal(t, "no tasks match\n", w.ok(t, "bulk", "delete", "--status", "cancelled", "--agent", "ada"), "a dry run counts what exists")
}
