package store

// The errors of stores, and of their input.

import (
	"errors"
	"fmt"

	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// The errors without data.
var (
	// ErrLeaseLost is the cause of a handler's context, and the refusal of its result, when its lease ran out or
	// was taken by another process.
	ErrLeaseLost = errors.New("lease lost: another run may hold the task")
	// ErrFull reports that the store is out of memory. Running tasks can still be settled.
	ErrFull = errors.New("the store is out of memory: let it drain, or give Redis a larger maxmemory")
	// ErrReplaced reports that a settlement ignores that its task was replaced during the run: see Settlement.Renewed.
	ErrReplaced = errors.New("the task was replaced while it ran")
	// ErrChanged reports that a task has changed since the caller read it: read it again.
	ErrChanged = errors.New("the task has changed since it was read: try again")
)

// InvalidError says which field of the input is wrong, and why.
type InvalidError struct {
	Field  string // its name in JSON
	Reason string
}

// Error is the field and the reason.
func (e *InvalidError) Error() string { return e.Field + " " + e.Reason }

// ConfigError says which field of a configuration makes no sense, and why: of a scheduler, a store or a handler.
type ConfigError struct {
	Field  string // path of the field in Go, such as Concurrency or Kinds["digest"].Activity.Quiet
	Value  any    // of the field; nil if it is secret or missing
	Reason string // goes with the field in front of it, and names other settings by ordinary words: "must be at least the backoff (1s), not 0s"
}

// Error is the field and the reason.
func (e *ConfigError) Error() string { return e.Field + " " + e.Reason }

// LimitError reports that an agent has as many live tasks as the store allows, or would have more bytes of them, or that its quota refuses a task.
type LimitError struct {
	Agent string
	Limit int  // tasks, or bytes
	Bytes bool // the limit is one of bytes
	// Quota is the part of the agent's quota that refuses the task, such as live, and Used how much of it is used; empty for the limit of the store.
	Quota string
	Used  int
	// Until is when there is room again; zero if that is not known. Reason says why, and what to do, where it is not about a count. Field is the one of
	// the task that the quota never allows as it is; empty if it may be allowed later.
	Until         moment.Millis
	Field, Reason string
}

// Error names the agent and the limit.
func (e *LimitError) Error() string {
	if e.Quota != "" {
		return e.quotaError()
	}
	if e.Bytes {
		return fmt.Sprintf("agent %q would have more than %d bytes of live tasks, which is the limit: wait until some have finished, "+
			"make their payloads smaller, or raise it", e.Agent, e.Limit)
	}
	return fmt.Sprintf("agent %q has %d live tasks, which is the limit: wait until some have finished, or raise it", e.Agent, e.Limit)
}

// ConflictError reports that a task already exists, or does not allow what was asked.
type ConflictError struct {
	Agent, ID string
	Reason    string
}

// ConflictEnding is the Reason of a *[ConflictError] about a task that was cancelled and whose run has not ended.
const ConflictEnding = "was cancelled and its run has not ended yet: try again once it has"

// Error names the task and the reason.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("task %q of agent %q %s", e.ID, e.Agent, e.Reason)
}

// EndingError reports that a task was cancelled while it ran.
type EndingError struct {
	Order []byte // the note of the command, opaque
}

// Error is the message.
func (*EndingError) Error() string { return "the task was cancelled while it ran" }

// Error is a failure of a store. Unless it says otherwise the outcome is unknown, and repeating the call is
// safe.
type Error struct {
	Verb string // the Store's verb
	Err  error
}

// Error is the verb and the store's own error.
func (e *Error) Error() string { return e.Verb + ": " + e.Err.Error() }

// Unwrap is the store's own error.
func (e *Error) Unwrap() error { return e.Err }
