package schedule

// The error of a cron expression, and of quiet hours.

import (
	"errors"
	"fmt"
)

// ParseError says which parameter of [ParseCron] or [ParseQuiet] makes no sense, and why.
// Core turns it into an error of the task's field of that name.
type ParseError struct {
	Field  string // cron, zone, day_match, gap or quiet[0].from and the like, as they are called in JSON
	Reason string // begins with what is wrong and goes with the field in front of it

	cause error // ErrNever, if that is why
}

// Error is the field and the reason.
func (e *ParseError) Error() string { return e.Field + " " + e.Reason }

// Unwrap is [ErrNever] for an expression that can never fire.
func (e *ParseError) Unwrap() error { return e.cause }

// refused is a *ParseError about a parameter. What %w wraps can be told by errors.Is.
// It keeps only the cause that callers may ask for.
func refused(field, format string, args ...any) error {
	err := fmt.Errorf(format, args...)
	return &ParseError{Field: field, Reason: err.Error(), cause: errors.Unwrap(err)}
}
