package store

// Signals: what tasks wait for that somebody else says.

import (
	"context"
	"time"
)

// Signals resumes tasks that wait for somebody. A task waits for a key since a run of it was settled with Settlement.Await, until a
// settlement that says it was Heard, or until it ends or is replaced.
type Signals interface {
	// Signal makes the tasks of agents that wait for a key, and have not been told yet, due now, each with the payload: at most a hundred
	// of them in a call (see Signalled.More). If there are none the payload is kept, for the first that will wait for the key. It
	// changes nothing if one is kept already, if it is for one wait alone that has ended, or if all that wait want an approval and it
	// is none. Each signal is one atomic step.
	Signal(ctx context.Context, signals []Signal) ([]Signalled, error)

	// Heard returns what tasks that wait for a key were told; nil for nothing yet.
	Heard(ctx context.Context, waits []Wait) ([]*Told, error)
}

// Signal is what somebody says to whoever waits for a key.
type Signal struct {
	Agent, Key string
	Payload    []byte
	Note       []byte        // who says it: a store hands it out with the payload
	Approval   bool          // it counts for tasks that wait for an approval, too
	Keep       time.Duration // how long it is kept if nobody waits
	// ID, if it is not empty, is the one task that it is for, and Wait the one wait of it; see Await. It is not kept then.
	ID   string
	Wait Fence
	// Rest says that this is the same signal again, for those that an answer with More has left: if nobody waits any more it has reached
	// everybody, and is not kept.
	Rest bool
}

// Signalled is what became of a signal.
type Signalled struct {
	Code    SignalCode
	Resumed int  // tasks that were made due
	More    bool // there may be more that wait: the same signal again tells them
}

// SignalCode says what became of a signal.
type SignalCode int

// The codes.
const (
	SignalTaken      SignalCode = iota // one that came before is kept still: nothing was changed
	SignalResumed                      // tasks were waiting for it
	SignalKept                         // nobody was: it is kept
	SignalClosed                       // the one wait that it is for is not open: nothing was changed
	SignalUnapproved                   // whoever waits wants an approval, which it is not: nothing was changed
)

// Await is how a task waits for signals from a settlement on.
type Await struct {
	// Key, of a VerbAgain, is that of a signal which the task waits for until it is due: one that has come already makes it due now.
	Key      string
	Wait     Fence // names the wait among those of its task: the fence of the run that has asked
	Approval bool  // only an approval counts
	Heard    bool  // it does not wait any more for the signal that it has waited for
}

// Wait is a task that waits for a key.
type Wait struct{ Agent, ID, Key string }

// Told is what a task was told.
type Told struct{ Payload, Note []byte }
