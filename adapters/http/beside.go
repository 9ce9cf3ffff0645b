package http

// For handlers that run beside this one, such as pages for people: who calls them.

import (
	"context"
	"net/http"

	"github.com/seed-6f6f2c11/duly/core"
)

// Callers returns a function that finds out who sends a request, by the verifiers of a configuration, for a handler beside this one that accepts the same
// callers: its error is for the log only. It is nil if no request needs a credential, and panics as New does. A caller's use of the store's time
// is bounded by Shares, if that is set, until the context of its request is done.
func (c *Config) Callers() func(r *http.Request) (core.Principal, error) {
	own := *c
	if own.Clock == nil {
		own.Clock = core.SystemClock{}
	}
	verifiers := own.verifiers()
	if len(verifiers) == 0 {
		return nil
	}
	return func(r *http.Request) (core.Principal, error) {
		from, err := authenticate(r, verifiers)
		if err != nil {
			return core.Principal{}, err
		}
		who := core.Principal{Name: from.grant.Name, Rights: from.grant}
		if own.Shares != nil {
			pace, end := own.Shares.pace(from)
			context.AfterFunc(r.Context(), end)
			who.Pace = pace
		}
		return who, nil
	}
}
