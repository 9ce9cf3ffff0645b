package cli_test

// duly top: who takes the slots, and who waits.

import (
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/cli/top"
)

// busy is a daemon whose slots an agent floods, while another one waits.
func busy(t *testing.T, w *world) *running {
	t.Helper()
	d := w.start(t, "daemon", "-c", file(t, "handlers:\n  hangs: { exec: [sleep, \"600\"] }\n  note: { log: {} }\n"), "--http", "127.0.0.1:0", "--concurrency", "10")
	for i := range 12 {
		w.ok(t, "submit", "--agent", "flood", "--id", strconv.Itoa(i), "--kind", "hangs")
	}
	s := w.scheduler(t)
	require.Eventually(t, func() bool {
		tasks, _, err := s.Tasks(t.Context(), core.List{Status: []core.Status{core.StatusInProgress}})
		return err == nil && len(tasks) >= 8
	}, 30*time.Second, 20*time.Millisecond)
	return d
}

// The agent that takes more than half is named, in a table and in JSON, on the store and through a server; runs are counted while it looks.
func TestTopNamesWhoTakesMost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	d := busy(t, w)
	w.ok(t, "submit", "--agent", "beat", "--id", "1", "--kind", "note", "--every", "1s", "--level", "1")
	for name, at := range map[string][]string{"store": nil, "server": {"--server", d.url(t)}} {
		args := append([]string{"top", "--for", "4s"}, at...)
		got := parse[top.Top](t, w.ok(t, append(args, "--json")...))
		require.NotNil(t, got.Most, name)
		assert.Equal(t, "flood", got.Most.Agent, name)
		assert.InDelta(t, got.Most.Of, got.Most.Running, 1, name) // a beat may be under way
		require.NotEmpty(t, got.Agents, name)
		assert.Equal(t, "flood", got.Agents[0].Agent, name)
		assert.EqualValues(t, 12, got.Agents[0].Live, name)
		assert.Positive(t, got.Agents[0].Share, name)
		assert.Positive(t, got.Measured, name)
		by := parse[top.Top](t, w.ok(t, append(args, "--json", "--sort", "runs", "--limit", "1")...))
		require.Len(t, by.Agents, 1, name)
		assert.Equal(t, "beat", by.Agents[0].Agent, name)
		assert.Positive(t, *by.Agents[0].Rate, name)
		assert.Regexp(t, `^\d+ of 10 slots in use\nagent flood has \d+ of the \d+ runs under way, more than half; no other agent is overdue\n\nAGENT +RUNNING +SHARE +RUNS/MIN`, w.ok(t, args...), name)
	}
	oneLine(t, w.duly(t, "top", "--sort", "size"), 2, `--sort "size" is unknown; use share, runs, overdue or waiting`)
}

// An empty store has an answer, too.
func TestTopOfAnEmptyStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	assert.Equal(t, "0 of 0 slots in use\nno agents\n", w.ok(t, "top", "--for", "1ms"))
	assert.Empty(t, parse[top.Top](t, w.ok(t, "top", "--for", "1ms", "--json")).Agents)
}
