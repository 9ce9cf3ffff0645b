package http

// Hooks: requests of services that sign them in ways of their own, each of which makes a signal or a task.

import (
	"errors"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/adapters/internal/inbound"
	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/adapters/internal/requestbody"
)

// Hooks answers the webhooks of services: package adapters/hooks makes it.
type Hooks = inbound.Hooks

// hookVerifier verifies the requests of hooks.
type hookVerifier struct{ config *Config }

// Verify asks the hooks. They may send signals and submit tasks, and nothing else.
func (v hookVerifier) Verify(r *http.Request) (*Grant, error) {
	rights, err := v.config.Hooks.Verify(r, v.config.Clock.Now(), v.config.MaxBody)
	if err != nil {
		return nil, err
	}
	return &Grant{Name: rights.Name, Scopes: []Scope{ScopeWrite}, Agents: rights.Agents, Patterns: rights.Patterns}, nil
}

// hookRoute is the route of the hooks. Its requests need no other credential, and no Host of this machine: their signature proves who sends them.
func hookRoute(a *api) route {
	return route{Call: *operation.ReceiveHook.Call, verify: hookVerifier{&a.config}, anyHost: true, answer: func(r *http.Request) (int, any, error) {
		status, answer, err := deliver(a, r)
		// Its sender acts on the status at most: an operator has to read it. What fails on this side is logged as for any request.
		if refused := problem.Of(err).Status; err != nil && refused < http.StatusInternalServerError {
			a.config.Logger.LogAttrs(r.Context(), slog.LevelWarn, "a hook has refused a message",
				slog.String("hook", r.PathValue("name")), slog.Int("status", refused), slog.Any("err", err))
		}
		return status, answer, err
	}}
}

// deliver carries out a request of a hook, once over all its deliveries.
func deliver(a *api, r *http.Request) (int, any, error) {
	d, err := a.config.Hooks.Read(r, a.config.Clock.Now())
	switch {
	case err != nil:
		return 0, nil, err
	case d.Do == nil:
		return http.StatusNoContent, nil, nil
	}
	// guard: hook-rights
	if err := a.scheduler.Authorize(r.Context(), d.Asks); err != nil {
		return 0, nil, err
	}
	callerOf(r.Context()).message = Message{ID: d.ID, Until: d.Until} // of this request alone
	// The same message may have another body around it, and come by another query.
	call := operation.ReceiveHook.Call
	message := r.WithContext(r.Context())
	message.Body, message.URL = requestbody.Again(nil), &url.URL{Path: call.Path}
	return a.once(message, &route{Call: *call, answer: func(r *http.Request) (int, any, error) {
		made, err := d.Do(r.Context(), a.scheduler)
		if err != nil {
			return 0, nil, err
		}
		return answerOf(&made)
	}})
}

// answerOf is how a message is answered that has made something: as a signal, or a submit, is.
func answerOf(made *inbound.Made) (int, any, error) {
	if made.Signal != nil {
		return signalStatus(*made.Signal), made.Signal, nil
	}
	return submitStatus(made.Tasks), operation.Submitted{Tasks: made.Tasks}, nil
}

// answered reports whether an error has an answer of its own.
func answered(err error) bool {
	_, ok := errors.AsType[*problem.Error](err)
	return ok
}
