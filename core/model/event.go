package model

// Events: what a scheduler reports while it works.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
)

// EventType says what happened to a task.
type EventType string

// The events in the life of a run.
const (
	EventEnqueue EventType = "enqueue" // stored: it is new
	EventDequeue EventType = "dequeue" // claimed
	EventStart   EventType = "start"   // handed to its handler
	EventFinish  EventType = "finish"  // its outcome is recorded
	EventRelease EventType = "release" // released, uncharged
	EventLost    EventType = "lost"    // its lease was lost; what its handler returned is refused
	EventStuck   EventType = "stuck"   // its handler ignores its cancelled context and is abandoned
	EventFault   EventType = "fault"   // an audit has found that it would have stopped silently, and has repaired it if possible
)

// The events of commands, and of what duly did by itself: By says who, and Reason why. An event that may be about more than one
// task has an ID if it is about one; else the Agent, the Kind or the Key that it is about, or none of them for all.
const (
	EventReplace  EventType = "replace"  // the task has a new definition
	EventActivity EventType = "activity" // an activity booked a run of the task
	EventPause    EventType = "pause"    // no run starts; by duly: the occurrences of the task keep failing, or take too long
	EventResume   EventType = "resume"   // the pause has ended by a command; one that ends by its time has no event
	EventRunNow   EventType = "run_now"  // the task is due now
	EventCancel   EventType = "cancel"   // the task is cancelled; one that is in progress ends when its run does, with a finish
	EventDelete   EventType = "delete"   // the task, or its record, is forgotten
	EventReplay   EventType = "replay"   // the dead task is due again
	EventSignal   EventType = "signal"   // the signal Key of the agent was sent: Count tasks that waited for it are due now, or it is kept for the first that will
	EventHold     EventType = "hold"     // the tasks of a limit key wait until Next, as the run of one met the limit
	EventBudget   EventType = "budget"   // a budget is used up, until Next; the tasks that it covers wait, are paused, or run on: see Reason
	EventPark     EventType = "park"     // a claim has parked a due task: Reason says why; if there are more than 50 at once, only Count is known
	EventBreaker  EventType = "breaker"  // a run of the task was kept from submitting Count tasks: it is too deep below its root, or these are too many: see Code
	EventReset    EventType = "reset"    // the store has lost what this process had stored in it, such as limits: it is stored again before any task starts; Error says why not
	EventLate     EventType = "late"     // the task has not succeeded within the time that it was to, from Due on: Because and Reason say why, Status what it does
	EventOnTime   EventType = "on_time"  // a task that was late has succeeded
	EventRecover  EventType = "recover"  // a claim has put back Count tasks whose lease had ended
)

// Event is a change of a task, or one step in the life of a run, reported once it is stored. Durations are measured in this process, times
// by the store's clock.
type Event struct {
	Type    EventType
	Time    time.Time
	Agent   string
	ID      string
	Kind    string
	Group   string
	TraceID string
	// SessionID and Labels are those of the task, if it was submitted, run or read: events of its pause, and of an audit's findings, lack them.
	SessionID string
	Labels    map[string]string // read only; in JSON only if they are 1 KiB at most together
	Process   string            // the name of the process that did it: Config.Name

	Attempt  int         // of the run, from 1 on; zero if the event is about no run
	Fence    store.Fence // of the claim; zero if the event is about no run
	Due      time.Time
	Wait     time.Duration // from due to claimed: start and finish
	Duration time.Duration // of the run: finish
	Outcome  Outcome       // finish; crashed: the task is given up, as the leases of its runs ran out again and again
	Retried  bool          // the attempt has failed and is repeated: finish
	From     store.Status  // of the task before, as far as that is known
	Status   store.Status  // of the task afterwards, as far as that is known; empty for one that is deleted
	Next     time.Time     // when it is due again: finish of a task that is waiting again
	Because  BecauseCode   // finish of an activity task: it rests until there is activity, and has no Next; or it cools down until Next. Late: what keeps it
	Fault    audit.Code    // fault
	Key      string        // the limit key of what is paused, resumed or held, and of a task that a command is about
	By       string        // who asked for it; "duly" for what duly did by itself; in a finish, who cancelled the task
	Note     string        // what the caller says of itself, besides the credential that By names
	Reason   string        // why, as the caller said; in a release, why the run was released; at most 1 KiB
	Count    int           // how many tasks: park, recover and breaker
	Code     Code          // which bound it was: breaker
	Used     Usage         // what the run has used: finish and release; nil for nothing
	Error    string        // at most 1 KiB, never the payload
}
