//go:build linux

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// nobody is a user without rights, for tests that root runs: root may read everything.
const nobody = 65534

// unprivileged lets a world start its processes as a user without rights, if the test has more. They reach the program and
// what is in a folder of the test.
func (w *world) unprivileged(t *testing.T, dir string) {
	t.Helper()
	if os.Geteuid() != 0 {
		return
	}
	for _, dir := range []string{filepath.Dir(binary), filepath.Dir(dir)} { // the folder above is the test's too
		require.NoError(t, os.Chmod(dir, 0o755))
	}
	w.as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}

// What a program cannot get from its own environment it does not find in that of another process either: it runs as the user
// that the daemon runs as, and looks at all processes that it may look at.
func TestAProgramCannotReadTheEnvironmentOfItsDaemon(t *testing.T) {
	t.Parallel()
	w := noRedis()
	w.redis = redistest.StartTCP(t)
	require.NoError(t, w.redis.Client(t).Do(t.Context(), "ACL", "SETUSER", "ann", "on", ">hidden-password", "~*", "&*", "+@all").Err())
	w.env = append(w.env,
		"DULY_REDIS_URL="+strings.Replace(w.redis.URL, "redis://", "redis://ann:hidden-password@", 1),
		"DULY_TOKEN=hidden-token", "CRON_SECRET=hidden-cron", "MARK=seen")
	dir := t.TempDir()
	w.unprivileged(t, dir)
	script, config := filepath.Join(dir, "look"), filepath.Join(dir, "duly.yaml")
	look := `for e in /proc/[0-9]*/environ; do tr '\0' '\n' <$e; done 2>/dev/null | grep -E '^(DULY_REDIS_URL|DULY_TOKEN|CRON_SECRET)=.*hidden-'
tr '\0' '\n' </proc/$$/environ | grep ^MARK=
tr '\0' '\n' </proc/$PPID/environ | wc -l
true # what was found is the result
`
	require.NoError(t, os.WriteFile(script, []byte(look), 0o644))
	require.NoError(t, os.WriteFile(config, []byte("handlers: { x: { exec: [sh, "+script+"] } }\n"), 0o644))
	d := w.start(t, "daemon", "-c", config)
	d.line(t, "duly is running")
	s := w.scheduler(t)
	_, err := s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "i", Kind: "x"})
	require.NoError(t, err)
	task := settled(t, s, "a", "i", core.StatusCompleted)
	assert.Equal(t, "MARK=seen\n0", strings.TrimSpace(parse[string](t, string(task.Result))),
		"it reads its own environment, and nothing of another's")
}
