package console

// Live events: a page that scripts fill, and the stream that they read.

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
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
	if err := v.may(model.ActionRead, p.Agent); err != nil {
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
	if e.Type == model.EventFinish {
		s.Took = took(e.Duration)
	}
	if e.ID != "" {
		s.To = taskURL(e.Agent, e.ID)
	}
	return s
}

// clean is a text as pages show it.
func clean(text string) string { return string(visible([]byte(text))) }

// stream sends the events of all processes as server-sent events, until the visitor goes away or the server shuts down. A browser that comes back
// says how far it has come. Permission is checked for each event: what a user may see can change while they look.
func (c *console) stream(v *visit) error {
	if c.options.Events == nil {
		return problem.New(problem.CodeNoRoute, "this process has no events")
	}
	s := &shown{visit: v, agent: v.q.Get("agent"), kind: v.q.Get("kind")}
	if err := v.may(model.ActionRead, s.agent); err != nil {
		return err
	}
	leave, err := c.options.Events.Listen(v.session.token)
	if err != nil {
		return err
	}
	defer leave()
	if err := c.scheduler.Listen(v.r.Context(), v.r.Header.Get("Last-Event-ID"), s.send); err != nil && !s.begun {
		return err
	}
	return nil // else the browser has gone, or will reconnect
}

// shown is one stream.
type shown struct {
	*visit

	agent, kind string
	begun       bool
	wrote       time.Time
}

// errGone ends a stream whose browser has gone.
var errGone = errors.New("the stream has ended")

// send writes what of a page the visitor wants, and now and then a sign of life, with how far it has come.
func (s *shown) send(page inspect.EventPage) error {
	select {
	case <-s.options.Stopping:
		return errGone
	default:
	}
	now := s.options.Clock.Now()
	var text strings.Builder
	if !s.begun {
		s.begun = true
		s.w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprintf(&text, "retry: 3000\nid: %s\n\n", page.Next)
	}
	for i := range page.Items {
		text.WriteString(s.told(&page.Items[i]))
	}
	if text.Len() == 0 {
		if now.Sub(s.wrote) < heartbeat {
			return nil
		}
		fmt.Fprintf(&text, ": beat\nid: %s\n\n", page.Next)
	}
	s.wrote = now
	control := http.NewResponseController(s.w)
	_ = control.SetWriteDeadline(now.Add(writeTimeout)) // not every writer has one
	if _, err := s.w.Write([]byte(text.String())); err != nil || control.Flush() != nil {
		return errGone
	}
	return nil
}

// told is an event in the form of the stream; empty if it is not for the visitor. Visitors who see only some agents are not shown how many
// were lost.
func (s *shown) told(e *inspect.StoreEvent) string {
	if e.Data == nil {
		return fmt.Sprintf("id: %s\nevent: missed\ndata: Some\n\n", e.ID)
	}
	if s.agent != "" && s.agent != e.Event.Agent || s.kind != "" && s.kind != e.Event.Kind || s.may(model.ActionRead, e.Event.Agent) != nil {
		return ""
	}
	data, err := json.Marshal(show(&e.Event))
	if err != nil {
		return ""
	}
	return fmt.Sprintf("id: %s\ndata: %s\n\n", e.ID, data)
}
