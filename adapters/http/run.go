package http

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// shortestPull is what a request has left of its time at least when it has waited for others.
const shortestPull = time.Second

// runDue runs what is due. Handlers that fail are part of the report, not an error of the call.
func (a *api) runDue(r *http.Request) (int, any, error) {
	scope, err := a.scope(r)
	if err != nil {
		return 0, nil, err
	}
	if scope.Agents == nil {
		err = allowAll(r)
	} else {
		err = allow(r, scope.Agents...)
	}
	if err != nil {
		return 0, nil, err
	}
	return a.run(r.Context(), scope)
}

// runCron is runDue for all agents, for hosts whose cron service sends a GET.
func (a *api) runCron(r *http.Request) (int, any, error) {
	return a.run(r.Context(), core.Scope{MaxDuration: a.config.MaxTimeout})
}

// run runs what is due. While the same is under way, all requests for it wait and share one pull after that: it takes what
// has fallen due meanwhile, and most often finds nothing. What a request has waited is taken from its time.
func (a *api) run(ctx context.Context, scope core.Scope) (int, any, error) {
	key, begun := flightKey(scope), a.config.Clock.Now()
	report, err := a.flights.do(ctx, key, func() (core.Report, error) {
		if waited := a.config.Clock.Now().Sub(begun); waited > 0 && scope.MaxDuration > 0 {
			scope.MaxDuration = max(scope.MaxDuration-waited, min(scope.MaxDuration, shortestPull))
		}
		return a.scheduler.RunDue(ctx, scope)
	})
	if err != nil && core.CodeOf(err) != core.CodeRunsFailed {
		return 0, nil, err
	}
	return http.StatusOK, report, nil
}

// scope reads whose tasks to run, and how much of them.
func (a *api) scope(r *http.Request) (core.Scope, error) {
	data, err := body(r)
	if err != nil {
		return core.Scope{}, err
	}
	var agents []string
	var all bool
	var limit int
	var timeout int64
	if err := decode(data,
		field{"agent_ids", &agents, "must be a list of texts"},
		field{"all", &all, "must be true or false"},
		field{"max", &limit, "must be a whole number"},
		field{"timeout_ms", &timeout, "must be a whole number of milliseconds"},
	); err != nil {
		return core.Scope{}, err
	}
	longest := a.config.MaxTimeout.Milliseconds()
	switch {
	case agents == nil && !all:
		return core.Scope{}, &core.InvalidError{Field: "agent_ids", Reason: `is required, or "all": true`}
	case agents != nil && all:
		return core.Scope{}, &core.InvalidError{Field: "all", Reason: "excludes agent_ids"}
	case timeout > longest:
		return core.Scope{}, &core.InvalidError{Field: "timeout_ms", Reason: fmt.Sprintf("must be at most %d, not %d", longest, timeout)}
	case timeout == 0:
		timeout = longest
	}
	return core.Scope{Agents: agents, MaxTasks: limit, MaxDuration: time.Duration(max(timeout, -1)) * time.Millisecond}, nil
}
