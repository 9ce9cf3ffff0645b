package store

import (
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Manual changes: replay, run now, cancel, delete, hold.

// Replay is a dead task that is to be put back.
type Replay struct {
	Agent, ID, Kind, Group, Key string
	Level                       Level
	Body, State                 []byte
	Activity                    bool // it answers to touches again
	Recurs                      bool // it is due again after its runs, by a schedule
	Bound                       bool // it has to find room in the quota of its agent: see Effect.Refused
}

// RunNow is a task that is to be due now.
type RunNow struct {
	Agent, ID, Group string
	Queue            bool // if it runs, it is due again when its run ends
}

// Cancellation is a task that is to end as cancelled.
type Cancellation struct {
	Agent, ID, Group string
	Version          string // as it was read
	Record           []byte // the tracker's record of the task if it waits with this Version
	Order            []byte // who and why, opaque, for the run under way
}

// Deletion is a task that is to be forgotten.
type Deletion struct{ Agent, ID, Group string }

// Hold keeps the tasks of a target from being claimed, including those that were ordered to run in spite of an earlier hold. A hold that lasts
// already begins again with another note and end.
type Hold struct {
	Target Target
	Note   []byte      // who and why, opaque
	Until  moment.When // when it ends by itself; zero for never
	// Prolong leaves a hold alone that lasts as long or longer.
	Prolong bool
}

// Effect is the result of an operator's request.
type Effect struct {
	Code EffectCode
	// Refused is why a task was not replayed for which the quota of its agent has no room.
	Refused error
	Due     moment.Millis // of Replay and RunNow: when the task is due; of Hold: until when tasks may start that were claimed ahead; zero for none
}

// EffectCode distinguishes the effects.
type EffectCode byte

// The effects.
const (
	EffectNone    EffectCode = iota // there was nothing to change
	EffectDone                      // it is changed
	EffectOrdered                   // the task runs: the change comes when the run ends
	EffectRunning                   // the task runs: nothing is changed
	EffectChanged                   // of Cancel: the task is not at its Version: read it again
	EffectEnding                    // of RunNow: the task was cancelled while it ran and ends: nothing is changed
	EffectStopped                   // of RunNow: everything is held: nothing is changed
)
