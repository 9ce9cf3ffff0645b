package http

// For handlers beside this one, such as pages for people: who calls them.

import (
	"net/http"

	"github.com/seed-6f6f2c11/duly/core"
)

// Callers returns what finds out who sends a request, by the verifiers of a configuration, for a handler beside this one that lets in the same
// callers: its error is for the log only. It is nil if no request needs a credential, and panics as New does.
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
		return core.Principal{Name: from.grant.Name, Rights: from.grant}, nil
	}
}
