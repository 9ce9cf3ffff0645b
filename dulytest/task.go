package dulytest

// Tasks for handlers that a test calls by itself.

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// NewTask makes the task of a first run with this payload: SetResult, SetProgress and Checkpoint work as in a real run, with the
// default limits. Its fields have the values of a task that was submitted without any, and may be changed before the handler is called.
func NewTask[P any](payload P) *core.Task[P] { return newTask(payload, nil) }

// Resume makes the task of a run that continues from a checkpoint, as the run after a [core.Yield] does. It fails if the
// checkpoint cannot be encoded as JSON.
func Resume[P any](payload P, checkpoint any) (*core.Task[P], error) {
	data, err := json.Marshal(checkpoint)
	if err != nil {
		return nil, fmt.Errorf("dulytest: encode checkpoint: %w", err)
	}
	return newTask(payload, data), nil
}

func newTask[P any](payload P, checkpoint json.RawMessage) *core.Task[P] {
	t := &core.Task[P]{Payload: payload, RunInfo: core.NewTestRun(checkpoint)}
	t.Agent, t.ID, t.Kind, t.Level, t.Attempt, t.Fence = "agent", "task", "kind", core.LevelLow, 1, 1
	t.Due, t.Occurrence, t.Submitted, t.Claimed = begin, begin, begin, begin
	return t
}

// begin is where clocks start. It is a constant time, so that a test that passed yesterday passes tomorrow.
var begin = time.Date(2030, time.January, 1, 0, 0, 0, 0, time.UTC)

// Run is a [core.Task] of any payload, or its [core.RunInfo].
type Run interface {
	// Recorded returns the result and the progress, as JSON.
	Recorded() (result, progress json.RawMessage)
}

// The errors of [Result] and [Progress].
var (
	ErrNoResult   = errors.New("dulytest: the handler has set no result")
	ErrNoProgress = errors.New("dulytest: the handler has set no progress")
)

// Result decodes the last result that the handler of a task has set. It fails with [ErrNoResult] if there is none.
func Result[V any](task Run) (V, error) {
	result, _ := task.Recorded()
	return decode[V]("result", result, ErrNoResult)
}

// Progress decodes the last progress that the handler of a task has set. It fails with [ErrNoProgress] if there is none.
func Progress[V any](task Run) (V, error) {
	_, progress := task.Recorded()
	return decode[V]("progress", progress, ErrNoProgress)
}

func decode[V any](what string, data []byte, missing error) (v V, err error) {
	if len(data) == 0 {
		return v, missing
	}
	if err := json.Unmarshal(data, &v); err != nil {
		return v, fmt.Errorf("dulytest: decode %s %s: %w", what, data, err)
	}
	return v, nil
}
