package base

// The events of this process for others: it publishes them through the store while there are listeners.

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/model"
)

// Bounds of the events that wait for the store.
const (
	mostTelling = 4096 // events that wait; those that come faster are lost, and counted
	tellAtOnce  = 256
	tellWithin  = 500 * time.Millisecond // as a function may wait for it
)

// EventQueue are the events that wait for the store, in order. A goroutine publishes them, and ends when there are none.
type EventQueue struct {
	mu     sync.Mutex
	events [][]byte      // as JSON
	front  int           // how many were lost before them
	behind int           // and after them: unless it is zero, new events are lost too
	idle   chan struct{} // closed when the goroutine has ended; nil while there is none
}

// HasListeners reports whether events are worth making: there is a listener, in this process or through the store.
func (s *Base) HasListeners() bool {
	return s.Config.OnEvent != nil || s.heard()
}

// heard reports whether there is a listener through the store.
func (s *Base) heard() bool { return s.Config.Feed != nil && s.Config.Feed.Listened() }

// publish queues an event for the store: no caller waits for listeners.
func (s *Base) publish(e model.Event) {
	t := &s.queue
	data, _ := json.Marshal(e) // no field of an event can fail
	t.mu.Lock()
	if t.behind > 0 || len(t.events) >= mostTelling {
		t.behind++
	} else {
		t.events = append(t.events, data)
	}
	if t.idle == nil {
		t.idle = make(chan struct{})
		go s.tellAll()
	}
	t.mu.Unlock()
}

// tellAll publishes the waiting events until none is left, there is no listener, or the store fails; after a failure the rest waits for the next event.
func (s *Base) tellAll() {
	t := &s.queue
	t.mu.Lock()
	for {
		n := min(len(t.events), tellAtOnce)
		events, lost := t.events[:n:n], t.front
		if t.events, t.front = t.events[n:], 0; n == 0 {
			lost, t.behind, t.events = lost+t.behind, 0, nil
		}
		if lost+n == 0 {
			break
		}
		t.mu.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), tellWithin) //nolint:forbidigo // whoever made the events has left
		listened, err := s.Config.Feed.Publish(ctx, lost, events)
		cancel()
		t.mu.Lock()
		if err != nil { // listeners learn of the lost events with the next one
			t.front += lost + n
			break
		}
		if !listened {
			t.events, t.front, t.behind = nil, 0, 0
			break
		}
	}
	close(t.idle)
	t.idle = nil
	t.mu.Unlock()
}

// FlushEvents returns once the events of this process so far were published through the store, or ctx is done; it waits half a second for a store
// that does not answer. A host whose process is frozen between calls, such as a function, calls it at the end of each, and a
// program before it ends. It costs nothing while there are no listeners.
func (s *Base) FlushEvents(ctx context.Context) {
	s.queue.mu.Lock()
	idle := s.queue.idle
	s.queue.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-ctx.Done():
	}
}
