package cli_test

// Gates of the file, as the commands show them.

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/model"
)

// A gate of the file decides on a real Redis too, and people can see what it said.
func TestGates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	news := filepath.Join(t.TempDir(), "news")
	config := file(t, `
handlers:
  x: { exec: [sh, -c, cat], backoff: 1ms, gate: { exec: [sh, -c, "test -e `+news+` && echo fresh"] } }
  note: { log: {}, backoff: 1ms, idle_factor: 1, activity: { delay: 1ms }, gate: { exec: [sh, -c, exit 1] } }
`)
	w.ok(t, "submit", "--agent", "ada", "--id", "poll", "--kind", "x", "--every", "1h")
	w.ok(t, "run-due", "--all", "-c", config)
	explained := w.ok(t, "explain", "ada", "poll")
	assert.Regexp(t, `^its gate said once that there is nothing to do; it is asked next at 20\S+Z \(in (1h0m0s|59m5\ds)\)\n  to ask its gate now: duly run ada poll\n`, explained)
	assert.Regexp(t, `skipped +\S* +gate\n`, w.ok(t, "runs", "ada", "poll"))
	assert.Regexp(t, `\ngate closed in a row +1\n`, w.ok(t, "status", "ada", "poll"))
	assert.EqualValues(t, 1, parse[map[string]any](t, w.ok(t, "status", "ada", "poll", "--json"))["gate_closed"])

	require.NoError(t, os.WriteFile(news, nil, 0o600))
	w.ok(t, "run", "ada", "poll")
	w.ok(t, "run-due", "--all", "-c", config)
	status := w.ok(t, "status", "ada", "poll")
	assert.Contains(t, status, `"gate":"fresh"`)
	assert.NotContains(t, status, "gate closed")

	// An activity task rests, and is asked about again all the same.
	w.ok(t, "activity", "note", "-c", config, "--user", "ann")
	const subject = "activity/note/ann:default:default"
	s := w.scheduler(t)
	require.Eventually(t, func() bool {
		w.ok(t, "run-due", "--all", "-c", config)
		info, err := s.Task(t.Context(), "ann", subject)
		return err == nil && info.SkipCount >= 2 && info.Resting && info.RunCount == info.SkipCount
	}, 20*time.Second, 5*time.Millisecond)
	e, err := s.Explain(t.Context(), "ann", subject)
	require.NoError(t, err)
	assert.NotEqual(t, model.BecauseResting, e.Reasons[0].Code, "it does not wait for activity alone")
}
