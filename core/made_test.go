package core_test

// Tasks that a test makes by hand, without a scheduler.

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

func TestATaskMadeByHandKeepsWhatItsHandlerRecords(t *testing.T) {
	t.Parallel()
	task := &core.Task[note]{RunInfo: &core.RunInfo{Agent: "a"}}
	var none note
	found, err := task.Checkpoint(&none)
	require.NoError(t, err)
	assert.False(t, found)
	assert.Equal(t, model.DefaultMaxResult, task.MaxResult())

	require.NoError(t, task.SetResult(note{Text: "done"}))
	require.NoError(t, task.SetProgress(0.5))
	result, progress := task.Recorded()
	assert.JSONEq(t, `{"text": "done"}`, string(result))
	assert.JSONEq(t, `0.5`, string(progress))

	assert.Error(t, task.SetResult(strings.Repeat("x", model.DefaultMaxResult)), "too large")
	assert.Error(t, task.SetProgress(make(chan int)), "not JSON")
	result, _ = task.Recorded()
	assert.JSONEq(t, `{"text": "done"}`, string(result), "what was refused changes nothing")
}

func TestATaskMadeByHandHasACheckpoint(t *testing.T) {
	t.Parallel()
	task := core.Task[note]{RunInfo: core.NewTestRun(json.RawMessage(`{"text": "page 2"}`))}
	var at note
	found, err := task.Checkpoint(&at)
	require.NoError(t, err)
	assert.True(t, found)
	assert.Equal(t, "page 2", at.Text)
}

// A task without a RunInfo has nowhere to keep anything, and says so.
func TestATaskWithoutRunInfoDoesNotPanic(t *testing.T) {
	t.Parallel()
	var task core.Task[note]
	found, err := task.Checkpoint(new(note))
	require.NoError(t, err)
	assert.False(t, found)
	assert.Equal(t, model.DefaultMaxResult, task.MaxResult())
	require.ErrorContains(t, task.SetResult(1), "dulytest.NewTask")
	require.ErrorContains(t, task.SetProgress(1), "dulytest.NewTask")
	result, progress := task.Recorded()
	assert.Empty(t, result)
	assert.Empty(t, progress)
}

// Handlers record from several goroutines.
func TestATaskMadeByHandIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	task := core.Task[note]{RunInfo: &core.RunInfo{}}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			assert.NoError(t, task.SetProgress(i))
			assert.NoError(t, task.SetResult(i))
			_, _ = task.Recorded()
		})
	}
	all.Wait()
	result, progress := task.Recorded()
	assert.NotEmpty(t, result)
	assert.NotEmpty(t, progress)
}
