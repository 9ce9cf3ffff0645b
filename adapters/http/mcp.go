package http

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

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
	q, err := query(r, "agent", "scopes")
	agent := q.Get("agent")
	grant := callerOf(r.Context()).grant
	if agent == "" && len(grant.Agents) == 1 && len(grant.Patterns) == 0 {
		agent = grant.Agents[0]
	}
	if agent = cmp.Or(agent, a.config.MCP.DefaultAgent()); err == nil && agent == "" {
		err = &core.InvalidError{Field: "agent", Reason: "is required, as the credential is not for a single agent: call " + PathMCP + "?agent=ID"}
	}
	ctx := r.Context()
	if err == nil {
		ctx, err = a.inRun(r)
	}
	if err == nil {
		ctx, err = within(ctx, agent, q.Get("scopes"))
	}
	// Any of the tools needs one of these: a caller that has none learns nothing of the server.
	if err == nil && a.scheduler.Authorize(ctx, core.Access{Action: model.ActionRead, Agent: agent}) != nil {
		err = a.scheduler.Authorize(ctx, core.Access{Action: model.ActionSubmit, Agent: agent})
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	a.config.MCP.ServeAgent(w, r.WithContext(ctx), agent)
}

// ModelScopes are the scopes that a model may have. Those of workers and clocks are for no model.
func ModelScopes() []Scope { return []Scope{ScopeRead, ScopeWrite, ScopeApprove} }

// within bounds a caller to its agent and to some scopes: those of its model, which may have fewer than its credential, or than a process that requires none.
func within(ctx context.Context, agent, scopes string) (context.Context, error) {
	if scopes == "" {
		return ctx, nil
	}
	bound := &Grant{Name: "mcp", Agents: []string{agent}}
	for scope := range strings.SplitSeq(scopes, ",") {
		if !slices.Contains(ModelScopes(), Scope(scope)) {
			return nil, &core.InvalidError{Field: "scopes", Reason: "must be some of read, write and approve, with commas between them"}
		}
		bound.Scopes = append(bound.Scopes, Scope(scope))
	}
	who := core.Principal{Name: bound.Name, Rights: bound}
	if of := model.PrincipalOf(ctx); of != nil {
		who = *of
		who.Rights = model.AuthorizerFunc(func(ctx context.Context, as core.Principal, what core.Access) error {
			// guard: mcp-scopes
			if err := bound.Authorize(ctx, as, what); err != nil {
				return err
			}
			if of.Rights == nil {
				return nil
			}
			return of.Rights.Authorize(ctx, as, what)
		})
	}
	return core.WithPrincipal(ctx, who), nil
}
