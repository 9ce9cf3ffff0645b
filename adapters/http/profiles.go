package http

import (
	"fmt"
	"net/http"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/adapters/internal/requestbody"
	"github.com/seed-6f6f2c11/duly/core"
)

// Agents: their profiles are read, set and deleted, and they are forgotten, by callers that may act for them.

// profile answers with the profile of an agent.
func (a *api) profile(r *http.Request, _ operation.Empty) (core.Profile, error) {
	p, err := a.scheduler.Profile(r.Context(), r.PathValue("agent"))
	return p, noProfile(r, err)
}

// profiles answers with a page of the profiles of all agents.
func (a *api) profiles(r *http.Request, p operation.Page) (operation.Profiles, error) {
	all, next, err := a.config.Profiles(r.Context(), p.Cursor, p.Limit)
	return operation.Profiles{Profiles: some(all), Next: next}, err
}

// noProfile names the agent that has no profile.
func noProfile(r *http.Request, err error) error {
	if core.CodeOf(err) == core.CodeNotFound {
		return problem.New(core.CodeNotFound, fmt.Sprintf("agent %q has no profile", r.PathValue("agent")))
	}
	return err
}

// readProfile reads a profile that is for the agent of the path.
func readProfile(r *http.Request) (p core.Profile, err error) {
	data, err := requestbody.JSON(r)
	if err == nil {
		err = p.Read(data)
	}
	agent := r.PathValue("agent")
	if err == nil && p.Agent != "" && p.Agent != agent {
		err = &core.InvalidError{Field: "agent_id", Reason: fmt.Sprintf("is %q, and the path names %q: leave it out", p.Agent, agent)}
	}
	p.Agent = agent
	return p, err
}

// setProfile sets the profile of an agent as a whole, and answers with it when all tasks of the agent are planned by it. Sent again it
// changes nothing.
func (a *api) setProfile(r *http.Request, p core.Profile) (core.Profile, error) {
	return a.scheduler.SetProfile(r.Context(), p)
}

// deleteProfile deletes the profile of an agent.
func (a *api) deleteProfile(r *http.Request, _ operation.Empty) (operation.DeletedProfile, error) {
	agent := r.PathValue("agent")
	return operation.DeletedProfile{Agent: agent, Deleted: true}, noProfile(r, a.scheduler.DeleteProfile(r.Context(), agent))
}

// forget deletes all of an agent, or counts it. An agent of which nothing is known has nothing to be deleted.
func (a *api) forget(r *http.Request, q operation.Forget) (out operation.Forgotten, err error) {
	out.Agent, out.Dry = r.PathValue("agent"), q.DryRun
	if q.DryRun {
		out.Forgotten, err = a.scheduler.CountForget(r.Context(), out.Agent)
	} else {
		out.Forgotten, err = a.scheduler.Forget(r.Context(), out.Agent, nil)
	}
	return out, err
}
