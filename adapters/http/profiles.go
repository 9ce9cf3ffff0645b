package http

import (
	"fmt"
	"net/http"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/adapters/internal/requestbody"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/operate"
)

// Agents: their profiles are read, set and deleted, and they are forgotten, by callers that may act for them.

// profile answers with the profile of an agent.
func (a *api) profile(r *http.Request) (int, any, error) {
	if _, err := query(r); err != nil {
		return 0, nil, err
	}
	p, err := a.scheduler.Profile(r.Context(), r.PathValue("agent"))
	if core.CodeOf(err) == core.CodeNotFound {
		return 0, nil, noProfile(r)
	}
	return http.StatusOK, p, err
}

// profiles answers with a page of the profiles of all agents.
func (a *api) profiles(r *http.Request) (int, any, error) {
	limit, cursor, err := a.pageOfAll(r)
	if err != nil {
		return 0, nil, err
	}
	profiles, next, err := a.config.Profiles(r.Context(), cursor, limit)
	if profiles == nil {
		profiles = []core.Profile{}
	}
	return http.StatusOK, struct {
		Profiles []core.Profile `json:"profiles"`
		Next     string         `json:"next_cursor"`
	}{profiles, next}, err
}

func noProfile(r *http.Request) error {
	return problem.New(core.CodeNotFound, fmt.Sprintf("agent %q has no profile", r.PathValue("agent")))
}

// setProfile sets the profile of an agent as a whole, and answers with it when all tasks of the agent are planned by it. Sent again it
// changes nothing.
func (a *api) setProfile(r *http.Request) (int, any, error) {
	data, err := requestbody.JSON(r)
	if err != nil {
		return 0, nil, err
	}
	var p core.Profile
	if err := p.Read(data); err != nil {
		return 0, nil, err
	}
	agent := r.PathValue("agent")
	if p.Agent != "" && p.Agent != agent {
		return 0, nil, &core.InvalidError{Field: "agent_id", Reason: fmt.Sprintf("is %q, and the path names %q: leave it out", p.Agent, agent)}
	}
	p.Agent = agent
	set, err := a.scheduler.SetProfile(r.Context(), p)
	return http.StatusOK, set, err
}

// deleteProfile deletes the profile of an agent.
func (a *api) deleteProfile(r *http.Request) (int, any, error) {
	err := noBody(r)
	if err == nil {
		_, err = query(r)
	}
	if err == nil {
		err = a.scheduler.DeleteProfile(r.Context(), r.PathValue("agent"))
	}
	if core.CodeOf(err) == core.CodeNotFound {
		return 0, nil, noProfile(r)
	}
	return http.StatusOK, struct {
		Agent   string `json:"agent_id"`
		Deleted bool   `json:"deleted"`
	}{r.PathValue("agent"), true}, err
}

// forget deletes all of an agent, or counts it. An agent of which nothing is known has nothing to be deleted.
func (a *api) forget(r *http.Request) (int, any, error) {
	err := noBody(r)
	q, wrong := query(r, "dry_run")
	if err == nil {
		err = wrong
	}
	dry := q.Get("dry_run")
	if err == nil && dry != "" && dry != "true" && dry != "false" {
		err = &core.InvalidError{Field: "dry_run", Reason: fmt.Sprintf("must be true or false, not %q", dry)}
	}
	if err != nil {
		return 0, nil, err
	}
	var done operate.Forgotten
	if agent := r.PathValue("agent"); dry == "true" {
		done, err = a.scheduler.CountForget(r.Context(), agent)
	} else {
		done, err = a.scheduler.Forget(r.Context(), agent, nil)
	}
	return http.StatusOK, struct {
		operate.Forgotten

		Agent string `json:"agent_id"`
		Dry   bool   `json:"dry_run"`
	}{done, r.PathValue("agent"), dry == "true"}, err
}
