package http

import (
	"context"
	"errors"
	"log/slog"
	"net/http"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
)

// Errors: those of this adapter, and how any is answered and logged. Codes and statuses are in internal/problem.

// Shared and never changed: an answer copies what it needs.
var (
	errUnauthorized = problem.Unauthorized("a bearer token is required: Authorization: Bearer <token>")
	errForeignHost  = problem.New(core.CodeForbidden, "the Host is neither localhost nor an IP address")
	errCrossOrigin  = problem.New(core.CodeForbidden, "the request comes from a page of another origin")
	errNoRoute      = problem.New(problem.CodeNoRoute, "no such path")
	errNotReady     = problem.New(core.CodeUnavailable, "not ready")
)

// answerer is an error that defines its own answer: one of an API whose errors are not problem details.
// They are MemOS's.
type answerer interface {
	error
	Answer() (status int, body any)
}

// refuse answers with an error, and logs it if it is one of this side.
func (a *api) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if a.calls(r) && a.config.RPC.Refuse(w, r, err) {
		return
	}
	var own answerer
	if errors.As(err, &own) { //nolint:modernize // AsType of an interface is code of its own, in every function that is deployed
		status, body := own.Answer()
		a.write(w, r, status, body)
		return
	}
	p := problem.Of(err)
	if p == problem.ErrUnavailable && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		p = problem.ErrUnread
	}
	if p.Status >= http.StatusInternalServerError {
		a.failed(r, err)
	}
	// A refused request may still send a megabyte: closing costs less than reading.
	if r.ContentLength != 0 && p.Status < http.StatusInternalServerError && p.Code != core.CodeInvalid {
		w.Header().Set("Connection", "close") // the body is not worth reading
	}
	if err := p.Write(w); err != nil {
		a.unsent(r.Context(), err)
	}
}

// failed logs why a request failed on this side.
// A client that has gone away explains most of these, and is not worth a warning.
func (a *api) failed(r *http.Request, err error) {
	if r.Context().Err() == nil {
		a.config.Logger.LogAttrs(r.Context(), slog.LevelWarn, "a request failed",
			slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Any("err", err))
	}
}

// unsent logs that an answer did not reach the client, which is most often because the client went away.
func (a *api) unsent(ctx context.Context, err error) {
	a.config.Logger.LogAttrs(ctx, slog.LevelDebug, "an answer could not be sent", slog.Any("err", err))
}
