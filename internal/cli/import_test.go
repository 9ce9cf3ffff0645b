package cli_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A crontab becomes a file that duly applies, and what cannot be kept is on standard error.
func TestAnImportIsApplied(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	crontab := filepath.Join(t.TempDir(), "crontab")
	require.NoError(t, os.WriteFile(crontab, []byte("MAILTO=ops\n0 9 * * 1-5 echo hello\n@reboot start\n"), 0o600))
	r := w.duly(t, "import", "crontab", crontab, "--agent", "ops")
	require.Equal(t, 0, r.code, r.stderr)
	assert.Regexp(t, "^line 1: MAILTO: .*\nline 3: left out: @reboot .*\n1 task, 2 remarks; look through the file", r.stderr)
	w.ok(t, "apply", "-f", file(t, r.stdout))
	assert.Contains(t, w.ok(t, "jobs"), "0 9 * * 1-5")

	object := parse[map[string]any](t, w.ok(t, "import", "crontab", crontab, "--json"))
	assert.EqualValues(t, 1, object["tasks"])
	assert.Len(t, object["left"], 2)
	assert.Contains(t, object["file"], "agent: imported")
	oneLine(t, w.duly(t, "import", "crontab", "no such file"), 2, "name a file that can be read")
	oneLine(t, w.duly(t, "import", "moon", crontab), 2, "format must be apscheduler, asynq, bullmq, celery, crontab")
	oneLine(t, w.duly(t, "import", "asynq", "http://localhost"), 2, "URL must be that of a Redis")
	oneLine(t, w.duly(t, "import", "openclaw", crontab), 2, "is no jobs.json of OpenClaw")
}
