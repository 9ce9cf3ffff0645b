// Package outcome has what a handler can return, as values that a decision distinguishes.
package outcome

// The outcomes that a handler can choose, as values.

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// HeldError is an error of what is asked before a handler, which kept the run from it: the run has failed, and is tried again.
type HeldError struct {
	By  string // what was asked
	Err error
}

func (e *HeldError) Error() string { return e.By + ": " + e.Err.Error() }

func (e *HeldError) Unwrap() error { return e.Err }

// A handler chooses the outcome by what it returns. Nil completes the run; any error but the ones below is a failed attempt, which
// is repeated with backoff until the task's attempts are used up.

// Cancel ends the task without a retry: it is cancelled, with err as the reason. A recurring task ends for good.
func Cancel(err error) error {
	if err == nil {
		err = errors.New("cancelled by its handler")
	}
	return &CancelError{err: err}
}

// SkipRetry fails the attempt, as err, and spends the attempts that are left: repeating it would not help. The task is
// dead and can be replayed; a recurring one continues with its next occurrence.
func SkipRetry(err error) error {
	if err == nil {
		err = errors.New("failed for good")
	}
	return &SkipRetryError{err: err}
}

// Snooze puts the task off by d, uncharged: no attempt is counted.
func Snooze(d time.Duration) error { return &SnoozeError{After: d} }

// RetryAfter repeats the run, for the reason err, not before t: what an HTTP 429 with Retry-After asks for. It is uncharged,
// for every schedule, up to KindConfig.MaxRetryAfters times in a row; from then on it is a failed attempt. The pause is at
// least the kind's Backoff, and is followed by a random one that grows as those between attempts do. If the task has a limit
// key, all tasks of that key are held until t.
func RetryAfter(t time.Time, err error) error {
	if err == nil {
		err = errors.New("asked to retry later")
	}
	return &RetryAfterError{At: t, err: err}
}

// NextIn completes the run of a recurring task and sets its interval to d, from now on. For a task that does not recur
// it is success.
func NextIn(d time.Duration) error { return &NextInError{After: d} }

// Yield saves a checkpoint and continues the same occurrence after d, uncharged: long work in small steps. The next
// run finds the checkpoint with [core.Task.Checkpoint]. The checkpoint is stored as JSON of up to [MaxCheckpoint] bytes.
func Yield(checkpoint any, d time.Duration) error {
	data, err := EncodeCheckpoint("yield", checkpoint)
	if err != nil {
		return err
	}
	return &YieldError{Checkpoint: data, After: d}
}

// MaxCheckpoint bounds a checkpoint, in bytes of JSON: the store reads it with each claim of its task.
const MaxCheckpoint = 256 << 10

// ErrBudgetSpent is the cause of a handler's context when what its run has used, and saved, has used a budget up.
var ErrBudgetSpent = errors.New("what the run has used has used its budget up")

// EncodeCheckpoint returns a checkpoint as it is stored. One that cannot be stored becomes an outcome that says so: if it is too large the task fails
// for good, and can be replayed once its handler saves less.
func EncodeCheckpoint(verb string, checkpoint any) ([]byte, error) {
	data, err := json.Marshal(checkpoint)
	switch {
	case err != nil:
		return nil, Cancel(errors.New(verb + ": the checkpoint cannot be stored as JSON: " + err.Error()))
	case len(data) > MaxCheckpoint:
		return nil, SkipRetry(fmt.Errorf("%s: %w", verb, check.Invalid("checkpoint", "is %d bytes long: the limit is %d", len(data), MaxCheckpoint)))
	default:
		return data, nil
	}
}

// CancelError is what Cancel returns.
type CancelError struct{ err error }

func (e *CancelError) Error() string { return e.err.Error() }

func (e *CancelError) Unwrap() error { return e.err }

// SkipRetryError is what SkipRetry returns.
type SkipRetryError struct{ err error }

func (e *SkipRetryError) Error() string { return e.err.Error() }

func (e *SkipRetryError) Unwrap() error { return e.err }

// SnoozeError is what Snooze returns.
type SnoozeError struct{ After time.Duration }

func (e *SnoozeError) Error() string { return "snoozed for " + e.After.String() }

// RetryAfterError is what RetryAfter returns.
type RetryAfterError struct {
	At  time.Time
	err error
}

func (e *RetryAfterError) Error() string { return e.err.Error() }

func (e *RetryAfterError) Unwrap() error { return e.err }

// NextInError is what NextIn returns.
type NextInError struct{ After time.Duration }

func (e *NextInError) Error() string { return "next in " + e.After.String() }

// YieldError is what Yield returns, with the checkpoint as JSON.
type YieldError struct {
	Checkpoint []byte
	After      time.Duration
}

func (e *YieldError) Error() string { return "yielded for " + e.After.String() }

// ErrGoexit is the outcome of a handler that ended its goroutine.
var ErrGoexit = errors.New("the handler called runtime.Goexit")

// FatalError is an outcome that no retry can fix: the task is dead at once.
type FatalError struct {
	Reason string
	Err    error
}

// Outcome is that of a task that ends by it without a run.
func (e *FatalError) Outcome() model.Outcome {
	if errors.Is(e.Err, model.ErrCrashed) {
		return model.OutcomeCrashed
	}
	return model.OutcomeFailed
}

func (e *FatalError) Error() string { return e.Err.Error() }

func (e *FatalError) Unwrap() error { return e.Err }
