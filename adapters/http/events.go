package http

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// The event stream. A client that reads slowly must not hold up the tasks that it hears of: what it misses is
// counted, and the number is sent to it.

// Events hands the events of a scheduler to those who listen at GET /v1/events. The zero value is ready.
type Events struct {
	mu        sync.Mutex
	listeners map[*listener]struct{}
	each      map[[sha256.Size]byte]int // how many listen with a credential
}

// listener is one connection. What it does not take in time is dropped and counted.
type listener struct {
	grant *Grant
	agent string // the only one; empty for all that the grant covers
	kind  string
	asks  func(e *core.Event) bool // nil for all of these
	queue chan core.Event
	lost  int
	of    [sha256.Size]byte // its credential
}

// Bounds of a stream of events. Each credential may have mostListeners, so that one takes nobody else's; all together bound the memory.
const (
	eventsKept    = 256
	mostListeners = 100
	allListeners  = 4 * mostListeners
	heartbeat     = 15 * time.Second
	writeTimeout  = 10 * time.Second
)

// Publish hands an event to all who listen. It never waits: give it to core.Config.OnEvent.
func (e *Events) Publish(event core.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for l := range e.listeners {
		if !l.wants(&event) {
			continue
		}
		select {
		case l.queue <- event:
		default:
			l.lost++
		}
	}
}

// wants reports whether an event is for a listener, as far as its grant says. What is about more than one agent is of no agent.
func (l *listener) wants(e *core.Event) bool {
	return (l.agent == "" || l.agent == e.Agent) && (l.kind == "" || l.kind == e.Kind) && l.grant.covers(e.Agent) &&
		(l.asks == nil || l.asks(e))
}

// listen adds a listener, or says how many there are already: of its credential, or of all.
func (e *Events) listen(l *listener) (already int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.each[l.of] >= mostListeners:
		return mostListeners
	case len(e.listeners) >= allListeners:
		return allListeners
	}
	if e.listeners == nil {
		e.listeners, e.each = map[*listener]struct{}{}, map[[sha256.Size]byte]int{}
	}
	e.listeners[l] = struct{}{}
	e.each[l.of]++
	return 0
}

func (e *Events) leave(l *listener) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.listeners, l)
	if e.each[l.of]--; e.each[l.of] == 0 {
		delete(e.each, l.of)
	}
}

// missed is how many events were dropped since it was last asked.
func (e *Events) missed(l *listener) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := l.lost
	l.lost = 0
	return n
}

// events streams events as server-sent events, until the caller goes away or the server shuts down. A caller that may see some agents only gets
// theirs; ?agent_id= and ?kind= narrow it further.
func (a *api) events(w http.ResponseWriter, r *http.Request) {
	q, err := query(r, "agent_id", "kind")
	if err != nil {
		a.refuse(w, r, err)
		return
	}
	from := callerOf(r)
	l := &listener{grant: from.grant, agent: q.Get("agent_id"), kind: q.Get("kind"), queue: make(chan core.Event, eventsKept), of: from.credential}
	if l.agent != "" || l.grant.all() {
		if err := a.allow(r, l.agent); err != nil {
			a.refuse(w, r, err)
			return
		}
	}
	if already := a.config.Events.listen(l); already > 0 {
		a.refuse(w, r, tooMany(already))
		return
	}
	defer a.config.Events.leave(l)
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	a.send(w, r, l)
}

func (a *api) send(w http.ResponseWriter, r *http.Request, l *listener) {
	control := http.NewResponseController(w)
	beat := time.NewTicker(heartbeat) //nolint:forbidigo // it keeps a connection alive; no task depends on it
	defer beat.Stop()
	text := ": duly\n\n"
	for {
		_ = control.SetWriteDeadline(a.config.Clock.Now().Add(writeTimeout)) // not every writer has one
		if _, err := w.Write([]byte(text)); err != nil {
			return
		}
		if control.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-a.config.Stopping:
			return
		case <-beat.C:
			text = ": beat\n\n"
		case event := <-l.queue:
			// Each is asked about, and not only what was asked for: what the caller may see can change while it listens.
			if a.allow(r, event.Agent) != nil {
				text = ""
				break
			}
			data, err := json.Marshal(event)
			if err != nil {
				return
			}
			text = fmt.Sprintf("event: %s\ndata: %s\n\n", event.Type, data)
		}
		if n := a.config.Events.missed(l); n > 0 {
			text += fmt.Sprintf("event: missed\ndata: {\"count\":%d}\n\n", n)
		}
	}
}
