package exit

// Failures, as a user at a terminal needs them.

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
)

// Failure is an error as a user at a terminal needs it: what failed, why, and what to do.
// What defaults to the command's name; Todo is empty if nothing can be done.
type Failure struct { //nolint:errname // exit.Failure is what it is called everywhere; an error of this package is nothing else
	What string
	Why  error
	Todo string
	Code int // the exit code; by default that of Why
	// Kind is the code for programs, and Field what is wrong in their input, by its name over HTTP.
	Kind  core.Code
	Field string
}

// Error is one line.
// Line breaks of an inner error become spaces: one line is what a log, and a person, expects. Where the verb of the error is the command it is said once.
func (f *Failure) Error() string {
	line := f.What + ": " + strings.TrimPrefix(f.Why.Error(), f.What+": ")
	if f.Todo != "" {
		line += "; " + f.Todo
	}
	return strings.Join(strings.Fields(line), " ")
}

// Unwrap is the reason.
func (f *Failure) Unwrap() error { return f.Why }

// Complete gives a failure that a command has made what it left out: the exit code of its error, and the code that programs act on.
func (f *Failure) Complete() {
	f.Code = cmp.Or(f.Code, Of(f.Why))
	f.Kind = cmp.Or(f.Kind, Kind(f.Code, f.Why))
}

// Misuse is the failure of input that makes no sense.
// Nothing has been written when it is returned: it comes before the store
// is opened, or from a check of core.
func Misuse(todo, format string, args ...any) *Failure {
	return &Failure{Why: fmt.Errorf(format, args...), Todo: todo, Code: Usage}
}
