package core

// A handler steers by what it returns.

// PanicError is the outcome of a handler that panicked.
type PanicError struct {
	Value string // what it panicked with
	Stack string
}

// Error is the panic's value.
func (e *PanicError) Error() string { return "panic: " + e.Value }
