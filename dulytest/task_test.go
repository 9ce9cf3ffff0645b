package dulytest_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/dulytest"
)

func TestWhatAHandlerSetsIsReadBack(t *testing.T) {
	t.Parallel()
	task := dulytest.NewTask(note{Text: "x"})
	require.NoError(t, echo(t.Context(), task))
	require.NoError(t, task.SetProgress(3))
	got, err := dulytest.Result[note](task)
	require.NoError(t, err)
	assert.Equal(t, note{Text: "x"}, got)
	done, err := dulytest.Progress[int](task.RunInfo)
	require.NoError(t, err)
	assert.Equal(t, 3, done)

	_, err = dulytest.Result[int](task)
	require.ErrorContains(t, err, `decode result {"text":"x"}`)
	var typeError *json.UnmarshalTypeError
	require.ErrorAs(t, err, &typeError)
}

func TestWhatAHandlerHasNotSetIsAnError(t *testing.T) {
	t.Parallel()
	for _, task := range []*core.Task[note]{dulytest.NewTask(note{}), {}} {
		_, err := dulytest.Result[note](task)
		require.ErrorIs(t, err, dulytest.ErrNoResult)
		_, err = dulytest.Progress[note](task)
		require.ErrorIs(t, err, dulytest.ErrNoProgress)
	}
}

func TestANewTaskLooksLikeAFirstRun(t *testing.T) {
	t.Parallel()
	task := dulytest.NewTask(1)
	assert.Equal(t, 1, task.Attempt)
	assert.NotZero(t, task.Fence)
	for _, text := range []string{task.Agent, task.ID, task.Kind} {
		assert.NotEmpty(t, text)
	}
	assert.False(t, task.Due.IsZero() || task.Occurrence.IsZero() || task.Submitted.IsZero() || task.Claimed.IsZero())
	found, err := task.Checkpoint(new(int))
	require.NoError(t, err)
	assert.False(t, found)
	task.Attempt, task.Agent = 4, "ada"
	assert.Equal(t, "ada", task.Agent)
}

func TestAResumedTaskHasItsCheckpoint(t *testing.T) {
	t.Parallel()
	task, err := dulytest.Resume("payload", note{Text: "page 2"})
	require.NoError(t, err)
	var at note
	found, err := task.Checkpoint(&at)
	require.NoError(t, err)
	assert.True(t, found)
	assert.Equal(t, "page 2", at.Text)

	_, err = dulytest.Resume("payload", make(chan int))
	assert.ErrorContains(t, err, "encode checkpoint")
}
