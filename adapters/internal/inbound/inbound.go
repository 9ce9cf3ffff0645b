// Package inbound is what a host of webhooks and what reads them know of each other: adapters/http serves the path, adapters/hooks knows the senders.
package inbound

import (
	"context"
	"net/http"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Hooks are the hooks of a host. They are used by many goroutines at once. The path value "name" of a request says which hook it is for.
type Hooks interface {
	// Verify returns what the hook may do, if the request was sent by its service, with a body of at most so many bytes, which can be read
	// again. Its errors are answered as they are.
	Verify(r *http.Request, now time.Time, most int64) (*Rights, error)
	// Read says what a request asks for that Verify has accepted. It calls no store.
	Read(r *http.Request, now time.Time) (Delivery, error)
}

// Rights are what a hook may do: send signals to agents and submit tasks for them, and never approve.
type Rights struct {
	Name             string   // of the hook as a caller
	Agents, Patterns []string // ids, and beginnings of ids and a *; both nil for all agents
}

// Delivery is what a hook makes of a request. It is carried out once.
type Delivery struct {
	ID    string      // of the message, the same at each delivery
	Until time.Time   // when it is forgotten
	Asks  core.Access // what it needs
	// Do carries it out; nil if the hook ignores such messages.
	Do func(ctx context.Context, s *core.Scheduler) (Made, error)
}

// Made is what a delivery has made: either of the two.
type Made struct {
	Signal *model.Signalled
	Tasks  []core.Submitted
}
