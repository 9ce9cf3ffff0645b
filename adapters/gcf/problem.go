package gcf

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/seed-6f6f2c11/duly/adapters/internal/trigger"
	"github.com/seed-6f6f2c11/duly/core"
)

// problem is an error of the function's own, as it is told.
type problem struct {
	status       int
	code, detail string
}

// Error is the detail.
func (p *problem) Error() string { return p.detail }

var (
	errUnauthorized = &problem{http.StatusUnauthorized, "unauthorized", "the request does not come from a caller that is allowed"}
	errNoRoute      = &problem{http.StatusNotFound, "no_route", "this function serves no other HTTP requests"}
	errTooLarge     = &problem{http.StatusRequestEntityTooLarge, "too_large", "the body is too large"}
	errBroken       = &problem{http.StatusBadRequest, "invalid", "the body cannot be read: it ends early or is badly framed"}
	errDraining     = &problem{http.StatusServiceUnavailable, "draining", "this instance is about to end: try again"}
)

// partly is a tick that was done except for partitions of the store that are away.
type partly struct {
	report core.Report
	away   *core.AwayError
}

// Error names the partitions.
func (p *partly) Error() string { return p.away.Error() }

// final reports whether an error is one of a message, which no repeat can mend.
func final(err error) bool { return errors.Is(err, errTooLarge) || trigger.Final(err) }

// statusOf is the status of an answer to a sender that repeats whatever is not acknowledged.
func (f *Function) statusOf(err error) int {
	if final(err) && !f.config.DeadLetter {
		return http.StatusOK
	}
	return status(err)
}

// status is the HTTP status of an error.
func status(err error) int {
	if p, ok := errors.AsType[*problem](err); ok {
		return p.status
	}
	switch core.CodeOf(err) {
	case core.CodeInvalid:
		return http.StatusBadRequest
	case core.CodeDisabled, core.CodeConflict:
		return http.StatusConflict
	case core.CodeLimit:
		return http.StatusTooManyRequests
	default: // the store, or the time
		return http.StatusServiceUnavailable
	}
}

// writeProblem answers with an error. What the store says is for the log.
func writeProblem(w http.ResponseWriter, err error) {
	at, code, detail := status(err), string(core.CodeOf(err)), trigger.Clip(err.Error(), trigger.MaxError)
	body := map[string]any{"type": "about:blank", "title": http.StatusText(at), "status": at}
	if p, ok := errors.AsType[*problem](err); ok {
		code = p.code
	} else if p, ok := errors.AsType[*partly](err); ok {
		code, detail = string(core.CodeUnavailable), fmt.Sprintf("partitions %v of the store do not answer; the others were served", p.away.Partitions)
		body["report"] = p.report
	} else if at == http.StatusServiceUnavailable && code != string(core.CodeAbandoned) {
		detail = "the store cannot be used now: try again"
	}
	body["code"], body["detail"] = code, detail
	w.Header().Set("Content-Type", "application/problem+json")
	write(w, at, body)
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	write(w, status, body)
}

func write(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil { // of values that are ours
		status, data = http.StatusInternalServerError, []byte(`{"code":"internal"}`)
	}
	data = append(data, '\n')
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(data)
}
