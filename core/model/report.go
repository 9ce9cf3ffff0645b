package model

// The report of a pull: what it did, and what is still to be done.

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
)

// Report says what a pull did.
type Report struct {
	Agents    int // that had a tick
	Ran       int // runs that were started
	Completed int // runs that succeeded
	Failed    int // tasks that are dead, or occurrences of recurring tasks that failed
	Retried   int // runs that failed and are repeated
	Released  int // released, uncharged: not started, or ended by the budget
	Skipped   int // occurrences that were skipped
	Parked    int // found due and set aside: without a handler here, paused, or held back by a limit or a budget
	Lost      int // runs that lost their lease; another process may run the task
	Cancelled int // tasks that their handler cancelled
	Snoozed   int // runs that put their task off, by Snooze, Yield or RetryAfter
	Recovered int // tasks whose earlier run died and that this pull put back
	// Left are due tasks that were not started because runs of their kind usually take longer than the pull had time left
	// for: at least this many, as a pull does not examine all. They need a pull with more time.
	Left int
	Away []int // partitions of the store that did not answer, while others did; see [AwayError]
	// NextDueAt is when something within the scope is due next, by the store's clock; zero: nothing is scheduled. A host
	// can book one wake-up for it.
	NextDueAt time.Time
	// AlarmAt is when the booked alarm rings, as far as this process knows; zero: none is booked, or Config.Alarm is not set.
	AlarmAt time.Time
	// More says that due work is left, or may be: the budget was spent first.
	More     bool
	Duration time.Duration
	// Failures are the first few runs that failed, the same as in the [RunsError] of the pull: a host answers with the report
	// alone, and its reader needs to know which tasks to look at.
	Failures []RunFailure
}

// RunsError says that handlers failed. All healthy work was done.
type RunsError struct {
	Failures []RunFailure // the first few
	Count    int
}

// RunFailure is one failed run.
type RunFailure struct {
	Agent, ID, Kind string
	Err             error
}

// Error names the first failures.
func (e *RunsError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d run(s) failed", e.Count)
	for i, f := range e.Failures {
		sep := "; "
		if i == 0 {
			sep = ": "
		}
		fmt.Fprintf(&b, "%s%s of agent %q (%s): %s", sep, f.ID, f.Agent, f.Kind, check.Clip(f.Err.Error()))
	}
	if e.Count > len(e.Failures) {
		fmt.Fprintf(&b, "; and %d more", e.Count-len(e.Failures))
	}
	return b.String()
}

// Unwrap are the errors of the failures that are named.
func (e *RunsError) Unwrap() []error {
	errs := make([]error, len(e.Failures))
	for i := range e.Failures {
		errs[i] = e.Failures[i].Err
	}
	return errs
}
