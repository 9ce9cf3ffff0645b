package model

// Errors: the codes that programs act on, and the sentinels behind them.

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/breaker"
)

// AbandonedError says that a process claims nothing more, as too many of its handlers have ignored their cancelled
// contexts and still run. It is over when enough of them return.
type AbandonedError struct {
	Handlers int // that were abandoned and still run
	Limit    int // Config.MaxAbandoned
}

// Error says how many there are, and what to do.
func (e *AbandonedError) Error() string {
	return fmt.Sprintf("%d handlers ignore that their context is cancelled (the limit is %d): this process claims nothing until they return; "+
		"restart it, and let its handlers heed ctx.Done()", e.Handlers, e.Limit)
}

// AlarmError says that a pull has done its work, but that no alarm could be booked, so no call for the next pull will come. The caller
// should call again.
type AlarmError struct {
	At  time.Time // when it should ring
	Err error
}

// Error names the time.
func (e *AlarmError) Error() string {
	return fmt.Sprintf("book the alarm of %s: %v", e.At.UTC().Format(time.RFC3339), e.Err)
}

// Unwrap is why.
func (e *AlarmError) Unwrap() error { return e.Err }

// alarmNotBooked says in the answer to a submit that the task is stored, but that no alarm could be booked for it.
const alarmNotBooked = "not booked"

// AwayError says that some partitions of the store did not answer, while all work of the others was done.
type AwayError struct {
	Partitions []int // in order
	Err        error // of the first one
}

// Error names the partitions.
func (e *AwayError) Error() string {
	return fmt.Sprintf("partitions %v of the store did not answer; the others were served: %v", e.Partitions, e.Err)
}

// Unwrap is the error of the first partition.
func (e *AwayError) Unwrap() error { return e.Err }

// Code says what kind of error an error is. Programs act on codes, never on texts.
type Code string

// The codes. Adapters map each to a status of their protocol.
const (
	CodeInvalid     Code = "invalid"       // the caller's input is wrong; nothing was written
	CodeNotFound    Code = "not_found"     // no such task or group
	CodeLimit       Code = "limit"         // an agent has too many tasks; nothing was written
	CodeQuota       Code = "quota"         // the quota of an agent refuses a task; nothing was written
	CodeUnavailable Code = "unavailable"   // the store cannot be reached, or refuses; the outcome is unknown
	CodeStoreFull   Code = "store_full"    // the store is out of memory; nothing was written
	CodeDisabled    Code = "kind_disabled" // tasks of this kind are refused; nothing was written
	CodeConflict    Code = "conflict"      // a task with that id already exists, or the command does not fit its state
	CodeLeaseLost   Code = "lease_lost"    // the run no longer holds its task
	CodeRunsFailed  Code = "runs_failed"   // the pull worked, but some handlers failed
	CodeAbandoned   Code = "abandoned"     // too many handlers of this process ignore their context: it claims nothing
	CodeForbidden   Code = "forbidden"     // a rule of this process, or the rights of the caller, refuse it; nothing was written
	CodeSpawnDepth  Code = "spawn_depth"   // a run is too deep below its root to submit tasks; nothing was written
	CodeSpawnRate   Code = "spawn_rate"    // the runs below a root have submitted too many tasks within an hour; nothing was written
	CodeInternal    Code = "internal"      // a fault of duly
)

// The errors without data.
var (
	// ErrNotFound says that there is no such task.
	ErrNotFound = errors.New("not found")
	// ErrCount says that a bulk command matches more or fewer tasks than its caller has counted. Nothing was changed.
	ErrCount = errors.New("the tasks are not as many as were counted: count them again")
	// ErrStale says that a profile has another revision than the one that its caller has read. Nothing was changed.
	ErrStale = errors.New("the profile has changed since that revision: read it again")
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

// DisabledError says that tasks of a kind are refused.
type DisabledError struct{ Kind string }

// Error names the kind.
func (e *DisabledError) Error() string { return fmt.Sprintf("the kind %q is disabled here", e.Kind) }

// CodeOf is the code of an error; empty for nil.
func CodeOf(err error) Code {
	var inv *store.InvalidError
	var limit *store.LimitError
	var broken *breaker.Error
	var runs *RunsError
	switch {
	case err == nil:
		return ""
	case errors.As(err, new(*VetoError)), errors.As(err, new(*ForbiddenError)), errors.Is(err, ErrUnapproved): // first, as it wraps what the rule says
		return CodeForbidden
	case errors.As(err, &inv), errors.As(err, new(*store.ConfigError)), errors.As(err, new(*schedule.ParseError)):
		return CodeInvalid
	case errors.As(err, &broken) && broken.Quota, errors.As(err, &limit) && limit.Quota != "":
		return CodeQuota
	case errors.As(err, &broken):
		if broken.Depth > 0 {
			return CodeSpawnDepth
		}
		return CodeSpawnRate
	case errors.As(err, &limit):
		return CodeLimit
	case errors.As(err, new(*DisabledError)):
		return CodeDisabled
	case errors.As(err, new(*store.ConflictError)), errors.As(err, new(*SignalTakenError)), errors.Is(err, store.ErrChanged), errors.Is(err, ErrCount), errors.Is(err, ErrStale), errors.Is(err, ErrClosed), errors.Is(err, ErrNotOpen):
		return CodeConflict
	case errors.As(err, new(*AlarmError)): // before other errors of a pull: its caller has to call again
		return CodeUnavailable
	case errors.As(err, &runs):
		return CodeRunsFailed
	case errors.As(err, new(*AbandonedError)):
		return CodeAbandoned
	case errors.Is(err, ErrNotFound):
		return CodeNotFound
	case errors.Is(err, store.ErrLeaseLost):
		return CodeLeaseLost
	case errors.Is(err, store.ErrFull):
		return CodeStoreFull
	case errors.As(err, new(*store.Error)):
		return CodeUnavailable
	default:
		return CodeInternal
	}
}
