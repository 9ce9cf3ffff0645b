// Package breaker is what a store counts to stop runs that submit tasks whose runs submit tasks: for each root, how many in an hour.
package breaker

import (
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Root is the first ancestor of a task that a run has submitted: its tasks, their tasks and so on are counted together. A store counts
// tasks that it creates or replaces, and so neither one that exists and is kept nor a call that is repeated. Each partition counts by itself.
type Root struct {
	Agent, ID string
	// Most is how many tasks may be submitted for this root in any hour.
	Most  int
	Quota bool // Most is that of a quota
}

// A store counts in spans of Span, so that what it keeps of a root is bounded. No hour, wherever it begins, has more than Most; counts
// are forgotten Window after the end of their span.
const (
	Window = time.Hour
	Span   = 5 * time.Minute
)

// Error reports that a run may not submit tasks, as it is too far from its root, or as too many were submitted for that. Nothing
// was written.
type Error struct {
	Agent, ID string        // of the root
	Depth     int           // that the tasks would have; zero if there are too many of them
	Limit     int           // of the depth, or of the tasks in an hour
	Until     moment.Millis // when there is room for another task, if there are too many
	Quota     bool          // the limit is that of a quota
}

// Error names the root, the bound and what to do.
func (e *Error) Error() string {
	if e.Depth > 0 {
		bound := "max_depth"
		if e.Quota {
			bound = "the quota depth of the agent"
		}
		return fmt.Sprintf("tasks that submit tasks have come to depth %d below task %q of agent %q, and the limit is %d: "+
			"let the task recur instead of submitting itself, or raise %s", e.Depth, e.ID, e.Agent, e.Limit, bound)
	}
	bound := "max_spawned"
	if e.Quota {
		bound = "the quota spawned of the agent"
	}
	return fmt.Sprintf("the runs of task %q of agent %q and of the tasks below it have submitted %d tasks within an hour, which is the limit: "+
		"there is room again at %s; find out why they are so many, or raise %s", e.ID, e.Agent, e.Limit, e.Until.Time().Format("2006-01-02T15:04:05.000Z07:00"), bound)
}

// Slot is the number of the span that a time lies in.
func Slot(at moment.Millis) int64 { return int64(at) / Span.Milliseconds() }

// SlotEnds is when the counts of a span are forgotten.
func SlotEnds(slot int64) moment.Millis {
	return moment.Millis((slot+1)*Span.Milliseconds() + Window.Milliseconds())
}
