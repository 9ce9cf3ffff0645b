package cli_test

// A Redis that comes back empty under a daemon, as a restart without persistence or FLUSHALL leaves it.

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// Limits, budgets, quiet hours and the tasks of the file are back before anything starts that they are about.
func TestAnEmptyRedisGetsItsGuardsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	log := filepath.Join(t.TempDir(), "runs")
	config := file(t, fmt.Sprintf(`
concurrency: 10
limits: [{ kind: work, concurrency: 1 }]
budgets: [{ kind: paid, unit: runs, per: day, amount: 2 }]
agents: [{ agent: quiet, quiet: [{ from: "%s", to: "%s" }] }] # all day but for an hour that is far
handlers:
  work: { exec: ["sh", "-c", 'echo "begin $DULY_TASK_ID 0 $(date +%%s%%N)" >>"$0"; sleep 0.1; echo "end $DULY_TASK_ID 0 $(date +%%s%%N)" >>"$0"', %s] }
  paid: { exec: ["true"] }
tasks: [{ agent: a, id: of-the-file, kind: paid, every: 24h, delay: 24h }]
`, time.Now().UTC().Add(-10*time.Hour).Format("15:04"), time.Now().UTC().Add(-11*time.Hour).Format("15:04"), log))
	d := w.start(t, "daemon", "-c", config, "--http", "127.0.0.1:0")
	d.line(t, "duly is running")
	require.NoError(t, w.redis.Client(t).FlushAll(t.Context()).Err())
	s := w.scheduler(t)
	submitWork(t, s, 0, 8)
	for i := range 8 {
		_, err := s.Submit(t.Context(), core.NewTask{Agent: fmt.Sprint("p", i), ID: "1", Kind: "paid"})
		require.NoError(t, err)
	}
	_, err := s.Submit(t.Context(), core.NewTask{Agent: "quiet", ID: "1", Kind: "paid", Delay: time.Millisecond})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		stats, err := s.Stats(t.Context())
		return err == nil && stats.Completed == 10
	}, 20*time.Second, 20*time.Millisecond)
	open := 0
	for _, n := range noted(t, log) {
		if open--; n.begin {
			open += 2
		}
		assert.LessOrEqual(t, open, 1, "one run at a time")
	}
	assert.Equal(t, core.StatusWaiting, settled(t, s, "a", "of-the-file", core.StatusWaiting).Status)
	assert.NotEqual(t, core.StatusCompleted, settled(t, s, "quiet", "1", core.StatusWaiting).Status)
	budgets, err := s.Budgets(t.Context())
	require.NoError(t, err)
	require.Len(t, budgets, 1)
	assert.Equal(t, core.AmountOf(2), budgets[0].Used)
	answer, err := http.Get(d.url(t) + "/metrics")
	require.NoError(t, err)
	metrics, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.Contains(t, string(metrics), "duly_store_reset_total 1")
	d.line(t, "the store has lost what this process had stored in it")
	d.line(t, "what the store had lost is stored again")
	code, _ := d.stop(t, syscall.SIGTERM)
	assert.Zero(t, code)
}

// Doctor names what the file has and the store lacks, and what only the store has.
func TestDoctorComparesTheFileWithTheStore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	text := `
owner: ops
limits: [{ kind: note, concurrency: 1 }]
budgets: [{ kind: note, unit: tokens, per: day, amount: 5 }]
agents: [{ agent: ann, quiet: [{ from: "22:00", to: "07:00" }] }]
handlers: { note: { log: {} } }
tasks: [{ agent: ann, id: news, kind: note, every: 24h, delay: 24h }, { agent: ann, id: old, kind: note, every: 24h, delay: 24h }]
`
	config := file(t, text)
	oneLine := func() string {
		return w.checks(t, "-c", config)["file"]
	}
	assert.Equal(t, `failed: 5 differences, not in the store as in the file: budget of tokens a day of kind "note": missing; limit of kind "note": missing; `+
		`profile of agent "ann": missing; task "news" of agent "ann": missing; task "old" of agent "ann": missing`, oneLine())
	w.ok(t, "run-due", "-c", config, "--all")
	assert.Equal(t, "ok: the store has the limits, budgets, profiles and tasks of the file", oneLine())
	w.ok(t, "limit", "set", "--kind", "note", "--concurrency", "2")
	assert.Equal(t, `failed: 1 difference, not in the store as in the file: limit of kind "note": different`, oneLine())
	w.ok(t, "limit", "set", "--kind", "note", "--concurrency", "1")
	config = file(t, strings.Replace(text, `, { agent: ann, id: old, kind: note, every: 24h, delay: 24h }`, "", 1))
	assert.Equal(t, `warning: 1 difference, of the file's owner in the store, and no longer in the file: task "old" of agent "ann"`, oneLine())
	w.ok(t, "apply", "-f", config, "--prune")
	w.ok(t, "budget", "set", "--each", "agent", "--unit", "usd", "--per", "day", "--amount", "1")
	assert.Regexp(t, `^warning: 1 difference, only in the store, not in the file: budget of usd .*$`, oneLine())
	require.NoError(t, w.redis.Client(t).FlushAll(t.Context()).Err())
	assert.Regexp(t, `^failed: 4 differences`, oneLine())
}
