package hooks

// Effects: the signal or the task that a message makes.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-6f6f2c11/duly/adapters/internal/inbound"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// signal is a signal as it is sent for each message.
type signal struct {
	agent, key template
	payload    *value // nil for the whole body
}

// newSignal reads one.
func newSignal(c *Signal) (*signal, error) {
	s := &signal{}
	for _, t := range []struct {
		field, text string
		into        *template
	}{{"Signal.Agent", c.Agent, &s.agent}, {"Signal.Key", c.Key, &s.key}} {
		var err error
		if *t.into, err = parseTemplate(t.text); err != nil {
			return nil, &core.ConfigError{Field: t.field, Value: t.text, Reason: err.Error()}
		}
		if t.text == "" {
			return nil, &core.ConfigError{Field: t.field, Reason: "is required"}
		}
	}
	var err error
	s.payload, err = payloadOf("Signal.Payload", c.Payload)
	return s, err
}

// payloadOf reads a payload; nil for the whole body.
func payloadOf(field string, data []byte) (*value, error) {
	if len(data) == 0 || string(data) == "null" {
		return nil, nil //nolint:nilnil // the whole body
	}
	return parseValue(field, data)
}

// entire is the payload of what has none of its own.
var entire = &value{text: template{{from: &source{text: whole}}}}

// payload is what a payload is for a message.
func payload(v *value, field string, m *message) (json.RawMessage, error) {
	if v == nil {
		v = entire
	}
	return v.json(field, m)
}

// deliver sets what a message makes of it.
func (s *signal) deliver(m *message, d *inbound.Delivery) error {
	agent, err := s.agent.name("signal.agent", m)
	if err != nil {
		return err
	}
	key, err := s.key.name("signal.key", m)
	if err != nil {
		return err
	}
	data, err := payload(s.payload, "signal.payload", m)
	if err != nil {
		return err
	}
	d.Asks = core.Access{Action: model.ActionControl, Agent: agent}
	d.Do = func(ctx context.Context, s *core.Scheduler) (inbound.Made, error) {
		out, err := s.Signal(ctx, agent, key, data)
		return inbound.Made{Signal: &out}, err
	}
	return nil
}

// task is a task as it is submitted for each message.
type task struct {
	said    core.NewTask
	agent   template
	texts   []text // those that are given
	payload *value // nil for the whole body
}

// text is a template of one field.
type text struct {
	field string // as it is in JSON
	template
	set func(t *core.NewTask, value string)
}

// fields are those of a task that may be templates, but for its labels, tags and payload. The agent is the first.
var fields = []struct {
	name string
	of   func(t *core.NewTask) *string
}{
	{"agent", func(t *core.NewTask) *string { return &t.Agent }},
	{"id", func(t *core.NewTask) *string { return &t.ID }},
	{"unique_key", func(t *core.NewTask) *string { return &t.UniqueKey }},
	{"group", func(t *core.NewTask) *string { return &t.Group }},
	{"user_id", func(t *core.NewTask) *string { return &t.UserID }},
	{"session_id", func(t *core.NewTask) *string { return &t.SessionID }},
	{"limit_key", func(t *core.NewTask) *string { return &t.LimitKey }},
}

// newTask reads one. Its kind, its schedule and its bounds are the same for all messages.
func newTask(c *core.NewTask) (*task, error) {
	if c.Agent == "" {
		return nil, &core.ConfigError{Field: "Task.agent", Reason: "is required"}
	}
	t := &task{said: *c}
	var err error
	add := func(field, said string, set func(t *core.NewTask, value string)) {
		template, wrong := parseTemplate(said)
		if wrong != nil && err == nil {
			err = &core.ConfigError{Field: "Task." + field, Value: said, Reason: wrong.Error()}
		}
		t.texts = append(t.texts, text{field, template, set})
	}
	for _, f := range fields {
		add(f.name, *f.of(&t.said), func(t *core.NewTask, value string) { *f.of(t) = value })
	}
	for _, name := range sorted(c.Labels) {
		add("labels."+name, c.Labels[name], func(t *core.NewTask, value string) { t.Labels[name] = value })
	}
	for i, tag := range c.Tags {
		add(fmt.Sprintf("tags[%d]", i), tag, func(t *core.NewTask, value string) { t.Tags[i] = value })
	}
	if err != nil {
		return nil, err
	}
	t.agent = t.texts[0].template
	t.texts = slices.DeleteFunc(t.texts, func(of text) bool { return len(of.template) == 0 }) // left out
	data, err := c.PayloadJSON(model.DefaultMaxPayload)
	if err != nil {
		return nil, &core.ConfigError{Field: "Task.payload", Reason: err.Error()}
	}
	t.payload, err = payloadOf("Task.payload", data)
	return t, err
}

// render is the task with what replaces the texts.
func (t *task) render(value func(text) (string, error)) (core.NewTask, error) {
	made := t.said
	made.Labels, made.Tags = maps.Clone(made.Labels), slices.Clone(made.Tags)
	for _, text := range t.texts {
		said, err := value(text)
		if err != nil {
			return made, err
		}
		text.set(&made, said)
	}
	return made, nil
}

// deliver sets what a message makes of it. A task without an id gets one from the name of the message: delivered again, when all else of it is forgotten, it
// finds its task.
func (t *task) deliver(m *message, hook string, d *inbound.Delivery) error {
	made, err := t.render(func(text text) (string, error) { return text.name("submit."+text.field, m) })
	if err != nil {
		return err
	}
	if made.Payload, err = payload(t.payload, "submit.payload", m); err != nil {
		return err
	}
	// guard: hook-task-id
	if made.ID == "" && made.UniqueKey == "" {
		sum := sha256.Sum256([]byte(hook + "\x00" + d.ID))
		made.ID = "hook-" + hex.EncodeToString(sum[:16])
	}
	d.Asks = core.Access{Action: model.ActionSubmit, Agent: made.Agent, User: made.UserID, Kind: made.Kind, ID: made.ID}
	d.Do = func(ctx context.Context, s *core.Scheduler) (inbound.Made, error) {
		tasks, err := s.Submit(ctx, made)
		return inbound.Made{Tasks: tasks}, err
	}
	return nil
}

// Example is a task such as the hook submits, with x in place of what comes from messages, for a trial; false if it submits none.
func (c *Config) Example() (core.NewTask, bool) {
	if c.Task == nil {
		return core.NewTask{}, false
	}
	t, err := newTask(c.Task)
	if err != nil {
		return core.NewTask{}, false
	}
	made, _ := t.render(func(text text) (string, error) { return text.example(), nil })
	made.Payload = nil
	return made, true
}

// example is a text with x in place of what comes from a message.
func (t template) example() (all string) {
	for _, p := range t {
		if p.from != nil {
			all += "x"
		} else {
			all += p.literal
		}
	}
	return all
}

// sorted are the names in a map, so that the same mistakes have the same error.
func sorted[V any](of map[string]V) []string { return slices.Sorted(maps.Keys(of)) }
