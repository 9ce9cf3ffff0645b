package http

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
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
	agents []string // nil for all
	kind   string
	queue  chan core.Event
	lost   int
	of     [sha256.Size]byte // its credential
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
		if l.agents != nil && !slices.Contains(l.agents, event.Agent) || l.kind != "" && l.kind != event.Kind {
			continue
		}
		select {
		case l.queue <- event:
		default:
			l.lost++
		}
	}
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
	l := &listener{agents: from.grant.Agents, kind: q.Get("kind"), queue: make(chan core.Event, eventsKept), of: from.credential}
	if agent := q.Get("agent_id"); agent != "" {
		if err := allow(r, agent); err != nil {
			a.refuse(w, r, err)
			return
		}
		l.agents = []string{agent}
	}
	if already := a.config.Events.listen(l); already > 0 {
		a.refuse(w, r, problem.New(core.CodeUnavailable, fmt.Sprintf("%d clients are already listening; retry later", already)))
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
