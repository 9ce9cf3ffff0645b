package model

// Questions, and what became of a signal.

import (
	"errors"
	"fmt"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Signalled is what became of a signal.
type Signalled struct {
	Resumed int  `json:"resumed"` // tasks that are due now
	Kept    bool `json:"kept"`    // nobody waits for it yet: it is kept for whoever does first, for SignalKept
}

// SignalTakenError says that a signal is kept already that came before, and that nobody has waited for. Nothing was changed.
type SignalTakenError struct{ Agent, Key string }

// Error names it.
func (e *SignalTakenError) Error() string {
	return fmt.Sprintf("a signal %q of agent %q is kept already, and nothing has waited for it yet", e.Key, e.Agent)
}

// The errors of answers. Nothing was changed.
var (
	// ErrClosed says that a question was answered, or that its task waits for it no more.
	ErrClosed = errors.New("this question is no longer open")
	// ErrNotOpen says that a task is about to wait for the answer to a question, and does not yet.
	ErrNotOpen = errors.New("this question is not open yet: try again in a moment")
	// ErrUnapproved says that whoever waits for a signal wants an approval: see [core.FromApproval].
	ErrUnapproved = errors.New("the task waits for an approval: the page of its question, or a credential with the scope approve, sends one")
)

// Question is what one wait of a task asks a person.
type Question struct {
	Agent, ID, Key string
	// Fence is that of the run that asks ([core.RunInfo.Fence]), or of the wait ([Awaiting.Fence]): no other wait of the task is answered.
	Fence store.Fence
	Text  string // that is shown
}
