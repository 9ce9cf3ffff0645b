// Package problem turns errors into HTTP answers: it has the one table of codes and statuses, and the one writer of problem
// details (RFC 9457) for all hosts that answer HTTP, so that a client gets the same error from each of them.
package problem

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/breaker"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// The codes of errors that only a host has; those of core are [core.Code]'s.
const (
	CodeUnauthorized core.Code = "unauthorized"           // the request has no credential that is valid
	CodeNoRoute      core.Code = "no_route"               // there is no such path
	CodeMethod       core.Code = "method_not_allowed"     // the path is not called with this method
	CodeTooLarge     core.Code = "too_large"              // the request, or the answer to it, has too many bytes
	CodeMediaType    core.Code = "unsupported_media_type" // the body is not said to be JSON
	CodeTooMany      core.Code = "too_many_requests"      // the process has as many requests under way as it takes
	CodeDraining     core.Code = "draining"               // the process is ending
)

// statuses is the one table of codes and statuses. A client that knows nothing but statuses
// does the right thing by it: a 4xx other than 429 says that the same request fails again,
// 429 and 5xx that it may succeed later. It is an array, which costs a function's cold
// start nothing; a map would be filled by code.
var statuses = [...]struct {
	code   core.Code
	status int
}{
	{core.CodeInvalid, http.StatusBadRequest},
	{core.CodeNotFound, http.StatusNotFound},
	{core.CodeLimit, http.StatusTooManyRequests},          // it ends by itself, as the tasks of the agent finish
	{core.CodeQuota, http.StatusTooManyRequests},          // the same; 403 for what the quota never allows
	{core.CodeSpawnRate, http.StatusTooManyRequests},      // it ends by itself, within an hour
	{core.CodeSpawnDepth, http.StatusUnprocessableEntity}, // it never does
	{core.CodeConflict, http.StatusConflict},
	{core.CodeDisabled, http.StatusConflict},
	{core.CodeLeaseLost, http.StatusConflict},
	{core.CodeUnavailable, http.StatusServiceUnavailable},
	{core.CodeStoreFull, http.StatusServiceUnavailable},
	{core.CodeForbidden, http.StatusForbidden},
	{core.CodeAbandoned, http.StatusServiceUnavailable},
	{core.CodeInternal, http.StatusInternalServerError},
	{core.CodeRunsFailed, http.StatusInternalServerError}, // a report names the runs; as an error it is a fault of the host

	{CodeUnauthorized, http.StatusUnauthorized},
	{CodeNoRoute, http.StatusNotFound},
	{CodeMethod, http.StatusMethodNotAllowed},
	{CodeTooLarge, http.StatusRequestEntityTooLarge},
	{CodeMediaType, http.StatusUnsupportedMediaType},
	{CodeTooMany, http.StatusTooManyRequests},
	{CodeDraining, http.StatusServiceUnavailable},
}

// Status is the HTTP status of a code: 500 for one that the table does not have.
// A code that is missing is a mistake of ours, and no client can mend it.
func Status(code core.Code) int {
	for _, s := range statuses {
		if s.code == code {
			return s.status
		}
	}
	return http.StatusInternalServerError
}

// Error is an error as a host answers it. It is an error itself, so that the layers of a host can return it. It must not be
// changed once it is shared.
// Its fields are those of RFC 9457, and below them those of duly.
type Error struct {
	Type   string    `json:"type"`
	Title  string    `json:"title"`
	Status int       `json:"status"`
	Detail string    `json:"detail"`
	Code   core.Code `json:"code"`            // what programs act on
	Field  string    `json:"field,omitempty"` // which field of an invalid request is wrong
	Quota  *Quota    `json:"quota,omitempty"` // which quota refuses the request
	// Report is what the pull did in spite of the error.
	Report *core.Report `json:"report,omitempty"`
	// Header is sent with the answer.
	Header http.Header `json:"-"`
}

// Quota is the part of an agent's quota that refuses a task, and how much of it is left.
type Quota struct {
	Name  string `json:"name"`
	Agent string `json:"agent_id"`
	Limit int    `json:"limit,omitempty"` // of those that are counted
	Used  int    `json:"used,omitempty"`
	Left  int    `json:"left"`
}

// New is a problem with the status of its code.
func New(code core.Code, detail string) *Error {
	return withStatus(Status(code), code, detail)
}

// withStatus is New for the few problems whose status differs from their code's.
func withStatus(status int, code core.Code, detail string) *Error {
	return &Error{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail, Code: code}
}

// Unauthorized is a problem that asks for a bearer token.
func Unauthorized(detail string) *Error {
	p := New(CodeUnauthorized, detail)
	p.Header = http.Header{"Www-Authenticate": {"Bearer"}}
	return p
}

