package examples_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// Compose waits longer before it kills than running tasks have to end, and keeps its Redis from losing tasks.
func TestTheComposeFile(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("compose/compose.yaml")
	require.NoError(t, err)
	var file struct {
		Services map[string]struct {
			Command []string
			Grace   string `yaml:"stop_grace_period"`
		}
	}
	require.NoError(t, yaml.Unmarshal(data, &file))
	duly := file.Services["duly"]
	at := slices.Index(duly.Command, "--grace")
	require.GreaterOrEqual(t, at, 0)
	own, err := time.ParseDuration(duly.Command[at+1])
	require.NoError(t, err)
	waits, err := time.ParseDuration(duly.Grace)
	require.NoError(t, err)
	assert.Greater(t, waits, own)
	assert.Subset(t, file.Services["redis"].Command, []string{"--appendonly", "noeviction"})
}

// The file beside it is one that duly takes.
func TestTheFileOfCompose(t *testing.T) {
	t.Parallel()
	s := serveDuly(t, "daemon", "compose/duly.yaml")
	require.Eventually(t, func() bool { _, err := s.scheduler.Task(t.Context(), "ada", "hello"); return err == nil }, 20*time.Second, 10*time.Millisecond)
}
