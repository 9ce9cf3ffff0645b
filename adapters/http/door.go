package http

import (
	"crypto/sha256"
	"net/http"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/http/memos"
	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/adapters/internal/door"
	"github.com/seed-6f6f2c11/duly/adapters/internal/waits"
)

// The mount of other runtimes' APIs: their routes in our table, and the interface that they need from their host.

// Door is the API of another runtime that a handler mounts, such as that of package langgraph.
type Door = door.Door

// memos are the routes of MemOS' API.
func (a *api) memos() []route {
	return mounted(memos.Routes(a.scheduler, &host{a: a}, memos.Config{
		Clock: a.config.Clock, MaxWaits: a.config.MaxWaits, Waits: &a.waits, Stopping: a.config.Stopping,
	}))
}

// doors are the routes of the APIs that the configuration mounts.
func doors(a *api) (table []route) {
	for _, d := range a.config.Doors {
		table = append(table, mounted(d.Routes(a.scheduler, &host{a: a}))...)
	}
	return table
}

// mounted are the routes of another API. They are mounted as routes of our own, so that admission, limits and
// logging are the same for all APIs.
func mounted(routes []door.Route) []route {
	var table []route
	for _, m := range routes {
		rt := route{
			Call:   operation.Call{Method: m.Method, Path: m.Path, NoHead: m.Endless, Submits: m.Submits, Open: m.Open, Asks: m.Asks},
			answer: m.Respond, stream: m.Stream, keyHeader: m.KeyHeader,
		}
		if m.Reads {
			rt.Needs = ScopeRead
		}
		table = append(table, rt)
	}
	return table
}

// host is the API as the one that it mounts sees it. It does not embed it: all methods would be the host's too, and a function's
// cold start loads each.
type host struct{ a *api }

// A method that a door needs and the host lacks shows here.
var _ door.Host = (*host)(nil)

// Allow refuses agents that the grant of a request does not cover.
func (h *host) Allow(r *http.Request, agents ...string) error {
	return h.a.allow(r.Context(), agents...)
}

// AllowAll refuses calls about all agents to a grant for some.
func (h *host) AllowAll(r *http.Request) error { return h.a.allowAll(r.Context()) }

// Caller is the credential of a request.
func (*host) Caller(r *http.Request) [sha256.Size]byte { return callerOf(r.Context()).credential }

// Answer sends JSON.
func (h *host) Answer(w http.ResponseWriter, r *http.Request, status int, body any) {
	h.a.write(w, r, status, body)
}

// Refuse sends an error.
func (h *host) Refuse(w http.ResponseWriter, r *http.Request, err error) { h.a.refuse(w, r, err) }

// Failed logs an error of this side.
func (h *host) Failed(r *http.Request, err error) { h.a.failed(r, err) }

// Wait looks again and again, within what a caller may wait, and no longer than any request.
func (h *host) Wait(r *http.Request, longest time.Duration, look func() bool) {
	c := &h.a.config
	leave, err := h.a.waits.Enter(h.Caller(r), c.MaxWaits)
	if err != nil {
		return
	}
	defer leave()
	waits.Until(r.Context(), c.Clock, c.Stopping, min(longest, c.MaxTimeout), look)
}
