package core

// Events: what a scheduler reports while it works.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// EventType says what happened to a task.
type EventType string

// The events in the life of a run.
const (
	EventEnqueue EventType = "enqueue" // stored
	EventDequeue EventType = "dequeue" // claimed
	EventStart   EventType = "start"   // handed to its handler
	EventFinish  EventType = "finish"  // its outcome is recorded
	EventRelease EventType = "release" // released, uncharged
	EventLost    EventType = "lost"    // its lease was lost; what its handler returned is refused
	EventPause   EventType = "pause"   // paused, as its occurrences keep failing: Error says so
	EventStuck   EventType = "stuck"   // its handler ignores its cancelled context and is given up
	EventFault   EventType = "fault"   // an audit has found that it would have stopped silently, and has repaired it if that can be done
)

// Event is one step in the life of a run. Durations are measured in this process, times by the store's clock.
type Event struct {
	Type     EventType
	Time     time.Time
	Agent    string
	ID       string
	Kind     string
	Group    string
	TraceID  string
	Attempt  int
	Fence    Fence // of the claim; zero for enqueue
	Due      time.Time
	Wait     time.Duration   // from due to claimed: start and finish
	Duration time.Duration   // of the run: finish
	Outcome  Outcome         // finish; crashed: the task is given up, as the leases of its runs ran out again and again
	Retried  bool            // the attempt has failed and is repeated: finish
	Status   Status          // of the task afterwards: finish
	Next     time.Time       // when it is due again: finish of a task that is waiting again
	Because  BecauseCode     // finish of an activity task: it rests until there is activity, and has no Next; or it cools down until Next
	Fault    store.FaultCode // fault
	Error    string          // at most 1 KiB, never the payload
}
