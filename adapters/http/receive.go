package http

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/adapters/internal/requestbody"
	"github.com/seed-6f6f2c11/duly/core"
)

// Messages. A sender that delivers at least once sends again when it gets no answer, and anyone on the way can replay a request: a
// request of a sender is carried out once, over all processes.

// Sender is a Verifier whose requests have ids, and are carried out once each. The store remembers them until they would be refused
// anyway. A repeated delivery is answered with 208 and {"duplicate":true} if it was carried out, with 409 if it asks for something
// else than before, and with 503 while the first delivery is under way, or if the store cannot say. A refused or failed message may be
// delivered again.
type Sender interface {
	Verifier
	// Message names a request that Verify has just accepted.
	Message(r *http.Request) Message
}

// Message is a request of a sender.
type Message struct {
	ID  string // unique among its sender's messages, carried out once; empty for a request that may be sent any number of times
	Key string // the same at each delivery, if ID is not: tasks without ids get theirs from it
	// Until is when the request would be refused for its age.
	Until time.Time
}

// key is the seed for the ids of a message's tasks; empty for any other request.
func (c *caller) key() string {
	switch {
	case c.message.ID == "":
		return ""
	case c.message.Key != "":
		// Made to differ from all ids, as it is not verified.
		return c.message.Key + "\x00" + c.grant.Name + "\x00"
	case c.grant.Name != "":
		return c.message.ID + "\x00" + c.grant.Name // other senders may use the same ids
	default:
		return c.message.ID + "\x00"
	}
}

// How long a request may take that runs nothing, and how much longer one that does.
const (
	briefly = time.Minute
	toSend  = 30 * time.Second
)

// duplicate is the answer to a message that was carried out before. Its status is a success: the sender has nothing left to do.
type duplicate struct {
	Duplicate bool `json:"duplicate"`
}

// Shared and never changed.
var (
	errBusy = &problem.Error{
		Type: "about:blank", Title: http.StatusText(http.StatusServiceUnavailable), Status: http.StatusServiceUnavailable,
		Detail: "another delivery of this message is under way; retry later", Code: core.CodeUnavailable,
		Header: http.Header{"Retry-After": {"5"}},
	}
	errDiffers = problem.New(core.CodeConflict, "the "+messageID+" was already used for another request; use a new one for each request")
	errAgain   = problem.New(core.CodeConflict, "this message was carried out before")
)

// once answers a request: by its route, unless it is a message that was carried out.
func (a *api) once(r *http.Request, rt *route) (status int, body any, err error) {
	if callerOf(r.Context()).message.ID == "" {
		return rt.answer(r)
	}
	within := briefly
	if rt.Scope() == ScopeTrigger {
		within = a.config.MaxTimeout + a.config.Grace + toSend
	}
	receipt, err := a.receive(r, within)
	if errors.Is(err, errAgain) {
		return http.StatusAlreadyReported, duplicate{true}, nil
	}
	if err != nil {
		return 0, nil, err
	}
	// Deferred, as a call may panic: then it was not carried out.
	done := false
	defer func() {
		if end := receipt.End(r.Context(), done); end != nil {
			a.config.Logger.LogAttrs(r.Context(), slog.LevelWarn, "cannot note what became of a message; delivered again it may be carried out again",
				slog.Bool("done", done), slog.Any("err", end))
		}
	}()
	status, body, err = rt.answer(r.WithContext(receipt.Context(r.Context())))
	done = err == nil && status < http.StatusBadRequest
	return status, body, err
}

// receiveStream lets a request in whose answer is a stream, and takes its message, which is carried out once it begins.
func (a *api) receiveStream(r *http.Request, rt *route) error {
	if rt.Wide {
		if err := a.allowAll(r.Context()); err != nil {
			return err
		}
	}
	if callerOf(r.Context()).message.ID == "" {
		return nil
	}
	receipt, err := a.receive(r, briefly)
	if err != nil {
		return err
	}
	return receipt.End(r.Context(), true)
}

// receive takes the message of a request; errAgain if it was carried out. It reads the body, which is part of what a message asks for,
// and puts it back.
func (a *api) receive(r *http.Request, within time.Duration) (*core.Receipt, error) {
	from := callerOf(r.Context())
	data, err := requestbody.All(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(data))
	what, receipt, err := a.scheduler.Receive(r.Context(), core.Message{
		Sender: from.grant.Name, ID: from.message.ID, Content: append([]byte(r.Method+" "+r.URL.RequestURI()+"\n"), data...),
		Until: from.message.Until, Within: within,
	})
	switch {
	case err != nil:
		return nil, err
	case what == core.ReceptionBusy:
		return nil, errBusy
	case what == core.ReceptionDiffers:
		return nil, errDiffers
	case what == core.ReceptionDuplicate:
		return nil, errAgain
	default:
		return receipt, nil
	}
}
