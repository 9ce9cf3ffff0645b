package http

// Pages of questions on hosts whose own address asks for a signature, which no mail has.

import (
	"log/slog"
	"net/http"

	"github.com/seed-6f6f2c11/duly/core"
)

// Handler serves the pages of questions, and nothing else: for a public function or service that people reach by an address in a mail, in addition to
// another one, or another address of it, that only the host's own callers can reach. logger may be nil.
func (a *Approvals) Handler(s *core.Scheduler, logger *slog.Logger) http.Handler {
	return New(s, Config{Approvals: a, Verifiers: []Verifier{nobody{}}, Logger: logger})
}

// nobody accepts no credential.
type nobody struct{}

// Verify accepts none.
func (nobody) Verify(*http.Request) (*Grant, error) { return nil, ErrNoCredential }
