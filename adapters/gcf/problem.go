package gcf

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/adapters/internal/trigger"
	"github.com/seed-6f6f2c11/duly/core"
)

// How the errors of a function are answered. Codes and statuses are in internal/problem.

var (
	errUnauthorized = problem.Unauthorized("the caller is not allowed")
	errNoRoute      = problem.New(problem.CodeNoRoute, "this function serves no other HTTP requests")
	errDraining     = problem.New(problem.CodeDraining, "this instance is shutting down; retry")
)

// partly is the problem of a tick that was done except for partitions of the store that do not answer: its status makes alarms
// ring, and its report says what was done.
func partly(report core.Report, away *core.AwayError) error {
	p := problem.New(core.CodeUnavailable, fmt.Sprintf("partitions %v of the store do not answer; the others were served", away.Partitions))
	p.Report = &report
	return errors.Join(p, away)
}

// final reports whether an error is one of a message, which no repeat can mend.
// Everything else may succeed when it is sent again.
func final(err error) bool { return problem.Of(err).Code == problem.CodeTooLarge || trigger.Final(err) }

// statusOf is the status of an answer to a sender that repeats each message until it is acknowledged.
// Pub/Sub and Eventarc repeat everything but a success, for a week: an answer of
// 200 is how a message is thrown away.
func (f *Function) statusOf(err error) int {
	if final(err) && !f.config.DeadLetter {
		return http.StatusOK
	}
	return problem.Of(err).Status
}

// writeJSON answers with a value. It has a length, so that a proxy can tell a
// whole answer from one that was cut off.
func writeJSON(w http.ResponseWriter, status int, body any) {
	data, err := json.Marshal(body)
	if err != nil { // of values that are ours
		_ = problem.ErrInternal.Write(w)
		return
	}
	data = append(data, '\n')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, _ = w.Write(data) // a client that went away asks again
}
