package http

import (
	"net/http"
	"slices"
	"strings"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
)

// The mount of gRPC: its services as routes in our table. Their code is in package rpc, so that a function does not load it.

// RPC answers calls of gRPC, gRPC-Web and Connect. It asks the scheduler whether the principal in the context of a request may do
// what the call is for.
type RPC interface {
	http.Handler
	// Services are the first segments of its paths.
	Services() []string
	// Workers mounts what workers call, which needs [ScopeWork], and returns the first segment of its paths.
	Workers(w operation.Workers) (service string, calls http.Handler)
	// Refuse answers a call that is not let in, as its protocol wants it. It reports whether it has: the request may be no call.
	Refuse(w http.ResponseWriter, r *http.Request, err error) bool
}

// rpc are the routes of its services.
func (a *api) rpc(work operation.Workers) []route {
	if a.config.RPC == nil {
		return nil
	}
	a.services = a.config.RPC.Services()
	var table []route
	for _, service := range a.services {
		table = append(table, route{Call: operation.Call{Method: http.MethodPost, Path: "/" + service + "/{call}", Asks: true}, stream: a.config.RPC.ServeHTTP})
	}
	service, calls := a.config.RPC.Workers(work)
	a.services = append(a.services, service)
	of := operation.Call{Method: http.MethodPost, Path: "/" + service + "/{call}", Needs: ScopeWork, Long: true}
	return append(table, route{Call: of, stream: calls.ServeHTTP})
}

// calls reports whether a request is one of its calls, by its path.
func (a *api) calls(r *http.Request) bool {
	if r.Method != http.MethodPost {
		return false
	}
	service, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	return slices.Contains(a.services, service)
}
