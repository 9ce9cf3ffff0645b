package remote

// Errors: an answer of a server as the error that core returns for the same, by its code.

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/breaker"
)

// Error is a server's refusal, or says that no server answered. core.CodeOf finds its code if core has the same one.
type Error struct {
	Code   core.Code
	Detail string // one line, for people
	Status int    // of the answer; zero if there was none
	// Away says that the server did not answer, or not in time.
	Away bool
	// Credential says that the server wants another token.
	Credential bool

	like error
}

// Error is the detail.
func (e *Error) Error() string { return e.Detail }

// Unwrap is an error of core with the same code, if core has one.
func (e *Error) Unwrap() error { return e.like }

// alike are errors of core by their codes.
func alike(code core.Code, detail string) error {
	switch code {
	case core.CodeNotFound:
		return core.ErrNotFound
	case core.CodeConflict:
		conflict := &core.ConflictError{}
		// Who it is about is only for a hint: without it the hint is left out.
		if n, _ := fmt.Sscanf(detail, "task %q of agent %q", &conflict.ID, &conflict.Agent); n == 2 {
			return conflict
		}
		return &model.SignalTakenError{}
	case core.CodeLimit:
		return &store.LimitError{}
	case core.CodeQuota:
		return &store.LimitError{Quota: "quota"}
	case core.CodeDisabled:
		return &model.DisabledError{}
	case core.CodeLeaseLost:
		return core.ErrLeaseLost
	case core.CodeStoreFull:
		return store.ErrFull
	case core.CodeForbidden:
		return &core.ForbiddenError{}
	case core.CodeAbandoned:
		return &model.AbandonedError{}
	case core.CodeSpawnDepth:
		return &breaker.Error{Depth: 1}
	case core.CodeSpawnRate:
		return &breaker.Error{}
	case core.CodeUnavailable:
		return &store.Error{Err: errors.New(detail)}
	default:
		return nil
	}
}

// mostProblem is the most bytes that are read of a refusal: it may be a page of a proxy.
const mostProblem = 64 << 10

// refusal is the error of an answer that is one.
func (c *connection) refusal(res *http.Response) error {
	var problem struct {
		Code   core.Code
		Detail string
		Field  string
	}
	err := json.NewDecoder(io.LimitReader(res.Body, mostProblem)).Decode(&problem)
	switch {
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return &Error{Code: core.CodeInternal, Detail: fmt.Sprintf("%s redirects to %q, which is not followed: name that server if you trust it", c.host, res.Header.Get("Location"))}
	case res.StatusCode == http.StatusUnauthorized:
		detail := c.host + " does not accept the token"
		if c.token == "" {
			detail = c.host + " asks for a token"
		}
		return &Error{Code: "unauthorized", Detail: detail, Status: res.StatusCode, Credential: true}
	case err != nil || problem.Code == "":
		code := core.CodeInternal
		if res.StatusCode == http.StatusBadGateway || res.StatusCode == http.StatusServiceUnavailable || res.StatusCode == http.StatusGatewayTimeout {
			code = core.CodeUnavailable // a proxy found no server behind it
		}
		return &Error{Code: code, Status: res.StatusCode, Detail: fmt.Sprintf("%s answered %s, and not as duly does: is it another program, or a proxy before a duly that is away?", c.host, res.Status)}
	case problem.Code == "no_route" || problem.Code == "method_not_allowed":
		return &Error{Code: core.CodeInternal, Detail: c.host + " does not know this call: is it an older version of duly, or is the API below another path?"}
	case problem.Code == core.CodeInvalid && problem.Field != "":
		return &core.InvalidError{Field: problem.Field, Reason: strings.TrimPrefix(problem.Detail, problem.Field+" ")}
	case problem.Code == core.CodeInvalid:
		return &Error{Code: problem.Code, Detail: problem.Detail, like: &core.InvalidError{}}
	default:
		return &Error{Code: problem.Code, Detail: problem.Detail, Status: res.StatusCode, like: alike(problem.Code, problem.Detail)}
	}
}

// unreachable is the error of a request without an answer. Its text has only the host of the address.
func (c *connection) unreachable(err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok { // it repeats the address
		err = wrapped.Err
	}
	why := err.Error()
	_, unknown := errors.AsType[*net.DNSError](err)
	_, notTLS := errors.AsType[tls.RecordHeaderError](err)
	code := core.CodeUnavailable
	_, untrusted := errors.AsType[x509.UnknownAuthorityError](err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		why = "the connection was refused"
	case unknown:
		why = "the name of its host is unknown"
	case untrusted:
		code = core.CodeInternal // it does so again
		why = "its certificate was signed by an authority that this machine does not know"
	case notTLS || strings.Contains(why, "server gave HTTP response to HTTPS client"): // which net/http has no type for
		code = core.CodeInternal
		why = "it speaks http://, not https://"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		why = "the connection was cut off; the request may have been carried out"
	}
	return &Error{Code: code, Detail: "no duly answers at " + c.host + ": " + why, Away: true}
}
