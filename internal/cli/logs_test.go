package cli_test

// What runs print: kept, followed, and shown after a daemon was killed; on the store and through a server alike.

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/store/output"
)

// A program that goes on is followed to its end, and its output is what it printed, with a line for what was left out.
func TestLogsFollowARun(t *testing.T) {
	t.Parallel()
	local, far := served(t, "")
	on := filepath.Join(t.TempDir(), "on")
	d := local.start(t, "daemon", "-c", file(t, fmt.Sprintf(`
handlers:
  slow: { exec: ["sh", "-c", 'echo begun; while ! [ -e %s ]; do sleep 0.05; done; echo problem >&2; echo done'] }
  much: { exec: ["sh", "-c", "seq 150000; echo the end"] }
  quiet: { exec: ["sh", "-c", "echo secret"], output: none }
`, on)))
	d.line(t, "duly is running")
	local.ok(t, "submit", "--agent", "ada", "--id", "slow", "--kind", "slow")
	near, distant := local.start(t, "logs", "ada", "slow", "-f"), far.start(t, "logs", "ada", "slow", "--follow")
	for _, f := range []*running{near, distant} {
		f.line(t, "begun") // it is shown while the run goes on
	}
	assert.Equal(t, "begun\n", far.ok(t, "logs", "ada", "slow"))
	live := parse[inspect.Output](t, far.ok(t, "logs", "ada", "slow", "--json"))
	assert.False(t, live.Ended)
	require.NoError(t, os.WriteFile(on, nil, 0o600))
	for _, f := range []*running{near, distant} {
		<-f.ended
		assert.Zero(t, f.cmd.ProcessState.ExitCode())
		assert.ElementsMatch(t, []string{"begun", "problem", "done"}, f.all())
	}
	local.ok(t, "submit", "--agent", "ada", "--id", "much", "--kind", "much", "--wait", "30s")
	text := far.ok(t, "logs", "ada", "much", "--follow")
	first, rest, _ := strings.Cut(text, "\n")
	assert.Len(t, rest, output.Most)
	assert.Equal(t, fmt.Sprintf("[duly: %d bytes left out]", 938895+len("the end\n")-output.Most), first)
	assert.True(t, strings.HasSuffix(text, "\n149999\n150000\nthe end\n"))
	local.ok(t, "submit", "--agent", "ada", "--id", "quiet", "--kind", "quiet", "--wait", "30s")
	r := local.duly(t, "logs", "ada", "quiet")
	assert.Equal(t, [3]any{"", "no run of it has printed anything yet\n", 0}, [3]any{r.stdout, r.stderr, r.code})
	oneLine(t, local.duly(t, "logs", "ada", "quiet", "--follow", "--previous"), 2, "exclude each other")
}

// What a run has printed when its daemon is killed stays, and is that of the run before once the next one prints.
func TestLogsOutliveAKill(t *testing.T) {
	t.Parallel()
	folder, _ := newFolder(t)
	for name, w := range map[string]*world{"redis": newWorld(t), "folder": folder} {
		on := filepath.Join(t.TempDir(), "on")
		config := file(t, fmt.Sprintf(`
lease: 1s
handlers:
  work: { exec: ["sh", "-c", 'echo "run $DULY_FENCE"; if ! [ -e %s ]; then exec sleep 100; fi; echo done'] }
`, on))
		d := w.start(t, "daemon", "-c", config)
		d.line(t, "duly is running")
		w.ok(t, "submit", "--agent", "ada", "--id", "t", "--kind", "work")
		require.Eventually(t, func() bool { return w.ok(t, "logs", "ada", "t") != "" }, 20*time.Second, 20*time.Millisecond, name)
		printed := w.ok(t, "logs", "ada", "t")
		require.NoError(t, d.cmd.Process.Signal(syscall.SIGKILL))
		<-d.ended
		assert.Equal(t, printed, w.ok(t, "logs", "ada", "t"), "%s: what was sent stays", name)
		require.NoError(t, os.WriteFile(on, nil, 0o600))
		second := w.start(t, "daemon", "-c", config)
		second.line(t, "duly is running")
		w.ok(t, "wait", "ada", "t", "--timeout", "20s")
		out := parse[inspect.Output](t, w.ok(t, "logs", "ada", "t", "--json"))
		assert.True(t, strings.HasSuffix(out.Text, "\ndone\n"), "%s: %s", name, out.Text)
		assert.True(t, out.Ended, name)
		require.NotNil(t, out.Before, name)
		assert.Equal(t, printed, out.Before.Text, name)
		assert.False(t, out.Before.Ended, name)
		assert.Equal(t, printed, w.ok(t, "logs", "ada", "t", "--previous"), name)
		second.stop(t, syscall.SIGTERM)
		assert.Equal(t, out.Text, w.ok(t, "logs", "ada", "t"), "%s: after an orderly end", name)
	}
}
