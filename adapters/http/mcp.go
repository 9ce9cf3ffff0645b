package http

import (
	"cmp"
	"net/http"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// The mount of the Model Context Protocol: one path, for the agent of the credential. Its code is in package mcp, so that a function does not load it.

// MCP answers models for one agent. It asks the scheduler whether the principal in the context of a request may do what the call is for.
type MCP interface {
	// ServeAgent answers a request for an agent.
	ServeAgent(w http.ResponseWriter, r *http.Request, agent string)
	// DefaultAgent is that of requests that name none; it may be empty.
	DefaultAgent() string
}

// PathMCP is where models call.
const PathMCP = "/mcp"

// models are its calls.
type models struct{ *api }

// routes is its route.
func (a models) routes() []route {
	if a.config.MCP == nil {
		return nil
	}
	return []route{{Call: operation.Call{Method: http.MethodPost, Path: PathMCP, Asks: true}, stream: a.serve}}
}

// serve answers a request of a model: for the one agent that its credential is for, or for the one that the address names if it is for several. What
// it submits is in the name of a run, if the request has that.
func (a models) serve(w http.ResponseWriter, r *http.Request) {
	q, err := query(r, "agent")
	agent := q.Get("agent")
	grant := callerOf(r.Context()).grant
	if agent == "" && len(grant.Agents) == 1 && len(grant.Patterns) == 0 {
		agent = grant.Agents[0]
	}
	if agent = cmp.Or(agent, a.config.MCP.DefaultAgent()); err == nil && agent == "" {
		err = &core.InvalidError{Field: "agent", Reason: "is required, as the credential is not for a single agent: call " + PathMCP + "?agent=ID"}
	}
	// Any of the tools needs one of these: a caller that has none learns nothing of the server.
	if err == nil && a.scheduler.Authorize(r.Context(), core.Access{Action: model.ActionRead, Agent: agent}) != nil {
		err = a.scheduler.Authorize(r.Context(), core.Access{Action: model.ActionSubmit, Agent: agent})
	}
	ctx := r.Context()
	if err == nil {
		ctx, err = a.inRun(r)
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.config.MCP.ServeAgent(w, r.WithContext(ctx), agent)
}
