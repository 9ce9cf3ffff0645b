package console

// Live events: a page that scripts fill, and the stream that they read.

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
)

// eventsPage is the page of live events.
type eventsPage struct {
	Agent, Kind string
	Stream      string // its address
	Has         bool   // this process has events
}

// Bounds of a stream.
const (
	heartbeat    = 15 * time.Second
	writeTimeout = 10 * time.Second
)

// events is the page of live events.
func (c *console) events(v *visit) (*page, error) {
	p := eventsPage{Agent: v.q.Get("agent"), Kind: v.q.Get("kind"), Has: c.options.Events != nil}
	if err := v.may(core.ActionRead, p.Agent); err != nil {
		return nil, err
	}
	p.Stream = Path + "/stream?" + url.Values{"agent": {p.Agent}, "kind": {p.Kind}}.Encode()
	return &page{name: "events", title: "Live events", body: p}, nil
}

// seen is an event as the page shows it.
type seen struct {
	Time    string `json:"time"`
	Type    string `json:"type"`
	Agent   string `json:"agent,omitempty"`
	ID      string `json:"id,omitempty"`
	Kind    string `json:"kind,omitempty"`
	Outcome string `json:"outcome,omitempty"`
	Class   string `json:"class"`
	Took    string `json:"took,omitempty"`
	Text    string `json:"text,omitempty"`
	To      string `json:"to,omitempty"`
}

// show is an event as the page shows it.
func show(e *core.Event) seen {
	b := outcomeOf(e.Outcome)
	s := seen{
		Time: e.Time.UTC().Format(time.RFC3339Nano), Type: string(e.Type), Agent: clean(e.Agent), ID: clean(e.ID), Kind: clean(e.Kind), Outcome: string(e.Outcome),
		Class: b.Class, Text: clean(short(e.Error)),
	}
	if s.Text == "" {
		s.Text = clean(short(e.Reason))
	}
	if e.Type == core.EventFinish {
		s.Took = took(e.Duration)
	}
	if e.ID != "" {
		s.To = taskURL(e.Agent, e.ID)
	}
	return s
}

// clean is a text as pages show it.
func clean(text string) string { return string(visible([]byte(text))) }

// stream sends events as server-sent events, until the visitor goes away or the server shuts down. Each is asked about: what somebody may see can
// change while they look.
func (c *console) stream(v *visit) error {
	if c.options.Events == nil {
		return problem.New(problem.CodeNoRoute, "this process has no events")
	}
	agent, kind := v.q.Get("agent"), v.q.Get("kind")
	if err := v.may(core.ActionRead, agent); err != nil {
		return err
	}
	wants := func(e *core.Event) bool { return (agent == "" || agent == e.Agent) && (kind == "" || kind == e.Kind) }
	events, missed, leave, err := c.options.Events.Listen(v.session.token, wants)
	if err != nil {
		return err
	}
	defer leave()
	v.w.Header().Set("Content-Type", "text/event-stream")
	control := http.NewResponseController(v.w)
	beat := time.NewTicker(heartbeat) //nolint:forbidigo // it keeps a connection alive; no task depends on it
	defer beat.Stop()
	for text := "retry: 3000\n\n"; ; {
		_ = control.SetWriteDeadline(c.options.Clock.Now().Add(writeTimeout)) // not every writer has one
		if _, err := v.w.Write([]byte(text)); err != nil || control.Flush() != nil {
			return nil // whoever listened has gone
		}
		select {
		case <-v.r.Context().Done():
			return nil
		case <-c.options.Stopping:
			return nil
		case <-beat.C:
			text = ": beat\n\n"
		case e := <-events:
			text = v.told(&e, missed())
		}
	}
}

// told is an event as the stream has it, with how many were missed before it.
func (v *visit) told(e *core.Event, missed int) string {
	text := ""
	if missed > 0 {
		text = fmt.Sprintf("event: missed\ndata: %d\n\n", missed)
	}
	if v.may(core.ActionRead, e.Agent) != nil {
		return text
	}
	data, err := json.Marshal(show(e))
	if err != nil {
		return text
	}
	return text + "data: " + string(data) + "\n\n"
}
