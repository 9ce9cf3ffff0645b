package http

import (
	"net/http"

	"github.com/seed-6f6f2c11/duly/adapters/http/memos"
	"github.com/seed-6f6f2c11/duly/core"
)

// The mount of MemOS' API: its routes in our table, and what they ask of their host.

// memos are the routes of MemOS' API.
func (a *api) memos() []route {
	var table []route
	for _, m := range memos.Routes(a.scheduler, host{a}, memos.Config{
		Clock: a.config.Clock, MaxWaits: a.config.MaxWaits, Stopping: a.config.Stopping,
	}) {
		rt := route{method: m.Method, path: m.Path, noHead: m.Endless, answer: m.Respond, stream: m.Stream}
		if m.Reads {
			rt.needs = ScopeRead
		}
		table = append(table, rt)
	}
	return table
}

// host is the API as the one that it mounts sees it.
type host struct{ *api }

var _ memos.Host = host{}

func (host) Allow(r *http.Request, agents ...string) error           { return allow(r, agents...) }
func (host) AllowTasks(r *http.Request, tasks ...core.NewTask) error { return allowTasks(r, tasks...) }
func (host) AllowAll(r *http.Request) error                          { return allowAll(r) }
func (h host) Answer(w http.ResponseWriter, r *http.Request, status int, body any) {
	h.write(w, r, status, body)
}
func (h host) Refuse(w http.ResponseWriter, r *http.Request, err error) { h.refuse(w, r, err) }
func (h host) Failed(r *http.Request, err error)                        { h.failed(r, err) }
