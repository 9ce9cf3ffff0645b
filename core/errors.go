package core

import (
	"errors"
	"fmt"
)

// Code says what kind of error an error is. Programs act on codes, never on texts.
type Code string

// The codes. Adapters map each to a status of their protocol.
const (
	CodeInvalid     Code = "invalid"       // the caller's input is wrong; nothing was written
	CodeNotFound    Code = "not_found"     // no such task or group
	CodeLimit       Code = "limit"         // an agent has too many tasks; nothing was written
	CodeUnavailable Code = "unavailable"   // the store cannot be reached, or refuses; the outcome is unknown
	CodeStoreFull   Code = "store_full"    // the store is out of memory; nothing was written
	CodeDisabled    Code = "kind_disabled" // tasks of this kind are refused; nothing was written
	CodeConflict    Code = "conflict"      // a task with that id is there already, or the command does not fit its state
	CodeLeaseLost   Code = "lease_lost"    // the run no longer holds its task
	CodeRunsFailed  Code = "runs_failed"   // the pull worked, but some handlers failed
	CodeAbandoned   Code = "abandoned"     // too many handlers of this process ignore their context: it claims nothing
	CodeInternal    Code = "internal"      // a fault of duly
)

// The errors without data.
var (
	// ErrLeaseLost is the cause of a handler's context, and the refusal of its result, when its lease ran out or
	// was taken by somebody else.
	ErrLeaseLost = errors.New("lease lost: another run may hold the task")
	// ErrStoreFull says that the store is out of memory. Tasks that run can be settled all the same.
	ErrStoreFull = errors.New("the store is out of memory: let it drain, or give Redis a larger maxmemory")
	// ErrNotFound says that there is no such task.
	ErrNotFound = errors.New("not found")
	// ErrReplaced says that a run cannot be settled as if nothing had happened: its task was replaced meanwhile.
	ErrReplaced = errors.New("the task was replaced while it ran")
	// ErrChanged says that a task is not any more as it was when it was read: read it again.
	ErrChanged = errors.New("the task has changed since it was read: try again")
	// ErrCancelled is the cause of a handler's context when an operator has cancelled its task.
	ErrCancelled = errors.New("the task was cancelled")
	// ErrTimeout is the cause of a handler's context when the timeout of its task has passed.
	ErrTimeout = errors.New("the handler ran into its timeout")
	// ErrStopping is the cause of a handler's context when its pull has to end: the budget is spent or the caller's
	// context is done. The task is released uncharged.
	ErrStopping = errors.New("the pull is ending")
	// ErrCrashed is the error of a task whose process died, or lost its lease, too many times while it ran.
	ErrCrashed = errors.New("crashed: its runs ended without a result too many times")
)

// InvalidError says which field of the input is wrong, and why.
type InvalidError struct {
	Field  string // as it is called in JSON
	Reason string
}

// Error is the field and the reason.
func (e *InvalidError) Error() string { return e.Field + " " + e.Reason }

func invalid(field, format string, args ...any) error {
	return &InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// ConfigError says which field of a configuration makes no sense, and why: of a [Config] here, and of those of stores and handlers.
type ConfigError struct {
	Field  string // path of the field in Go, such as Concurrency or Kinds["digest"].Activity.Quiet
	Value  any    // what the field has; nil for what is secret or missing
	Reason string // goes with the field in front of it, and names other settings by ordinary words: "must be at least the backoff (1s), not 0s"
}

// Error is the field and the reason.
func (e *ConfigError) Error() string { return e.Field + " " + e.Reason }

func misconfigured(field string, value any, format string, args ...any) *ConfigError {
	return &ConfigError{Field: field, Value: value, Reason: fmt.Sprintf(format, args...)}
}

// in is the error of a field of a part of a configuration, as one of the whole.
func (e *ConfigError) in(part string) *ConfigError {
	return &ConfigError{Field: part + "." + e.Field, Value: e.Value, Reason: e.Reason}
}

// LimitError says that an agent has as many live tasks as the store allows, or would have more bytes of them.
type LimitError struct {
	Agent string
	Limit int  // tasks, or bytes
	Bytes bool // the limit is one of bytes
}

// Error names the agent and the limit.
func (e *LimitError) Error() string {
	if e.Bytes {
		return fmt.Sprintf("agent %q would have more than %d bytes of live tasks, which is the limit: wait until some have finished, "+
			"make their payloads smaller, or raise it", e.Agent, e.Limit)
	}
	return fmt.Sprintf("agent %q has %d live tasks, which is the limit: wait until some have finished, or raise it", e.Agent, e.Limit)
}

// ConflictError says that a task is there already, or does not allow what was asked.
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

// DisabledError says that tasks of a kind are refused.
type DisabledError struct{ Kind string }

// Error names the kind.
func (e *DisabledError) Error() string { return fmt.Sprintf("the kind %q is disabled here", e.Kind) }

// CancelledError says that a task was told to end while it ran.
type CancelledError struct {
	Order []byte // what the command said, opaque
}

// Error says so.
func (*CancelledError) Error() string { return "the task was cancelled while it ran" }

// CodeOf is the code of an error; empty for nil.
func CodeOf(err error) Code {
	var inv *InvalidError
	var limit *LimitError
	var runs *RunsError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &inv), errors.As(err, new(*ConfigError)):
		return CodeInvalid
	case errors.As(err, &limit):
		return CodeLimit
	case errors.As(err, new(*DisabledError)):
		return CodeDisabled
	case errors.As(err, new(*ConflictError)), errors.Is(err, ErrChanged):
		return CodeConflict
	case errors.As(err, &runs):
		return CodeRunsFailed
	case errors.As(err, new(*AbandonedError)):
		return CodeAbandoned
	case errors.Is(err, ErrNotFound):
		return CodeNotFound
	case errors.Is(err, ErrLeaseLost):
		return CodeLeaseLost
	case errors.Is(err, ErrStoreFull):
		return CodeStoreFull
	case errors.As(err, new(*StoreError)):
		return CodeUnavailable
	default:
		return CodeInternal
	}
}

// StoreError is what a store could not do. Unless it says otherwise the outcome is unknown, and doing the same again is
// safe.
type StoreError struct {
	Verb string // the Store's verb
	Err  error
}

// Error is the verb and the store's own error.
func (e *StoreError) Error() string { return e.Verb + ": " + e.Err.Error() }

// Unwrap is the store's own error.
func (e *StoreError) Unwrap() error { return e.Err }
