package http

import (
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// problem is an error as it is answered: the problem details of RFC 9457, with a code that programs act on and, for an
// invalid request, the field that is wrong.
type problem struct {
	Type   string    `json:"type"`
	Title  string    `json:"title"`
	Status int       `json:"status"`
	Detail string    `json:"detail"`
	Code   core.Code `json:"code"`
	Field  string    `json:"field,omitempty"`

	allow      []string      // 405: the methods there are
	retryAfter time.Duration // 429: when to try again
}

// Error is the detail.
func (p *problem) Error() string { return p.Detail }

// The codes of errors that only HTTP has.
const (
	codeUnauthorized core.Code = "unauthorized"
	codeForbidden    core.Code = "forbidden"
	codeNoRoute      core.Code = "no_route"
	codeMethod       core.Code = "method_not_allowed"
	codeTooLarge     core.Code = "too_large"
	codeMediaType    core.Code = "unsupported_media_type"
	codeTooMany      core.Code = "too_many_requests"
)

// statuses is the one table of codes and statuses.
var statuses = map[core.Code]int{
	core.CodeInvalid:     http.StatusBadRequest,
	core.CodeNotFound:    http.StatusNotFound,
	core.CodeLimit:       http.StatusConflict,
	core.CodeConflict:    http.StatusConflict,
	core.CodeDisabled:    http.StatusConflict,
	core.CodeLeaseLost:   http.StatusConflict,
	core.CodeUnavailable: http.StatusServiceUnavailable,
	core.CodeStoreFull:   http.StatusServiceUnavailable,
	core.CodeAbandoned:   http.StatusServiceUnavailable,
	core.CodeInternal:    http.StatusInternalServerError,

	codeUnauthorized: http.StatusUnauthorized,
	codeForbidden:    http.StatusForbidden,
	codeNoRoute:      http.StatusNotFound,
	codeMethod:       http.StatusMethodNotAllowed,
	codeTooLarge:     http.StatusRequestEntityTooLarge,
	codeMediaType:    http.StatusUnsupportedMediaType,
	codeTooMany:      http.StatusTooManyRequests,
}

func newProblem(code core.Code, detail string) *problem {
	status := statuses[code]
	return &problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Code: code}
}

var (
	errUnauthorized = newProblem(codeUnauthorized, "a bearer token is required: Authorization: Bearer <token>")
	errForeignHost  = newProblem(codeForbidden, "the Host is neither localhost nor an IP address")
	errCrossOrigin  = newProblem(codeForbidden, "the request comes from a page of another origin")
	errNoRoute      = newProblem(codeNoRoute, "no such path")
	errMediaType    = newProblem(codeMediaType, "the body must be application/json")
	errPanicked     = newProblem(core.CodeInternal, "internal error")
	errUnavailable  = newProblem(core.CodeUnavailable, "Redis is unavailable; the request may have been stored. Retry it with the same id.")
	errCutOff       = newProblem(core.CodeUnavailable, "the request was cut off before it ran anything: retry it")
	errNotReady     = newProblem(core.CodeUnavailable, "not ready")
)

func methodError(allow []string) *problem {
	p := newProblem(codeMethod, "the path has only "+strings.Join(allow, ", "))
	p.allow = allow
	return p
}

// problemOf is how an error is answered. What went wrong inside is not told to the outside.
func problemOf(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	switch code := core.CodeOf(err); code {
	case core.CodeUnavailable:
		return errUnavailable
	case core.CodeInternal, core.CodeRunsFailed:
		return errPanicked
	default:
		p := newProblem(code, err.Error())
		if inv, ok := errors.AsType[*core.InvalidError](err); ok {
			p.Field = inv.Field
		}
		return p
	}
}

// refuse answers with an error, and logs it if it is one of this side.
func (a *api) refuse(w http.ResponseWriter, r *http.Request, err error) {
	if e, ok := errors.AsType[*refusal](err); ok {
		a.write(w, r, e.Code, "application/json", e.envelope)
		return
	}
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError {
		a.failed(r, err)
	}
	if p == errUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if p.allow != nil {
		w.Header().Set("Allow", strings.Join(p.allow, ", "))
	}
	if p.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(p.retryAfter.Seconds())))
	}
	if r.ContentLength != 0 && p.Status < http.StatusInternalServerError && p.Code != core.CodeInvalid {
		w.Header().Set("Connection", "close") // the body is not worth reading
	}
	a.write(w, r, p.Status, "application/problem+json", p)
}

// failed logs why a request failed on this side.
func (a *api) failed(r *http.Request, err error) {
	if r.Context().Err() == nil {
		a.config.Logger.LogAttrs(r.Context(), slog.LevelWarn, "a request failed",
			slog.String("method", r.Method), slog.String("path", r.URL.Path), slog.Any("err", err))
	}
}
