package http

// Pages of questions on hosts whose own address asks for a signature, which no mail has.

import (
	"log/slog"
	"net/http"

	"github.com/seed-6f6f2c11/duly/core"
)

// Handler serves the pages of questions, and nothing else: for a function or a service that anybody may reach by an address in a mail, beside
// another one, or another address of it, that the host lets its own callers in to only. logger may be nil.
func (a *Approvals) Handler(s *core.Scheduler, logger *slog.Logger) http.Handler {
	return New(s, Config{Approvals: a, Verifiers: []Verifier{nobody{}}, Logger: logger})
}

// nobody has no credential that is accepted.
type nobody struct{}

// Verify accepts none.
func (nobody) Verify(*http.Request) (*Grant, error) { return nil, ErrNoCredential }
