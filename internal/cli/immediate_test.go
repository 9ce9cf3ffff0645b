package cli_test

// An urgent task whose process is killed when its submit has just been answered.

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// The process that has answered a submit has leased the task: it is killed there and then, and another one runs the task when the
// lease has ended.
func TestAKillBehindAnUrgentSubmit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.scheduler(t)
	log := filepath.Join(t.TempDir(), "runs")
	config := file(t, fmt.Sprintf(`
handlers:
  ask: { exec: ["sh", "-c", 'echo "$DULY_TASK_ID $DAEMON" >>"$0"; [ "$DAEMON" = second ] || sleep 60', %s], level: 1, lease: 1s }
`, log))
	named := func(name string) *world {
		return &world{redis: w.redis, env: append(append([]string(nil), w.env...), "DAEMON="+name)}
	}
	first := named("first").start(t, "serve", "-c", config, "--http", "127.0.0.1:0")
	url := first.line(t, "listening")
	url = url[strings.Index(url, "http://"):]
	url, _, _ = strings.Cut(url, " ")
	code, body := call(t, http.MethodPost, url+"/v1/tasks", "", `{"agent_id":"a","id":"1","kind":"ask"}`)
	killed := time.Now()
	require.NoError(t, first.cmd.Process.Signal(syscall.SIGKILL))
	<-first.ended
	require.Equal(t, http.StatusCreated, code, body)
	task, err := s.Task(t.Context(), "a", "1")
	require.NoError(t, err)
	assert.Equal(t, core.StatusInProgress, task.Status, "it was leased as it was stored")
	second := named("second").start(t, "daemon", "-c", config)
	require.Eventually(t, func() bool {
		task, err = s.Task(t.Context(), "a", "1")
		return err == nil && task.Status == core.StatusCompleted
	}, 20*time.Second, 10*time.Millisecond)
	assert.Greater(t, time.Since(killed), 500*time.Millisecond)
	exit, _ := second.stop(t, syscall.SIGTERM)
	assert.Zero(t, exit)
	ran, err := os.ReadFile(log)
	require.NoError(t, err)
	assert.Contains(t, string(ran), "1 second\n")
}
