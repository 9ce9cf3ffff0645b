package http

import (
	"fmt"
	"net/http"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/adapters/internal/requestbody"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Limits over all processes: an operator's calls, for callers that may touch all agents.

// limits answers with all limits: there are few, so that one page has them.
func (a *api) limits(r *http.Request) (int, any, error) {
	_, err := query(r)
	if err == nil {
		err = a.allowAll(r)
	}
	if err != nil {
		return 0, nil, err
	}
	limits, err := a.scheduler.Limits(r.Context())
	if limits == nil {
		limits = []store.LimitUse{}
	}
	return http.StatusOK, struct {
		Limits []store.LimitUse `json:"limits"`
	}{limits}, err
}

// setLimit sets one limit as a whole, and answers with its new state. Sent again it changes nothing.
func (a *api) setLimit(r *http.Request) (int, any, error) {
	data, err := requestbody.JSON(r)
	if err != nil {
		return 0, nil, err
	}
	l, err := core.ReadLimit(data)
	if err == nil {
		err = a.allowAll(r)
	}
	if err == nil {
		err = a.scheduler.SetLimits(r.Context(), l)
	}
	if err != nil {
		return 0, nil, err
	}
	set, err := a.scheduler.LimitOn(r.Context(), l.About)
	return http.StatusOK, set, err
}

// liftLimit lifts the limit that the parameters name, and repeats its name.
func (a *api) liftLimit(r *http.Request) (int, any, error) {
	err := noBody(r)
	q, wrong := query(r, "kind", "limit_key", "each")
	if err == nil {
		err = wrong
	}
	if err == nil {
		err = a.allowAll(r)
	}
	if err != nil {
		return 0, nil, err
	}
	about := core.LimitTarget{Kind: q.Get("kind"), Key: q.Get("limit_key"), Each: store.Each(q.Get("each"))}
	if err := a.scheduler.LiftLimit(r.Context(), about); core.CodeOf(err) == core.CodeNotFound {
		return 0, nil, problem.New(core.CodeNotFound, fmt.Sprintf("no limit on %s exists: GET /v1/limits lists all limits", about))
	} else if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, struct {
		core.LimitTarget

		Deleted bool `json:"deleted"`
	}{about, true}, nil
}
