package redisstore

// The errors of Open.

import (
	"fmt"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// misconfigured is the error of a field of Config.
// It has the type that programs which read a file or flags look for: they name
// their own key in place of the field.
func misconfigured(field string, value any, format string, args ...any) error {
	return &store.ConfigError{Field: field, Value: value, Reason: fmt.Sprintf(format, args...)}
}

// wrongURL is the error of Config.URL, whose value is never shown as it may hold a password.
func wrongURL(format string, args ...any) error { return misconfigured("URL", nil, format, args...) }

// UnreachableError reports that no Redis answers at the configured address: nothing is
// listening, the name is not known, or the network is down. A Redis that answers and refuses
// is another error, with what to do about it.
type UnreachableError struct {
	Name string // the URL without users, passwords and parameters
	Err  error
}

// Error names the Redis and the reason.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("cannot reach Redis at %s: %v", e.Name, e.Err)
}

// Unwrap is the reason.
func (e *UnreachableError) Unwrap() error { return e.Err }

// As makes it a *[store.Error] too, so that callers that act on codes take it for a store that is unavailable.
func (e *UnreachableError) As(target any) bool {
	of, ok := target.(**store.Error)
	if ok {
		*of = &store.Error{Verb: "open", Err: e}
	}
	return ok
}
