package store

// Status and level of a task, and how long things are known.

import "time"

// Status is where a task is in its life.
type Status string

// The life of a task: waiting -> in_progress -> completed, failed or cancelled. A task that recurs, is retried or is
// given back goes from in_progress to waiting.
const (
	StatusWaiting    Status = "waiting"
	StatusInProgress Status = "in_progress"
	StatusCompleted  Status = "completed"
	StatusFailed     Status = "failed"
	StatusCancelled  Status = "cancelled"
)

// Finished reports whether s is an end.
func (s Status) Finished() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCancelled
}

// Level is a priority: 1 is served before 2 before 3 among the due tasks of one agent.
type Level int

// The levels.
const (
	LevelHigh   Level = 1
	LevelMedium Level = 2
	LevelLow    Level = 3
)

// RaiseAfter is how long a due task waits before it is served as if it had level 1, so that none starves.
const RaiseAfter = time.Minute

// KnownFor is how long the id of a finished task stays known at least, or for as long as records are kept if that is
// shorter: also when its record has to make room for those of later tasks.
const KnownFor = 24 * time.Hour
