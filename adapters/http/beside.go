package http

// For handlers beside this one, such as pages for people: who calls them, and what happens.

import (
	"crypto/sha256"
	"fmt"
	"net/http"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
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

// Listen hands the events that a function wants to a channel, until leave is called: for a handler beside this one. who is whose share of the
// listeners it takes, such as a credential. Missed is how many events were dropped since it was last asked, as the channel was full. It fails
// with an error that has the code unavailable if too many listen.
func (e *Events) Listen(who string, wants func(e *core.Event) bool) (events <-chan core.Event, missed func() int, leave func(), err error) {
	l := &listener{grant: everything, asks: wants, queue: make(chan core.Event, eventsKept), of: sha256.Sum256([]byte(who))}
	if already := e.listen(l); already > 0 {
		return nil, nil, nil, tooMany(already)
	}
	return l.queue, func() int { return e.missed(l) }, func() { e.leave(l) }, nil
}

// tooMany is the problem of one listener too many.
func tooMany(already int) error {
	return problem.New(core.CodeUnavailable, fmt.Sprintf("%d clients are already listening; retry later", already))
}
