package house_test

// Backup and restore, as docs/operations.md tells it: a copy of what Redis has saved, and a server that begins with it.

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// A server that begins with a backup has the tasks, the history and the pauses of that moment: an audit finds nothing wrong, and what has
// run since runs again.
func TestABackupIsRestored(t *testing.T) {
	t.Parallel()
	r := newReader(t, tour)
	dir := t.TempDir()
	backedUp := redistest.StartTCP(t, "--dir", dir)
	r.env = append(r.env, "DULY_REDIS_URL="+backedUp.URL)
	for _, command := range []string{
		"duly submit --agent ada --id done --kind note", "duly run-due --all -c duly.yaml",
		"duly submit --agent ada --id once --kind note", "duly submit --agent ada --id nightly --kind note --every 1d --delay 1h",
		"duly submit --agent bob --id held --kind note", "duly pause bob held --reason 'while we move'",
	} {
		r.run(command)
	}
	require.NoError(t, backedUp.Client(t).Save(t.Context()).Err())
	require.FileExists(t, filepath.Join(dir, "dump.rdb"))
	r.run("duly run-due --all -c duly.yaml") // after the backup

	restored := redistest.StartTCP(t, "--dir", dir, "--dbfilename", "dump.rdb")
	r.env = append(r.env, "DULY_REDIS_URL="+restored.URL)
	out, err := r.shell("duly audit").CombinedOutput()
	require.NoError(t, err)
	assert.Contains(t, string(out), "3 tasks checked, 0 faults found")
	for command, shown := range map[string]string{
		"duly status ada done": "status completed", "duly status ada once": "status waiting",
		"duly explain bob held": "while we move", "duly explain ada nightly": "it is not due until",
	} {
		out, err := r.shell(command).CombinedOutput()
		require.NoError(t, err, "%s: %s", command, out)
		assert.True(t, prints(string(out), shown), "%s prints %s", command, out)
	}
	r.run("duly run-due --all -c duly.yaml")
	out, err = r.shell("duly status ada once").CombinedOutput()
	require.NoError(t, err)
	assert.True(t, prints(string(out), "status completed"), "%s", out)
}
