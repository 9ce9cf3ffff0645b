package core

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// A handler steers by what it returns. Nil completes the run; any error but the ones below is a failed attempt, which
// is repeated with backoff until the task's attempts are used up.

// Cancel ends the task without a retry: it is cancelled, with err as the reason. A recurring task ends for good.
func Cancel(err error) error {
	if err == nil {
		err = errors.New("cancelled by its handler")
	}
	return &cancelError{err: err}
}

// SkipRetry fails the attempt, as err, and spends the attempts that are left: repeating it would not help. The task is
// dead and can be replayed; a recurring one continues with its next occurrence.
func SkipRetry(err error) error {
	if err == nil {
		err = errors.New("failed for good")
	}
	return &skipRetryError{err: err}
}

// Snooze puts the task off by d, uncharged: no attempt is counted.
func Snooze(d time.Duration) error { return &snoozeError{after: d} }

// RetryAfter repeats the run, for the reason err, not before t: what an HTTP 429 with Retry-After asks for. It is uncharged,
// for every schedule, up to KindConfig.MaxRetryAfters times in a row; from then on it is a failed attempt. The pause is at
// least the kind's Backoff, and is followed by a random one that grows as those between attempts do. If the task has a limit
// key, all tasks of that key are held until t.
func RetryAfter(t time.Time, err error) error {
	if err == nil {
		err = errors.New("asked to retry later")
	}
	return &retryAfterError{at: t, err: err}
}

// NextIn completes the run of a recurring task and sets its interval to d, from now on. For a task that does not recur
// it is success.
func NextIn(d time.Duration) error { return &nextInError{after: d} }

// Yield saves a checkpoint and continues the same occurrence after d, uncharged: long work in small steps. The next
// run finds the checkpoint with [Task.Checkpoint]. The checkpoint is stored as JSON of up to [MaxCheckpoint] bytes.
func Yield(checkpoint any, d time.Duration) error {
	data, err := encodeCheckpoint("yield", checkpoint)
	if err != nil {
		return err
	}
	return &yieldError{checkpoint: data, after: d}
}

// MaxCheckpoint bounds a checkpoint, in bytes of JSON: the store reads it with each claim of its task.
const MaxCheckpoint = 256 << 10

// encodeCheckpoint is a checkpoint as it is stored. One that cannot be is an outcome that names it: of one that is too large the task has failed for
// good, and can be replayed once its handler saves less.
func encodeCheckpoint(verb string, checkpoint any) ([]byte, error) {
	data, err := json.Marshal(checkpoint)
	switch {
	case err != nil:
		return nil, Cancel(errors.New(verb + ": the checkpoint cannot be stored as JSON: " + err.Error()))
	case len(data) > MaxCheckpoint:
		return nil, SkipRetry(fmt.Errorf("%s: the checkpoint is %d bytes long: the limit is %d", verb, len(data), MaxCheckpoint))
	default:
		return data, nil
	}
}

// cancelError is Cancel's.
type cancelError struct{ err error }

func (e *cancelError) Error() string { return e.err.Error() }
func (e *cancelError) Unwrap() error { return e.err }

// skipRetryError is SkipRetry's.
type skipRetryError struct{ err error }

func (e *skipRetryError) Error() string { return e.err.Error() }
func (e *skipRetryError) Unwrap() error { return e.err }

// snoozeError is Snooze's.
type snoozeError struct{ after time.Duration }

func (e *snoozeError) Error() string { return "snoozed for " + e.after.String() }

// retryAfterError is RetryAfter's.
type retryAfterError struct {
	at  time.Time
	err error
}

func (e *retryAfterError) Error() string { return e.err.Error() }
func (e *retryAfterError) Unwrap() error { return e.err }

// nextInError is NextIn's.
type nextInError struct{ after time.Duration }

func (e *nextInError) Error() string { return "next in " + e.after.String() }

// yieldError is Yield's, with the checkpoint as JSON.
type yieldError struct {
	checkpoint []byte
	after      time.Duration
}

func (e *yieldError) Error() string { return "yielded for " + e.after.String() }

// PanicError is the outcome of a handler that panicked.
type PanicError struct {
	Value string // what it panicked with
	Stack string
}

// Error is the panic's value.
func (e *PanicError) Error() string { return "panic: " + e.Value }

// errGoexit is the outcome of a handler that ended its goroutine.
var errGoexit = errors.New("the handler called runtime.Goexit")

// fatalError is an outcome that no repetition can mend: the task is dead at once.
type fatalError struct {
	reason string
	err    error
}

// outcome of a task that ends by it without a run.
func (e *fatalError) outcome() Outcome {
	if errors.Is(e.err, ErrCrashed) {
		return OutcomeCrashed
	}
	return OutcomeFailed
}

func (e *fatalError) Error() string { return e.err.Error() }
func (e *fatalError) Unwrap() error { return e.err }
