package http

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Idempotency-Key. A client whose answer was lost cannot know what was stored; by the key the same request makes
// the same ids, and a repeat changes nothing. The id of a signed message takes its place.

// idempotencyHeader makes a submit safe to repeat although its tasks have no ids.
const idempotencyHeader = "Idempotency-Key"

// mostKey is how long its value may be, in bytes, as with those who introduced it.
// A longer key is refused and not cut, as two keys could become one.
const mostKey = 255

// messageID replaces the header's name in errors.
const messageID = "id of the message"

// identifyTasks gives tasks that have neither an id nor a unique key ids made from the request's key and their place in it, which
// are the same when the request is repeated. If other content was stored under them before it is a conflict, before
// anything is written: a key identifies one request.
func (a *api) identifyTasks(r *http.Request, tasks []core.NewTask) error {
	// A signed message is delivered again with the same key, also when it is forgotten. The header is not signed: anyone who sends it again could
	// add another key. No key has a NUL, so no other request has this one.
	name, key := messageID, callerOf(r.Context()).key()
	values := r.Header.Values(idempotencyHeader)
	if key == "" {
		// Most requests have no key, and pay nothing for it.
		if len(values) == 0 {
			return nil
		}
		name, key = idempotencyHeader, values[0]
	}
	switch {
	case name == messageID: // it was checked with its signature
	case len(values) > 1:
		return &core.InvalidError{Field: idempotencyHeader, Reason: "is given twice"}
	case key == "":
		return &core.InvalidError{Field: idempotencyHeader, Reason: "must not be empty: leave it out if it has no value"}
	case len(key) > mostKey:
		return &core.InvalidError{Field: idempotencyHeader, Reason: fmt.Sprintf("is %d bytes long: the limit is %d", len(key), mostKey)}
	}
	// Tasks with ids of their own are safe to repeat already.
	var made []core.NewTask
	for i := range tasks {
		if tasks[i].ID == "" && tasks[i].UniqueKey == "" {
			// The place is part of it, so that equal tasks of one request stay different ones.
			sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%s", i, key))
			tasks[i].ID = "idempotency-" + hex.EncodeToString(sum[:16])
			made = append(made, tasks[i])
		}
	}
	if len(made) == 0 {
		return nil
	}
	if err := a.maySubmit(r, tasks); err != nil {
		return err
	}
	known, err := a.scheduler.Existing(r.Context(), made...)
	for i := range known {
		if known[i].Differs {
			return problem.New(core.CodeConflict, "the "+name+" was already used for another request; use a new one for each request")
		}
	}
	if core.CodeOf(err) == core.CodeInvalid {
		// Submit refuses it too, and names the task.
		return nil
	}
	return err
}

// maySubmit checks all tasks of a submit, before the store is asked about some of them. Submit itself would do it too late.
func (a *api) maySubmit(r *http.Request, tasks []core.NewTask) error {
	for i := range tasks {
		what := core.Access{Action: model.ActionSubmit, Agent: tasks[i].Agent, User: tasks[i].UserID, Kind: tasks[i].Kind, ID: tasks[i].ID}
		if err := a.scheduler.Authorize(r.Context(), what); err != nil {
			return err
		}
	}
	return nil
}
