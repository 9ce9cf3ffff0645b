package command

// The words for the status of tasks, runs and jobs, and their colours.

import (
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// What keeps a waiting task from its time, or a running one from going on, for people.
const (
	StatusPaused  = "paused"
	StatusParked  = "parked"  // no process that claims has a handler
	StatusResting = "resting" // it waits for activity
	StatusAwaits  = "signal"  // it waits for one
	StatusCooling = "cooling" // it failed too often
	StatusEnding  = "ending"  // it was cancelled while it ran, and has not ended yet
)

// StatusOf is the status of a task for people: of a waiting one, what it waits for, unless that is its time.
// The order is from the strongest reason to the weakest: a task may be paused and parked at once.
func StatusOf(t *core.TaskInfo) string {
	switch {
	case t.Ending:
		return StatusEnding
	case t.Status != core.StatusWaiting:
		return string(t.Status)
	case len(t.Pauses) > 0:
		return StatusPaused
	case t.Parked:
		return StatusParked
	case t.Resting:
		return StatusResting
	case t.Awaiting != nil:
		return StatusAwaits
	// Cooling matters only as long as it decides the next run.
	case !t.CoolingUntil.IsZero() && !t.CoolingUntil.Before(t.NextRun):
		return StatusCooling
	default:
		return string(t.Status)
	}
}

// What a recurring task is doing.
// Capitals set them apart from statuses, which are in lower case.
const (
	JobPaused  = "PAUSED"
	JobRunning = "RUNNING"
	JobIdle    = "IDLE"
)

// colours of the status of a task or run.
// Words that are missing here have the default colour.
var colours = map[string]string{
	string(core.StatusCompleted): "32", string(model.OutcomeSuccess): "32", string(core.StatusInProgress): "36",
	string(core.StatusFailed): "31", string(model.OutcomeCrashed): "31", string(core.StatusCancelled): "33",
	StatusPaused: "33", StatusParked: "33", StatusCooling: "33", StatusEnding: "33", JobPaused: "33", JobRunning: "36",
}
