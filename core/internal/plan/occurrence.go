// Package plan works out when tasks are due: the occurrences of recurring ones, the zones and quiet hours of their agents.
package plan

// The due times of tasks that recur.

import "fmt"

// An occurrence is one due time of a task. The next one is worked out here, from its nominal time: the time on
// the clock or the grid of slots, without jitter and no matter how late it ran.

// SkippedError is the outcome of an occurrence that is not run.
type SkippedError struct{ Reason string }

func (e *SkippedError) Error() string { return "skipped: " + e.Reason }

// The reasons of a skip.
const (
	SkipMisfire = "misfire" // it was missed while no process ran that could run it
	SkipOverlap = "overlap" // it fell due while the task ran
	SkipPaused  = "paused"  // its task was paused when its time came
	SkipGate    = "gate"    // its gate said that there was nothing to do
)

// MostCounted bounds how many skipped occurrences are counted at a time.
const MostCounted = 1000

// FailedInARow says how many have failed.
func FailedInARow(n int) string {
	if n == 1 {
		return "the last occurrence failed"
	}
	return fmt.Sprintf("%d occurrences in a row failed", n)
}
