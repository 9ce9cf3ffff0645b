package dulyfile

// The error of a file: where, and why.

import (
	"strconv"
	"strings"
)

// Error is what is wrong with a file, and where.
type Error struct {
	// File and Line are what an editor jumps to.
	File string // its name; empty if the mistake is not one of the file alone
	Line int    // zero if it is about no line
	Path string // of the value, such as handlers.note.timeout; empty for the whole file
	Err  error
}

// Error is one line and begins with the place, as compilers do: "duly.yaml:12: handlers.note.timeout: must be a duration".
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File + ":")
		if e.Line > 0 {
			b.WriteString(strconv.Itoa(e.Line) + ":")
		}
		b.WriteString(" ")
	}
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	return strings.Join(strings.Fields(b.String()+e.Err.Error()), " ")
}

// Unwrap is the reason.
func (e *Error) Unwrap() error { return e.Err }
