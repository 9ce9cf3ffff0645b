package main

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	program "github.com/seed-6f6f2c11/duly/handlers/exec"
	"github.com/seed-6f6f2c11/duly/steps"
)

func TestTheStoryIsTold(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	store := memstore.New(memstore.Config{})
	require.NoError(t, tell(ctx, store))
	s, err := core.New(store, core.Config{})
	require.NoError(t, err)
	info, err := s.Task(ctx, "ada", "story")
	require.NoError(t, err)
	assert.Equal(t, core.StatusCompleted, info.Status)
	assert.JSONEq(t, `"written the start of a fox; written the middle; written the end: approved"`, string(info.Result))
}

// The program in Python does each step once, in two attempts.
func TestTheProgramIsTold(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("python3 is not installed")
	}
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	require.NoError(t, err)
	h, err := program.New(program.Config{Argv: []string{"python3", "story.py"}})
	require.NoError(t, err)
	core.Handle(s, "story", h.Run)
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "ada", ID: "story", Kind: "story", Payload: "a fox", MaxAttempts: 2, Backoff: -1})
	require.NoError(t, err)
	_, _ = s.RunDue(t.Context(), core.Scope{}) // the first attempt fails
	info, err := s.Task(t.Context(), "ada", "story")
	require.NoError(t, err)
	assert.NotEmpty(t, info.Checkpoint)
	_, isLog := steps.ReadLog(info.Checkpoint)
	assert.False(t, isLog, "a program has a log of its own")
	_, err = s.RunDue(t.Context(), core.Scope{})
	require.NoError(t, err)
	info, err = s.Task(t.Context(), "ada", "story")
	require.NoError(t, err)
	assert.Equal(t, core.StatusCompleted, info.Status, info.LastError)
	assert.JSONEq(t, `"written the start of a fox; written the middle; written the end"`, string(info.Result))
}
