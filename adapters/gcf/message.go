package gcf

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"

	"github.com/seed-6f6f2c11/duly/core"
)

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
		clip(e.Why.Error(), mostError)
}

// Unwrap is what is wrong with the event.
func (e *UnknownEventError) Unwrap() error { return e.Why }

func unknown(field, reason string) error {
	return &UnknownEventError{Why: &core.InvalidError{Field: field, Reason: reason}}
}

// readPush reads the body of a push that wraps a message; ok says whether it is one at all.
func readPush(body []byte) (m message, ok bool, err error) {
	o := parse(body)
	if !o.has("message") || !o.has("subscription") {
		return m, false, nil
	}
	m, err = readWrapped(body)
	return m, true, err
}

// readWrapped reads a Pub/Sub message with its envelope, as a push and an event have it.
func readWrapped(body []byte) (message, error) {
	var wrapped struct {
		Message struct {
			Data []byte `json:"data"` // in base64
			ID   string `json:"messageId"`
		} `json:"message"`
		Subscription string `json:"subscription"`
	}
	if err := json.Unmarshal(body, &wrapped); err != nil {
		return message{}, unknown("message", "is not one of Pub/Sub: "+err.Error())
	}
	if wrapped.Message.ID == "" {
		return message{}, unknown("messageId", "is required")
	}
	return newMessage(wrapped.Subscription, wrapped.Message.ID, wrapped.Message.Data), nil
}

// newMessage is a message of Pub/Sub.
func newMessage(subscription, id string, data []byte) message {
	return message{sender: subscription, id: id, prefix: "pubsub-" + id, data: data}
}

// receive does what a message says.
func (f *Function) receive(ctx context.Context, m message) (any, error) {
	answer, err := f.obey(ctx, m)
	if core.CodeOf(err) == core.CodeInvalid {
		err = &UnknownEventError{Why: err}
	}
	return answer, err
}

func (f *Function) obey(ctx context.Context, m message) (any, error) {
	if o := parse(m.data); o.isTick() {
		scope, err := readTick(o)
		if err != nil {
			return nil, err
		}
		return f.run(ctx, scope, occasion{m.sender, m.id})
	}
	tasks, err := core.ParseTasks(m.data)
	switch {
	case err != nil:
		return nil, err
	case len(tasks) == 0:
		return nil, &core.InvalidError{Field: "tasks", Reason: "is empty"}
	}
	for i := range tasks {
		if tasks[i].ID == "" {
			tasks[i].ID = fmt.Sprintf("%s-%d", m.prefix, i)
		}
	}
	return f.submit(ctx, tasks)
}

// submit submits tasks. Whether they can be run now is not the sender's affair: they are safe, and the next tick runs them.
func (f *Function) submit(ctx context.Context, tasks []core.NewTask) (any, error) {
	soon, cancel := f.soon(ctx)
	defer cancel()
	submitted, err := f.scheduler.Submit(soon, tasks...)
	if err != nil {
		return nil, fmt.Errorf("submit: %w", err)
	}
	if f.config.RunSubmitted {
		f.runSubmitted(ctx, submitted)
	}
	return struct {
		Tasks []core.Submitted `json:"tasks"`
	}{submitted}, nil
}

func (f *Function) runSubmitted(ctx context.Context, submitted []core.Submitted) {
	var agents []string
	for i := range submitted {
		agents = append(agents, submitted[i].Agent)
	}
	slices.Sort(agents)
	report, err := f.scheduler.RunDueTasks(ctx, slices.Compact(agents)) // no more than one submit takes
	failed, err := failures(err)
	if err != nil {
		f.config.Logger.LogAttrs(ctx, slog.LevelWarn, "what was submitted could not be run now", slog.Any("err", err))
		return
	}
	f.logTick(ctx, report, failed)
}
