//go:build unix

package exec_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/handlers/exec"
)

// alive reports whether a process runs; one that nobody has waited for yet has ended.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || !strings.Contains(string(stat), ") Z ")
}

// pids waits until a script has written process ids into a file, one a line.
func pids(t *testing.T, path string, n int) []int {
	t.Helper()
	var all []int
	require.Eventually(t, func() bool {
		data, err := os.ReadFile(path)
		all = nil
		for line := range strings.FieldsSeq(string(data)) {
			pid, bad := strconv.Atoi(line)
			if bad == nil {
				all = append(all, pid)
			}
		}
		return err == nil && len(all) == n && strings.HasSuffix(string(data), "\n")
	}, 10*time.Second, 5*time.Millisecond)
	return all
}

func gone(t *testing.T, all ...int) {
	t.Helper()
	for _, pid := range all {
		assert.Eventually(t, func() bool { return !alive(pid) }, 5*time.Second, 5*time.Millisecond, "process %d lives on", pid)
	}
}

// family is a script that has a child, ignores what asks it to end, and says who they are.
const family = `trap '' TERM HUP INT; sleep 300 & echo $! >>PIDS; echo $$ >>PIDS; wait; sleep 300`

// Whatever ends the process that runs a program, be it kill -9, ends the program and what it has started.
func TestProgramsDieWithTheProcessThatRunsThem(t *testing.T) {
	t.Parallel()
	for _, signal := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			self, err := os.Executable()
			require.NoError(t, err)
			file := filepath.Join(t.TempDir(), "pids")
			cmd := osexec.CommandContext(t.Context(), self)
			cmd.Env = append(os.Environ(), "DULY_TEST_VICTIM="+strings.ReplaceAll(family, "PIDS", file))
			stdout, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			all := pids(t, file, 2)
			for _, pid := range all {
				require.True(t, alive(pid))
			}
			guard, err := syscall.Getpgid(all[1])
			require.NoError(t, err)
			assert.NotContains(t, append(all, cmd.Process.Pid, syscall.Getpgrp()), guard, "a guard leads the group")
			require.NoError(t, cmd.Process.Signal(signal))
			assert.False(t, bufio.NewScanner(stdout).Scan(), "it was killed before it had ended")
			_ = cmd.Wait()
			gone(t, append(all, guard)...)
		})
	}
}

// At its timeout a program is asked to end, and may still say how; what it started ends with it.
func TestTimeouts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script string
		want   string
	}{
		"ends":     {"sleep 300 & echo $! >PIDS; trap 'echo asked >&2; exit 1' TERM; wait", "asked"},
		"is later": {"sleep 300 & echo $! >PIDS; trap 'exit 75' TERM; wait", ""},
		"ignores":  {"trap '' TERM; sleep 300 & echo $! >PIDS; sleep 300", core.ErrTimeout.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "pids")
			begun := time.Now()
			task := once(t, strings.ReplaceAll(c.script, "PIDS", file), core.NewTask{Timeout: 300 * time.Millisecond})
			assert.Equal(t, core.StatusWaiting, task.Status)
			assert.Contains(t, task.LastError, c.want)
			assert.Less(t, time.Since(begun), 9*time.Second)
			gone(t, pids(t, file, 1)...)
		})
	}
}

// A program that leaves a process behind, which even holds its output, does not delay its run, nor does that outlive it.
func TestNothingIsLeftOfAProgram(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pids")
	begun := time.Now()
	task := once(t, "sleep 300 & echo $! >"+file+"; echo done", core.NewTask{})
	assert.Equal(t, core.StatusCompleted, task.Status)
	assert.JSONEq(t, `"done"`, string(task.Result))
	assert.Less(t, time.Since(begun), 4*time.Second)
	gone(t, pids(t, file, 1)...)
}

// Whoever shares children can end them all, and wait for their ends. The task is charged nothing: its host went.
func TestChildrenAreEndedTogether(t *testing.T) {
	t.Parallel()
	children := &exec.Children{}
	children.Wait() // for nobody
	file := filepath.Join(t.TempDir(), "pids")
	w, err := start(exec.Config{Argv: []string{"sh", "-c", strings.ReplaceAll(family, "PIDS", file)}, Children: children})
	require.NoError(t, err)
	_, err = w.s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "i", Kind: "x", MaxAttempts: 1})
	require.NoError(t, err)
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = w.s.RunDue(ctx, core.Scope{})
	}()
	all := pids(t, file, 2)
	children.Kill()
	children.Wait()
	gone(t, all...)
	leave()
	<-ended
	info, err := w.s.Task(t.Context(), "a", "i")
	require.NoError(t, err)
	assert.Equal(t, core.StatusWaiting, info.Status)
	assert.Equal(t, 1, info.Attempt)
	assert.Equal(t, "its process stopped", info.LastError)
}
