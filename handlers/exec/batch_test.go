package exec_test

// Batches of a program: what it gets, and what its exit and its output mean for each task.

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/handlers/exec"
)

// ofBatch runs two tasks by one run of a script, and returns what became of them.
func ofBatch(t *testing.T, script string) []core.TaskInfo {
	t.Helper()
	h, err := exec.New(exec.Config{Argv: []string{"sh", "-c", script}, SnoozeFor: time.Hour})
	require.NoError(t, err)
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{
		MaxResult: 1000, Kinds: map[string]core.KindConfig{"x": {Batch: 50, Backoff: time.Hour, MaxBackoff: time.Hour}},
		Bindings: []core.Binding{func(_ context.Context, r *core.RunInfo) (core.Values, error) {
			return core.Values{"TENANT": "t", "TASK": r.ID}, nil
		}},
	})
	require.NoError(t, err)
	core.HandleBatch(s, "x", h.RunBatch)
	infos := make([]core.TaskInfo, 2)
	for i := range infos {
		_, err := s.Submit(t.Context(), core.NewTask{Agent: "a", ID: fmt.Sprint("t", i), Kind: "x"})
		require.NoError(t, err)
	}
	_, _ = s.RunDue(t.Context(), core.Scope{})
	for i := range infos {
		infos[i], err = s.Task(t.Context(), "a", fmt.Sprint("t", i))
		require.NoError(t, err)
	}
	return infos
}

// A program gets the batch as an array, with what its tasks have in common in its environment, and answers for each.
func TestAProgramRunsABatch(t *testing.T) {
	t.Parallel()
	tasks := ofBatch(t, `in=$(cat); case $in in '[{"id":"t0"'*'{"id":"t1"'*']') ;; *) exit 65 ;; esac
		echo "[{\"result\": \"$DULY_KIND $DULY_AGENT_ID $DULY_BATCH $DULY_VALUE_TENANT $DULY_VALUE_TASK$DULY_TASK_ID\"}, {\"error\": \"no\"}]"`)
	assert.JSONEq(t, `"x a 2 t "`, string(tasks[0].Result))
	assert.Equal(t, core.StatusCompleted, tasks[0].Status)
	assert.Equal(t, core.StatusWaiting, tasks[1].Status)
	assert.Equal(t, "no", tasks[1].LastError)
}

// The exit code is for all; an answer that is short, and a line that steers one run, fail all, which are tried again.
func TestWhatTheEndOfAProgramMeansForABatch(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]struct {
		status core.Status
		err    string
	}{
		`echo '[{}]'; exit 3`: {core.StatusWaiting, "exit status 3"},
		`exit 65`:             {core.StatusFailed, "exit status 65"},
		`exit 75`:             {core.StatusWaiting, ""},
		`echo '[{}]'`:         {core.StatusWaiting, "the standard output of a batch must have an outcome for each of the 2 tasks, not 1"},
		`echo done`:           {core.StatusWaiting, "must be a JSON array of 2 outcomes"},
		`echo 'duly-snooze: 1m' >&3; echo '[{},{}]'`: {core.StatusWaiting, "duly-snooze on file descriptor 3 steers one run"},
	} {
		tasks := ofBatch(t, script)
		for i := range tasks {
			assert.Equal(t, want.status, tasks[i].Status, script)
			assert.Contains(t, tasks[i].LastError, want.err, script)
		}
	}
}
