package gcf

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
	"github.com/seed-6f6f2c11/duly/adapters/internal/trigger"
	"github.com/seed-6f6f2c11/duly/core"
)

// Messages: what a sender delivers at least once, in any envelope, and what is done for it.

// message is what a sender delivers, at least once: tasks or a tick, as JSON.
type message struct {
	sender string // a subscription, or the source of an event
	id     string // the same at each delivery
	prefix string // of the ids of tasks that have none
	data   []byte
}

// UnknownEventError says that a message or event is none that the function knows. Nothing was done.
type UnknownEventError struct {
	Why error // what is wrong with it
}

// Error says what was expected, and what is wrong.
func (e *UnknownEventError) Error() string {
	return `gcf: want a task, {"tasks":[...]} or {"kind":"tick"} as JSON, in a Pub/Sub message or in the data of an event: ` +
		trigger.Clip(e.Why.Error(), trigger.MaxError)
}

// Unwrap is what is wrong with the event.
func (e *UnknownEventError) Unwrap() error { return e.Why }

// unknown is an error about one field of a message.
func unknown(field, reason string) error {
	return &UnknownEventError{Why: &core.InvalidError{Field: field, Reason: reason}}
}

// pushed is the body of a push that wraps a message, read once: who may push is checked after it is known to be one, and only
// then is anything said about what is wrong with it.
type pushed struct {
	message message
	err     error // what is wrong with the message; nil if nothing is
}

// readPush reads the body of a push that wraps a message; nil if it is no push at all, but a request for another handler.
func readPush(body []byte) *pushed {
	o, err := strictjson.Parse("body", body)
	// A request for another handler may well be JSON, so that is no error.
	if err != nil || !o.Has("message") || !o.Has("subscription") {
		return nil
	}
	m, err := readWrapped(o)
	return &pushed{m, err}
}

// readWrapped reads a Pub/Sub message from its envelope, as a push and an event have it.
func readWrapped(o strictjson.Object) (message, error) {
	var wrapped struct {
		Data []byte `json:"data"` // in base64
		ID   string `json:"messageId"`
	}
	// A subscription that is no string would make messages of different ones look alike.
	subscription := o.Text("subscription")
	switch {
	case o.Has("subscription") && subscription == "": // two of them must not become one sender
		return message{}, unknown("subscription", "must be a string")
	case !o.Has("message"):
		return message{}, unknown("message", "is required")
	}
	if err := json.Unmarshal(o["message"], &wrapped); err != nil {
		return message{}, unknown("message", "is not a Pub/Sub message: "+err.Error())
	}
	if wrapped.ID == "" {
		return message{}, unknown("messageId", "is required")
	}
	return newMessage(subscription, wrapped.ID, wrapped.Data), nil
}

// newMessage is a message of Pub/Sub.
// Ids of messages are unique for their topic, and a subscription has one topic.
func newMessage(subscription, id string, data []byte) message {
	return message{sender: subscription, id: id, prefix: "pubsub-" + digest(subscription, id), data: data}
}

// digest is a short name for strings that name something together only, and that may be longer than the id of a task.
// 128 bits are far from colliding, and short enough for an id.
func digest(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// receive does what a message says.
func (f *Function) receive(ctx context.Context, m message) (any, error) {
	answer, err := f.obey(ctx, m)
	// Every mistake of the sender becomes the same type of error.
	if core.CodeOf(err) == core.CodeInvalid {
		err = &UnknownEventError{Why: err}
	}
	return answer, err
}

// obey tells a tick from tasks, and does what it says.
func (f *Function) obey(ctx context.Context, m message) (any, error) {
	if o, err := strictjson.Parse("message", m.data); err == nil && trigger.IsTick(o) {
		scope, err := trigger.ReadTick(o)
		if err != nil {
			return nil, err
		}
		return f.run(ctx, scope, m.sender, trigger.Occasion{Of: m.sender, At: m.id})
	}
	tasks, err := trigger.ReadTasks(m.data, m.prefix)
	if err != nil {
		return nil, err
	}
	return f.submit(ctx, tasks)
}

// run runs what is due, unless this occasion of a job has been served before.
func (f *Function) run(ctx context.Context, scope core.Scope, job string, key trigger.Occasion) (any, error) {
	report, repeated, err := f.runner.Run(ctx, scope, key)
	// The status has to be an error, so that an alarm rings, although most of the work was done.
	if away, ok := errors.AsType[*core.AwayError](err); ok {
		return nil, partly(report, away)
	}
	if err != nil {
		return nil, fmt.Errorf("tick: %w", err)
	}
	if repeated {
		return duplicate{true, job, key.At}, nil
	}
	return report, nil
}

// duplicate is the answer to a repeat.
// It is answered with success: there is nothing left to do for the sender.
type duplicate struct {
	Duplicate bool   `json:"duplicate"`
	Job       string `json:"job"`
	Time      string `json:"time"`
}

// submit submits tasks, and runs them if that is wanted.
func (f *Function) submit(ctx context.Context, tasks []core.NewTask) (any, error) {
	// The margin is for the answer: a submit that is cut off is stored or not, and the repeat tells.
	soon, cancel := trigger.Soon(ctx, f.config.Margin)
	defer cancel()
	submitted, err := f.scheduler.Submit(soon, tasks...)
	if err != nil {
		return nil, fmt.Errorf("submit: %w", err)
	}
	if f.config.RunSubmitted {
		f.runner.RunSubmitted(ctx, submitted)
	}
	return struct {
		Tasks []core.Submitted `json:"tasks"`
	}{submitted}, nil
}
