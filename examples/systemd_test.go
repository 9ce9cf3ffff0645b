package examples_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// startOf is the command line of a unit.
var startOf = regexp.MustCompile(`(?m)^ExecStart=/usr/local/bin/duly (.*)$`)

// The unit is one that systemd takes, and what it starts runs tasks and ends well when it is stopped.
func TestTheUnit(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("systemd/duly.service")
	require.NoError(t, err)
	program, err := duly()
	require.NoError(t, err)
	if analyze, err := exec.LookPath("systemd-analyze"); err == nil {
		// It looks for the program, which is not installed here.
		unit := filepath.Join(t.TempDir(), "duly.service")
		require.NoError(t, os.WriteFile(unit, []byte(strings.ReplaceAll(string(data), "/usr/local/bin/duly", program)), 0o600))
		out, err := exec.CommandContext(t.Context(), analyze, "verify", "--man=no", "--recursive-errors=no", unit).CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.NotContains(t, string(out), "duly.service:", "no key is unknown: systemd only warns")
	}
	line := startOf.FindSubmatch(data)
	require.NotNil(t, line)
	file := config(t)
	s := launchAs(t, func(port, redisURL string) *exec.Cmd {
		args := strings.NewReplacer("/etc/duly/duly.yaml", file, "127.0.0.1:8080", "127.0.0.1:"+port).Replace(string(line[1]))
		cmd := exec.Command(program, strings.Fields(args)...)
		cmd.Env = append(os.Environ(), "DULY_REDIS_URL="+redisURL)
		return cmd
	})
	s.submit(core.NewTask{Agent: "ada", ID: "1", Kind: "note"})
	require.Eventually(t, func() bool { return s.task("1").Status == core.StatusCompleted }, 20*time.Second, 10*time.Millisecond)
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, s.end(), "exit 0, so that systemd does not start it again")
}
