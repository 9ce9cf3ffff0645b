package store

// Submit and Touch: a task as a store gets it.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core/store/breaker"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Submission is a task as a store gets it. Body is the part of the task that its runs never change, opaque to the store.
type Submission struct {
	Agent, ID, Kind, Group string
	Key                    string // tasks that share one can be held together; empty for none
	Level                  Level
	Due                    moment.When
	Body                   []byte
	State                  []byte // its first state, opaque too; nil for none
	Conflict               Conflict
	// Hold, if not nil, holds the task from the step on that creates it, until Until, or for good if that is zero: no claim ever finds
	// it without its hold. Its Target and Prolong mean nothing. A task that exists is not held by it.
	Hold *Hold
	// Version and OldGroup are those of the task that ConflictReplace is to replace, live or finished, as it was read; empty for none. A caller that has
	// not seen an end may not undo it: its consequence, a delivery, could not be distinguished from one whose end never happened.
	// A store counts a task in the group that it has itself; what others take for its group, here, in a request of an operator or in a
	// Settlement, only matters for a task that a version without that knowledge has stored.
	Version, OldGroup string
	// Root is set for a task that a run of another task has submitted; nil for all others.
	Root *breaker.Root
	// Owed stores a task when the store is full too, and with ConflictKeep regardless of its agent's other tasks: it follows from one that was allowed,
	// which ends then. Where others are submitted in the same call it has to find room as they do.
	Owed   bool
	OldLen int  // bytes of the body that ConflictReplace is to replace: a store bounds its reads in one step by it
	Recurs bool // it is due again after its runs, by a schedule
	// Bound is set for callers that may not act for all agents, and for runs: the quota of the agent bounds what they store. What is to be stored for an
	// agent whose quota has another Mark is refused with [ErrChanged], so that nothing is stored that was not checked by the quota of that moment.
	Bound bool
	Mark  string // of the quota that the task was checked by; empty for none
}

// Conflict says what Submit does with a task that already exists.
type Conflict byte

// The conflict rules of a store.
const (
	// ConflictKeep leaves the task unchanged.
	ConflictKeep Conflict = iota
	// ConflictFail refuses the call.
	ConflictFail
	// ConflictReplace gives a live task a new kind, level, body, state and due time; one that runs gets them when its
	// run ends, and is not disturbed. One that runs and was cancelled refuses it. A finished task begins again.
	ConflictReplace
)

// Submitted is where a submission left a task.
type Submitted struct {
	Created  bool
	Replaced bool
	Due      moment.Millis // when it is due; zero if nothing was changed
	Profile  []byte        // that its agent has now, if anything was changed; empty for none
}

// Touch records that something happened for the subject of an activity task. If no such task exists it is made, from the other fields of the
// touch.
type Touch struct {
	Agent, ID, Kind string
	Level           Level
	Body            []byte
	Pulse           Pulse
	Bound           bool // as those of a Submission
	Mark            string
}

// Touched is the result of a touch.
type Touched struct {
	Booked bool          // it booked a run
	Due    moment.Millis // when that run is due; zero while a run is under way
	Reason Reason
}

// Pulse says how an activity task answers to touches: its run is due Delay after the first of them, or, with Debounce,
// after the last, but at most MaxWait after the first.
type Pulse struct {
	Delay, MaxWait time.Duration
	Debounce       bool
}

// Reason is why a touch did what it did.
type Reason string

// The reasons of a touch.
const (
	ReasonActivity Reason = "activity"     // a run is due after the quiet time
	ReasonWaiting  Reason = "waiting"      // a run was booked already
	ReasonRunning  Reason = "running"      // another run follows the one under way
	ReasonInterval Reason = "min_interval" // the run has to wait until the interval is over
	ReasonCooling  Reason = "cooling_down" // the run has to wait, as the last ones failed
	ReasonPaused   Reason = "paused"       // a run is booked, but the task is held
)
