package http

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/adapters/internal/requestbody"
	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
	"github.com/seed-6f6f2c11/duly/adapters/internal/trigger"
	"github.com/seed-6f6f2c11/duly/core"
)

// POST /v1/run-due. Who shares a pull is decided in core; here a request becomes a scope, and a report an answer.

// runDue runs what is due. Handlers that fail and partitions that are away are part of the report, not an error of the call.
func (a *api) runDue(r *http.Request, scope core.Scope) (core.Report, error) {
	// The agents of the request decide what the grant has to cover.
	err := a.allow(r.Context(), scope.Agents...)
	if scope.Agents == nil {
		err = a.allowAll(r.Context())
	}
	if err != nil {
		return core.Report{}, err
	}
	return a.run(r.Context(), scope)
}

// runCron is runDue for all agents that its credential is for, for hosts whose cron service sends a GET: that has no body to name agents in.
func (a *api) runCron(r *http.Request, _ operation.None) (core.Report, error) {
	return a.runDue(r, core.Scope{Agents: callerOf(r.Context()).grant.Agents, MaxDuration: a.config.MaxTimeout})
}

// run runs what is due and translates the end of a pull: a pull that a host cut off before anything ran must not read as "nothing is
// due". When the server is about to shut down nothing more is claimed, and runs under way have their grace.
func (a *api) run(ctx context.Context, scope core.Scope) (core.Report, error) {
	ctx, end := a.untilStopping(ctx)
	defer end()
	scope.Grace = a.config.Grace
	// Requests that ask for the same share one pull, as several senders may fire at the same minute.
	report, err := a.scheduler.RunShared(ctx, scope)
	_, partly := errors.AsType[*core.AwayError](err) // the report names them, along with the work that was done
	if err != nil && !partly && core.CodeOf(err) != core.CodeRunsFailed {
		return core.Report{}, err
	}
	if ctx.Err() != nil && report.Ran == 0 && report.More { // it did nothing, and knows nothing
		return core.Report{}, problem.ErrCutOff
	}
	return report, nil
}

// untilStopping is a context that is done as well when the server is about to shut down. The request's own context would not be:
// a server that shuts down waits for its requests, and would wait for a pull that claims more and more.
func (a *api) untilStopping(ctx context.Context) (context.Context, context.CancelFunc) {
	// It ends with the request in any case.
	ctx, end := context.WithCancel(ctx)
	select {
	case <-a.config.Stopping:
		end()
	default:
		// The goroutine ends with the context, which the caller ends when it has answered.
		go func() {
			select {
			case <-a.config.Stopping:
				end()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, end
}

// scope reads whose tasks to run, and how much of them.
func (a *api) scope(r *http.Request) (core.Scope, error) {
	data, err := requestbody.JSON(r)
	if err != nil {
		return core.Scope{}, err
	}
	o, err := strictjson.Parse("body", data)
	if err != nil {
		return core.Scope{}, err
	}
	scope, err := trigger.ReadScope(o)
	if err != nil {
		return core.Scope{}, err
	}
	// A client cannot make the server work for longer than its own limit.
	switch longest := a.config.MaxTimeout; {
	case scope.MaxDuration > longest:
		return core.Scope{}, &core.InvalidError{Field: "timeout_ms", Reason: fmt.Sprintf("must be at most %d", longest.Milliseconds())}
	case scope.MaxDuration == 0:
		scope.MaxDuration = longest
	}
	return scope, nil
}