// Method is a problem of a path that has other methods only.
// The header Allow is demanded by HTTP for this status.
func Method(allowed []string) *Error {
	list := strings.Join(allowed, ", ")
	p := New(CodeMethod, "method not allowed; allowed: "+list)
	p.Header = http.Header{"Allow": {list}}
	return p
}

// TooMany is a problem of a request that may be sent again after a time.
// Retry-After is in whole seconds.
func TooMany(detail string, after time.Duration) *Error {
	p := New(CodeTooMany, detail)
	p.Header = http.Header{"Retry-After": {strconv.Itoa(int(after.Seconds()))}}
	return p
}

// AnswerTooLarge is a problem of an answer, not of a request: it has the code for a large body, and a status that says that the
// fault is the server's.
func AnswerTooLarge(detail string) *Error {
	return withStatus(http.StatusInternalServerError, CodeTooLarge, detail)
}

// Error is the detail.
func (p *Error) Error() string { return p.Detail }

// The problems whose details hide what happened: that is for the log.
// All requests share them: they must not be changed.
var (
	ErrInternal    = New(core.CodeInternal, "internal error")
	ErrUnavailable = New(core.CodeUnavailable, "Redis is unavailable; the request may have been stored. Retry it with the same id.")
)

// ErrUnread is [ErrUnavailable] for a request that only reads: nothing can have been stored.
var ErrUnread = New(core.CodeUnavailable, "Redis is unavailable; nothing was read. Try again.")

// ErrCutOff is the problem of a request that ended before anything was done for it. It must not read as if nothing were due.
var ErrCutOff = New(core.CodeUnavailable, "the request was cut off before it ran anything; retry it")

// OfSubmit adds to the error of a submit, if its outcome is not known and some of the tasks have no ids, what a retry may do then,
// and how they get ids: with them a retry changes nothing more. It returns any other error unchanged.
func OfSubmit(err error, tasks []core.NewTask, how string) error {
	// A unique key makes an id, and is as good as one.
	nameless := slices.ContainsFunc(tasks, func(t core.NewTask) bool { return t.ID == "" && t.UniqueKey == "" })
	if core.CodeOf(err) != core.CodeUnavailable || !nameless {
		return err
	}
	return errors.Join(New(core.CodeUnavailable, "Redis is unavailable; the request may have been stored, and a retry may create "+
		"tasks without an id a second time: "+how), err)
}

// Of is how a host answers an error. A problem stays what it is, an error of the caller's input says what to change, and what
// went wrong inside is never sent to the client.
// The code is what callers act on; the text is for people, and may change.
func Of(err error) *Error {
	if p, ok := errors.AsType[*Error](err); ok {
		return p
	}
	switch code := core.CodeOf(err); code {
	case core.CodeUnavailable:
		return ErrUnavailable
	case core.CodeInternal, core.CodeRunsFailed, "":
		return ErrInternal
	default:
		p := New(code, err.Error())
		if inv, ok := errors.AsType[*core.InvalidError](err); ok {
			p.Field = inv.Field
		}
		return p.bounded(err)
	}
}

// bounded adds to a problem what a breaker or a quota says: which it is, how much is left, and when there is room again.
func (p *Error) bounded(err error) *Error {
	var until moment.Millis
	if broken, ok := errors.AsType[*breaker.Error](err); ok {
		until = broken.Until
		if broken.Quota && broken.Depth > 0 {
			p = withStatus(http.StatusForbidden, p.Code, p.Detail)
			p.Quota = &Quota{Name: "depth", Agent: broken.Agent, Limit: broken.Limit, Used: broken.Limit}
		} else if broken.Quota {
			p.Quota = &Quota{Name: "spawned", Agent: broken.Agent, Limit: broken.Limit, Used: broken.Limit}
		}
	}
	if full, ok := errors.AsType[*store.LimitError](err); ok && full.Quota != "" {
		until = full.Until
		if full.Field != "" {
			p = withStatus(http.StatusForbidden, p.Code, p.Detail)
			p.Field = full.Field
		}
		p.Quota = &Quota{Name: full.Quota, Agent: full.Agent, Limit: full.Limit, Used: full.Used, Left: max(full.Limit-full.Used, 0)}
	}
	if until != 0 {
		// As a date: what it is in seconds depends on whose clock it is.
		at := until.Time().Add(time.Second - time.Nanosecond).Truncate(time.Second)
		p.Header = http.Header{"Retry-After": {at.UTC().Format(http.TimeFormat)}}
	}
	return p
}

// Write answers with the problem. The error is one of sending it.
func (p *Error) Write(w http.ResponseWriter) error {
	data, err := json.Marshal(p)
	if err != nil { // a report that cannot be encoded: strings and numbers can
		return err
	}
	// The problem's own headers go first, so that they cannot replace those below.
	maps.Copy(w.Header(), p.Header)
	data = append(data, '\n')
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(p.Status)
	_, err = w.Write(data)
	return err
}
