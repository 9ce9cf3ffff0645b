package model

// How runs end.

import "time"

// Outcome is how a run ended.
type Outcome string

// The outcomes.
const (
	OutcomeSuccess   Outcome = "success"
	OutcomeFailed    Outcome = "failed"
	OutcomeCancelled Outcome = "cancelled"
	OutcomeSnoozed   Outcome = "snoozed"
	OutcomeYielded   Outcome = "yielded"
	OutcomeAwaiting  Outcome = "awaiting" // it waits for a signal
	OutcomeCrashed   Outcome = "crashed"  // its lease ran out
	OutcomeSkipped   Outcome = "skipped"  // occurrences that were not run: the reason is in Error
	// OutcomeReleased is a run that its process ended before its handler returned: at a shutdown, or because the time of its pull
	// was up. It is not charged.
	OutcomeReleased Outcome = "released"
)

// TaskRun is one ended run of a task.
type TaskRun struct {
	Started  time.Time
	Duration time.Duration
	Attempt  int // which attempt at its occurrence it was, from 1 on; 0 for occurrences that were skipped
	Outcome  Outcome
	Error    string
	Used     Usage  // what its handler reported as used; nil for nothing
	Process  string // that ran it: Config.Name; for a run that crashed, the one that took over its task
}
