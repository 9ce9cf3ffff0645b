package exec_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store/output"
	"github.com/seed-6f6f2c11/duly/handlers/exec"
)

// printedBy is what is kept of the output of a program after it has run as a task.
func printedBy(t *testing.T, c exec.Config) inspect.Output {
	t.Helper()
	w, err := start(c)
	require.NoError(t, err)
	_, err = w.s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "i", Kind: "x", MaxAttempts: 1})
	require.NoError(t, err)
	_, _ = w.s.RunDue(t.Context(), core.Scope{})
	out, err := w.s.Output(t.Context(), "a", "i", inspect.OutputFrom{})
	require.NoError(t, err)
	return out
}

// What a program prints is the output of its run, with what it says is wrong, also if it fails; of a megabyte the end.
func TestWhatAProgramPrintsIsKept(t *testing.T) {
	t.Parallel()
	script := func(text string) exec.Config { return exec.Config{Argv: []string{"sh", "-c", text}} }
	out := printedBy(t, script("echo begun; sleep 0.1; echo 'no such page' >&2; sleep 0.1; echo 'duly-progress: 7' >&3; exit 1"))
	assert.Equal(t, "begun\nno such page\n", out.Text)
	assert.True(t, out.Ended)
	out = printedBy(t, script("head -c 1000000 /dev/zero | tr '\\0' x; echo; echo end"))
	assert.True(t, strings.HasPrefix(out.Text, "[duly: 934469 bytes left out]\nxxx"), out.Text[:60])
	assert.True(t, strings.HasSuffix(out.Text, "x\nend\n"))
	assert.Equal(t, int64(1000005), out.End)
	assert.Equal(t, int64(1000005-output.Most), out.Left)
	assert.Zero(t, printedBy(t, script("exit 0")).Run)
	none := script("echo secret; echo more >&2")
	none.NoOutput = true
	assert.Zero(t, printedBy(t, none).Run)
}

// What a run prints is seen while it goes on.
func TestOutputIsLive(t *testing.T) {
	t.Parallel()
	w, err := start(exec.Config{Argv: []string{"sh", "-c", "echo begun; exec sleep 30"}})
	require.NoError(t, err)
	_, err = w.s.Submit(t.Context(), core.NewTask{Agent: "a", ID: "i", Kind: "x"})
	require.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = w.s.RunDue(t.Context(), core.Scope{})
	}()
	require.Eventually(t, func() bool {
		out, err := w.s.Output(t.Context(), "a", "i", inspect.OutputFrom{})
		return err == nil && out.Text == "begun\n" && !out.Ended
	}, 20*time.Second, 20*time.Millisecond)
	_, err = w.s.Cancel(t.Context(), "a", "i", core.Order{})
	require.NoError(t, err)
	<-ended
	out, err := w.s.Output(t.Context(), "a", "i", inspect.OutputFrom{})
	require.NoError(t, err)
	assert.True(t, out.Ended, "a run that was cancelled has its end, too")
}

// The program of a batch prints for all of its tasks.
func TestABatchPrintsForEachTask(t *testing.T) {
	t.Parallel()
	h, err := exec.New(exec.Config{Argv: []string{"sh", "-c", `echo "two at once" >&2; echo '[{}, {}]'`}})
	require.NoError(t, err)
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{Kinds: map[string]core.KindConfig{"x": {Batch: 2}}})
	require.NoError(t, err)
	core.HandleBatch(s, "x", h.RunBatch)
	for _, id := range []string{"1", "2"} {
		_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: id, Kind: "x", Payload: json.RawMessage(`{}`)})
		require.NoError(t, err)
	}
	_, err = s.RunDue(t.Context(), core.Scope{})
	require.NoError(t, err)
	for _, id := range []string{"1", "2"} {
		out, err := s.Output(t.Context(), "a", id, inspect.OutputFrom{})
		require.NoError(t, err)
		assert.Contains(t, out.Text, "two at once\n")
	}
}
