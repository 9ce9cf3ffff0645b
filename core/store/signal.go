package store

// Signals: messages that tasks wait for.

import (
	"context"
	"time"
)

// Signals resumes tasks that wait for a signal. A task waits for a key since a run of it was settled with Settlement.Await, until a
// settlement that reports it as Heard, or until it ends or is replaced.
type Signals interface {
	// Signal makes the tasks of agents that wait for a key, and have not received it yet, due now, each with the payload: at most a hundred
	// of them in a call (see Signalled.More). If there are none the payload is kept, for the first that will wait for the key. It
	// changes nothing if one is kept already, if it is for one wait alone that has ended, or if all that wait want an approval and it
	// is none. Each signal is one atomic step.
	Signal(ctx context.Context, signals []Signal) ([]Signalled, error)

	// Heard returns what tasks that wait for a key have received; nil for nothing yet.
	Heard(ctx context.Context, waits []Wait) ([]*Told, error)
}

// Signal is a message to the tasks that wait for a key.
type Signal struct {
	Agent, Key string
	Payload    []byte
	Note       []byte        // who sends it: a store returns it with the payload
	Approval   bool          // it counts for tasks that wait for an approval, too
	Keep       time.Duration // how long it is kept if no task waits
	// ID, if it is not empty, is the one task that it is for, and Wait the one wait of it; see Await. It is not kept then.
	ID   string
	Wait Fence
	// Rest marks the same signal sent again, for the tasks that an answer with More has left: if none waits any more it has reached
	// all, and is not kept.
	Rest bool
	// Message, if it is not empty, names what has brought the signal. It sends one signal to an agent, as long as Remember says: sent again, also by
	// another process, it changes nothing, and has resumed no task.
	Message  string
	Remember time.Duration
}

// Signalled is the outcome of a signal.
type Signalled struct {
	Code    SignalCode
	Resumed int  // tasks that were made due
	More    bool // more may wait: the same signal sent again reaches them
}

// SignalCode is the outcome of a signal.
type SignalCode int

// The codes.
const (
	SignalTaken      SignalCode = iota // one that came before is kept still: nothing was changed
	SignalResumed                      // tasks were waiting for it
	SignalKept                         // no task was: it is kept
	SignalClosed                       // the one wait that it is for is not open: nothing was changed
	SignalUnapproved                   // the waiting tasks want an approval, which it is not: nothing was changed
)

// Await is how a task waits for signals from a settlement on.
type Await struct {
	// Key, of a VerbAgain, names a signal which the task waits for until it is due: one that has come already makes it due now.
	Key      string
	Wait     Fence // names the wait among those of its task: the fence of the run that has asked
	Approval bool  // only an approval counts
	Heard    bool  // it does not wait any more for the signal that it has waited for
}

// Wait is a task that waits for a key.
type Wait struct{ Agent, ID, Key string }

// Told is what a task has received.
type Told struct{ Payload, Note []byte }
