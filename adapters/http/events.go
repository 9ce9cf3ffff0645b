package http

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// The event stream: those of all processes of the store, read from it for each connection. A client that reads slowly delays no other, and misses
// nothing that the store keeps: more is read once the client has taken what was read before.

// Events answers GET /v1/events, and bounds how many listen. [NewEvents] makes it, so that programs without it, such as functions, do not contain its code.
type Events struct {
	answer func(a *api) http.HandlerFunc

	mu   sync.Mutex
	all  int
	each map[[sha256.Size]byte]int // by credential
}

// NewEvents makes the handler of event streams.
func NewEvents() *Events {
	return &Events{answer: func(a *api) http.HandlerFunc { return a.events }}
}

// Bounds of a stream of events. Each credential may have mostListeners, so that one leaves room for others; all together bound how often the store is
// read.
const (
	mostListeners = 100
	allListeners  = 4 * mostListeners
	heartbeat     = 15 * time.Second
	writeTimeout  = 10 * time.Second
)

// enter takes a place, or fails with an error that has the code unavailable: too many listen with the credential, or in all.
func (e *Events) enter(credential [sha256.Size]byte) (leave func(), err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	already := 0
	switch {
	case e.each[credential] >= mostListeners:
		already = mostListeners
	case e.all >= allListeners:
		already = allListeners
	}
	if already > 0 {
		return nil, problem.New(core.CodeUnavailable, fmt.Sprintf("%d clients are already listening; retry later", already))
	}
	if e.each == nil {
		e.each = map[[sha256.Size]byte]int{}
	}
	e.all++
	e.each[credential]++
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.all--
		if e.each[credential]--; e.each[credential] == 0 {
			delete(e.each, credential)
		}
	}, nil
}

// listener is one connection.
type listener struct {
	*api

	w     http.ResponseWriter
	r     *http.Request
	grant *Grant
	agent string // the only one; empty for all that the grant covers
	kind  string
	ce    bool // each event is one of CloudEvents
	begun bool
	wrote time.Time
}

// events streams the events of all processes as server-sent events, until the caller disconnects or the server shuts down: those from now on, or
// after Last-Event-ID, which a browser sends by itself, or ?since_id=. A caller that may see some agents only gets theirs; ?agent_id= and ?kind=
// narrow it further. With ?format=cloudevents each is an event of CloudEvents, in the format of JSON.
func (a *api) events(w http.ResponseWriter, r *http.Request) {
	q, err := query(r, "agent_id", "kind", "since_id", "format")
	if err == nil && q.Has("format") && q.Get("format") != "cloudevents" {
		err = &core.InvalidError{Field: "format", Reason: "must be cloudevents, or omitted"}
	}
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	from := callerOf(r.Context())
	l := &listener{api: a, w: w, r: r, grant: from.grant, agent: q.Get("agent_id"), kind: q.Get("kind"), ce: q.Has("format")}
	if l.agent != "" || l.grant.all() {
		if err := a.allow(r.Context(), l.agent); err != nil {
			a.refuse(w, r, err)
			return
		}
	}
	leave, err := a.config.Events.enter(from.credential)
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	defer leave()
	err = a.scheduler.Listen(r.Context(), cmp.Or(r.Header.Get("Last-Event-ID"), q.Get("since_id")), l.send)
	switch {
	case l.begun || err == nil: // the client reconnects with its last id
	case errors.Is(err, inspect.ErrNoFeed):
		a.refuse(w, r, problem.New(problem.CodeNoRoute, "the store of this process keeps no events"))
	default:
		a.refuse(w, r, err)
	}
}

// send writes the events of a page that are for the client, unless it has gone, or the server is about to: then its error ends the stream. Now and then it
// writes a sign of life, with how far it has come: the last event that was for
// it may have been long ago.
func (l *listener) send(page inspect.EventPage) error {
	select {
	case <-l.config.Stopping:
		return http.ErrAbortHandler
	default:
	}
	now := l.config.Clock.Now()
	var text strings.Builder
	if !l.begun {
		l.begun = true
		l.w.Header().Set("Content-Type", "text/event-stream")
		l.w.WriteHeader(http.StatusOK)
		fmt.Fprintf(&text, ": duly\nid: %s\n\n", page.Next)
	}
	for i := range page.Items {
		l.tell(&text, &page.Items[i])
	}
	if text.Len() == 0 {
		if now.Sub(l.wrote) < heartbeat {
			return nil
		}
		fmt.Fprintf(&text, ": beat\nid: %s\n\n", page.Next)
	}
	l.wrote = now
	control := http.NewResponseController(l.w)
	_ = control.SetWriteDeadline(now.Add(writeTimeout)) // not every writer has one
	if _, err := l.w.Write([]byte(text.String())); err != nil {
		return http.ErrAbortHandler
	}
	if control.Flush() != nil {
		return http.ErrAbortHandler
	}
	return nil
}

// tell writes an event that is for the client. Each event is checked, not just the request: what the caller may see can change while it
// listens. The number of lost events is sent only to callers that see all of them.
func (l *listener) tell(text *strings.Builder, e *inspect.StoreEvent) {
	name, data := "missed", []byte("{}")
	switch {
	case e.Data != nil:
		if !l.wants(&e.Event) || l.allow(l.r.Context(), e.Event.Agent) != nil {
			return
		}
		name, data = string(e.Event.Type), e.Data
	case e.Lost > 0 && l.grant.all() && l.agent == "" && l.kind == "":
		data = fmt.Appendf(nil, `{"count":%d}`, e.Lost)
	}
	if l.ce {
		data = enveloped(e, data)
	}
	fmt.Fprintf(text, "id: %s\nevent: %s\ndata: %s\n\n", e.ID, name, data)
}

// enveloped is an event as one of CloudEvents. What cannot be read as an event was missed, as far as the client is concerned.
func enveloped(e *inspect.StoreEvent, data []byte) []byte {
	c := contract.MissedEvent(e.ID, data)
	if e.Data != nil {
		var err error
		if c, err = contract.FeedEvent(data); err != nil {
			c = contract.MissedEvent(e.ID, []byte("{}"))
		}
	}
	whole, _ := json.Marshal(c) //nolint:errchkjson // its data is JSON: FeedEvent has read it
	return whole
}

// wants reports whether an event is for a listener, by its filters and its grant. An event about more than one agent names none.
func (l *listener) wants(e *core.Event) bool {
	return (l.agent == "" || l.agent == e.Agent) && (l.kind == "" || l.kind == e.Kind) && l.grant.covers(e.Agent)
}

// Listen takes a place among the listeners, until leave is called: for a handler beside this one. who names the share of the places that it uses,
// such as a credential. It fails with an error that has the code unavailable if too many listen.
func (e *Events) Listen(who string) (leave func(), err error) {
	return e.enter(sha256.Sum256([]byte(who)))
}
