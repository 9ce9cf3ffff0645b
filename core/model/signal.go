package model

// Questions, and the results of signals.

import (
	"errors"
	"fmt"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Signalled is the result of a signal.
type Signalled struct {
	Resumed int  `json:"resumed"` // tasks that are due now
	Kept    bool `json:"kept"`    // no task waits for it yet: it is kept for the first that does, for SignalKept
}

// SignalTakenError says that an earlier signal with the same key is still kept, as no task has waited for it. Nothing was changed.
type SignalTakenError struct{ Agent, Key string }

// Error names it.
func (e *SignalTakenError) Error() string {
	return fmt.Sprintf("a signal %q of agent %q is kept already, and nothing has waited for it yet", e.Key, e.Agent)
}

// The errors of answers. Nothing was changed.
var (
	// ErrClosed says that a question was answered, or that its task no longer waits for it.
	ErrClosed = errors.New("this question is no longer open")
	// ErrNotOpen says that a task is about to wait for the answer to a question, and does not yet.
	ErrNotOpen = errors.New("this question is not open yet: try again in a moment")
	// ErrUnapproved says that the task that waits for a signal requires an approval: see [core.FromApproval].
	ErrUnapproved = errors.New("the task waits for an approval: the page of its question, or a credential with the scope approve, sends one")
)

// Question is what one wait of a task asks a person.
type Question struct {
	Agent, ID, Key string
	// Fence is that of the run that asks ([core.RunInfo.Fence]), or of the wait ([Awaiting.Fence]): no other wait of the task is answered.
	Fence store.Fence
	Text  string // that is shown
}
