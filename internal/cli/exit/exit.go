// Package exit has the exit codes of the command line, and errors as programs read them. Both say what a caller may do next: the text of an error is for
// people.
package exit

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/breaker"
	"github.com/seed-6f6f2c11/duly/internal/cli/remote"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// The exit codes.
// They are part of the contract of the command line, and named in its help.
const (
	OK         = 0
	Failed     = 1 // for good: the same command fails again
	Usage      = 2 // the command line, the file or a task makes no sense; nothing was written
	NotFound   = 3 // no such task, agent or kind
	RunsFailed = 4 // the pull worked, but some handlers failed
	Away       = 5 // the store or the server is away, busy or full, or took too long: the same command may succeed later
	Forbidden  = 6 // the credential or a rule does not allow it
	Conflict   = 7 // it does not fit the state of what it is about
)

// Meaning is an exit code as programs read it.
type Meaning struct {
	Code  int    `json:"code"`
	Text  string `json:"meaning"`
	Again bool   `json:"retry"` // the same command may succeed later
}

// Meanings are those of all exit codes, in their order.
func Meanings() []Meaning {
	return []Meaning{
		{OK, "ok", false},
		{Failed, "failed for good: the same command fails again", false},
		{Usage, "the command line, the file or a task is invalid; nothing was written", false},
		{NotFound, "no such task, agent, kind or context", false},
		{RunsFailed, "the command worked, and runs have failed", false},
		{Away, "the store or the server is away, busy or full, or took too long", true},
		{Forbidden, "the credential or a rule does not allow it", false},
		{Conflict, "it does not fit the state of what it is about", false},
	}
}

// CodeFailed is the code of what a command found out by itself, such as a check of duly doctor that failed: no call has failed.
const CodeFailed core.Code = "failed"

// OfCode is the exit code for an error with a code. It follows the status that HTTP has for the same code: what 429 and 503 say to a client, that the
// same request may succeed later, [Away] says to a script.
func OfCode(code core.Code) int {
	switch code {
	case "":
		return OK
	case core.CodeInvalid, "too_large", "unsupported_media_type":
		return Usage
	case core.CodeNotFound:
		return NotFound
	case core.CodeRunsFailed:
		return RunsFailed
	case core.CodeUnavailable, core.CodeStoreFull, core.CodeLimit, core.CodeQuota, core.CodeSpawnRate, core.CodeAbandoned, "too_many_requests", "draining":
		return Away
	case core.CodeForbidden, "unauthorized":
		return Forbidden
	case core.CodeConflict, core.CodeDisabled, core.CodeLeaseLost:
		return Conflict
	default:
		return Failed
	}
}

// OfStatus is the exit code for an answer of a server by its status alone.
func OfStatus(status int) int {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return Forbidden
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return Away
	default:
		return Failed
	}
}

// Of is the exit code for an error. What a quota never allows is 403 over HTTP, as it does not end by itself.
func Of(err error) int {
	code := CodeOf(err)
	refused, remotely := errors.AsType[*remote.Error](err)
	full, _ := errors.AsType[*store.LimitError](err)
	broken, _ := errors.AsType[*breaker.Error](err)
	if remotely && refused.Status == http.StatusForbidden || code == core.CodeQuota && (full != nil && full.Field != "" || broken != nil && broken.Depth > 0) {
		return Forbidden
	}
	return OfCode(code)
}

// CodeOf is the code of an error: that of a server, which has more than core has, or core's.
func CodeOf(err error) core.Code {
	if refused, ok := errors.AsType[*remote.Error](err); ok {
		return refused.Code
	}
	if code := core.CodeOf(err); code != core.CodeInternal {
		return code
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return core.CodeUnavailable
	}
	return core.CodeInternal
}

// Kind is the code for programs of a command that ends with an exit code because of an error: the command may know more than its error.
func Kind(exit int, err error) core.Code {
	if code := CodeOf(err); code != core.CodeInternal && Of(err) == exit {
		return code
	}
	switch exit {
	case Usage:
		return core.CodeInvalid
	case NotFound:
		return core.CodeNotFound
	case Away:
		return core.CodeUnavailable
	case Forbidden:
		return core.CodeForbidden
	case Conflict:
		return core.CodeConflict
	default:
		return CodeFailed
	}
}

// Problem is an error as programs read it, with --json: the members that a problem has over HTTP, by the same names.
type Problem struct {
	Code   core.Code `json:"code"`
	Field  string    `json:"field,omitempty"`
	Detail string    `json:"detail"`
	Hint   string    `json:"hint,omitempty"` // what to do
	Exit   int       `json:"exit_code"`
}

// JSON is a line with the problem.
func (p *Problem) JSON() string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(p) // strings and numbers can be encoded
	return table.JSON(text.String())
}
