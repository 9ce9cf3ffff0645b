package cli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
	"github.com/seed-6f6f2c11/duly/steps"
)

// The log of a task that runs in steps is a table, and any other checkpoint stays as it is.
func TestStepsAreATable(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 1, 9, 0, 0, 0, time.UTC)
	checkpoint, err := json.Marshal(steps.Log{
		Done: []steps.Step{
			{Name: "plan", At: at, Millis: 1500, Used: core.Usage{"usd": 0.25, "tokens": 1200}},
			{Name: "answer", At: at, TimedOut: true},
		},
		Waits: &steps.Pause{Name: "rest", For: steps.ForTime, Since: at, Until: at.Add(time.Hour)},
	})
	require.NoError(t, err)
	info := core.TaskInfo{Status: core.StatusWaiting, TaskHistory: model.TaskHistory{Checkpoint: checkpoint}}
	var w table.Page
	printSteps(&w, &info)
	assert.Equal(t, `
STEP    STATE                                              AT                        TOOK  USED
plan    done                                               2030-01-01T09:00:00.000Z  1.5s  1200 tokens, 0.25 usd
answer  timed out                                          2030-01-01T09:00:00.000Z  0s    
rest    waits for its time until 2030-01-01T10:00:00.000Z  2030-01-01T09:00:00.000Z  0s    
`, w.String())
	info.Status = core.StatusInProgress
	w.Reset()
	printSteps(&w, &info)
	assert.Contains(t, w.String(), "rest    going on")
	info.Checkpoint, err = json.Marshal(steps.Log{Done: []steps.Step{{Name: "plan", At: at}}})
	require.NoError(t, err)
	w.Reset()
	printSteps(&w, &info)
	assert.Regexp(t, `\(under way\) +going on +2030-01-01T09:00:00.000Z`, w.String())
	info.Checkpoint = []byte(`{"page":2}`)
	w.Reset()
	printSteps(&w, &info)
	assert.Empty(t, w.String())
	printTask(&w, &info)
	assert.Contains(t, w.String(), `{"page":2}`)
}

// The process beside a run that crashed is not the one that it died with.
func TestACrashNamesWhoTookOver(t *testing.T) {
	t.Parallel()
	at := time.Date(2030, 1, 1, 9, 0, 0, 0, time.UTC)
	var w table.Page
	printRuns(&w, []model.TaskRun{
		{Started: at, Duration: time.Minute, Attempt: 1, Outcome: model.OutcomeCrashed, Process: "worker-2", Error: "its process died"},
		{Attempt: 1, Outcome: model.OutcomeCrashed},
		{Started: at, Duration: time.Second, Attempt: 1, Outcome: model.OutcomeSuccess, Process: "worker-2"},
	})
	assert.Equal(t, 1, strings.Count(w.String(), "crashed  taken over by worker-2  its process died\n"), w.String())
	assert.Equal(t, 2, strings.Count(w.String(), "worker-2"), w.String())
}

// Lines are cut between lines, and none is lost.
func TestLinesInParts(t *testing.T) {
	t.Parallel()
	var parts []string
	for part := range inParts([]byte("a\nbb\nccc\ndddd\n"), 3) {
		parts = append(parts, string(part))
	}
	assert.Equal(t, []string{"a\nbb\nccc\n", "dddd\n"}, parts)
}
