// Package waiting is where workers wait for runs: one subscription for all of them, and one of those that ask for the same is woken for each
// thing that falls due.
package waiting

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// LookEvery is how often a worker is woken though nothing was announced: a wake-up may be lost.
const LookEvery = 5 * time.Second

// Lingers is how long a process goes on to listen after the last worker has left with a run, or with none as its time was over: it asks again soon, and
// to subscribe again is dearer than a claim.
const Lingers = 2 * time.Second

// Room are the workers that wait at one process. Its fields are set before the first enters.
type Room struct {
	Clock model.Clock
	Waker store.Waker                       // nil for none
	Until func(due time.Time) time.Duration // how long it is until a time of the store
	Ends  <-chan struct{}                   // closed when the process stops; nil for never

	mu     sync.Mutex
	queues map[string][]*Waiter // of those that ask for the same, the one that has waited longest first
	stop   context.CancelFunc   // of the subscription; nil without one
	ear    chan struct{}        // of the same: closed once it hears, or cannot be had
	deaf   func() bool          // calls off that it ends, as no worker waits
	disarm func() bool          // of the timer
	at     time.Time            // when it goes off
}

// Waiter is one of them.
type Waiter struct {
	room *Room
	of   string
	woke chan struct{}
	ear  <-chan struct{} // closed once the room listens; nil if there is nothing to listen to
}

// Enter adds a worker that asks for something.
func (r *Room) Enter(of string) *Waiter {
	w := &Waiter{room: r, of: of, woke: make(chan struct{}, 1)}
	r.mu.Lock()
	defer r.mu.Unlock()
	first := len(r.queues) == 0
	if first {
		r.queues = map[string][]*Waiter{}
	}
	r.queues[of] = append(r.queues[of], w)
	if first {
		r.listen()
		r.by(r.Clock.Now().Add(LookEvery))
	}
	w.ear = r.ear
	return w
}

// Listens reports whether all that is announced from now on wakes a worker that enters.
func (r *Room) Listens() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.stop != nil && closed(r.ear)
}

// closed reports whether a channel is.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// listen subscribes to wake-ups, unless it still does. The mutex is held.
func (r *Room) listen() {
	if r.deaf != nil {
		r.deaf()
		r.deaf = nil
	}
	if r.Waker == nil || r.stop != nil {
		return
	}
	ctx, stop := context.WithCancel(context.Background()) //nolint:forbidigo // it is for all who wait
	ear := make(chan struct{})
	r.stop, r.ear = stop, ear
	go func() {
		wakeups, err := r.Waker.Wakeups(ctx)
		close(ear)
		if err == nil {
			r.hear(wakeups)
		}
		stop() // without it they are woken all the same, later
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.ear == ear {
			r.stop, r.ear = nil, nil
		}
	}()
}

// hear has wake-ups wake workers, until the subscription or the process ends.
func (r *Room) hear(wakeups <-chan store.Wakeup) {
	for {
		select {
		case w, ok := <-wakeups:
			if !ok {
				return
			}
			if !w.Withdrawn {
				r.due(w.Due.Time())
			}
		case <-r.Ends:
			return
		}
	}
}

// hush ends the subscription. The mutex is held.
func (r *Room) hush() {
	if r.stop != nil && len(r.queues) == 0 {
		r.stop()
		r.stop, r.ear = nil, nil
	}
}

// due has some be woken when something is due.
func (r *Room) due(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.by(r.Clock.Now().Add(max(r.Until(at), 0)))
}

// by has some be woken at a time at the latest. The mutex is held.
func (r *Room) by(at time.Time) {
	if len(r.queues) == 0 || r.disarm != nil && !at.Before(r.at) {
		return
	}
	if r.disarm != nil {
		r.disarm()
	}
	r.at = at
	r.disarm = r.Clock.AfterFunc(max(at.Sub(r.Clock.Now()), 0), r.ring)
}

// ring wakes one of each queue.
func (r *Room) ring() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.disarm == nil || r.Clock.Now().Before(r.at) { // it was put off meanwhile
		return
	}
	r.disarm = nil
	for _, q := range r.queues {
		wake(q)
	}
	r.by(r.Clock.Now().Add(LookEvery))
}

// wake wakes the one that has waited longest and is not awake.
func wake(q []*Waiter) {
	for _, w := range q {
		select {
		case w.woke <- struct{}{}:
			return
		default:
		}
	}
}

// Next wakes another one that asks for the same, as there may be more.
func (w *Waiter) Next() {
	w.room.mu.Lock()
	defer w.room.mu.Unlock()
	wake(slices.DeleteFunc(slices.Clone(w.room.queues[w.of]), func(other *Waiter) bool { return other == w }))
}

// Listen waits until what is announced is heard, or the time is over or the caller has gone: what was announced before has woken nothing.
func (w *Waiter) Listen(ctx context.Context, until time.Time) {
	if w.ear == nil {
		return
	}
	over := make(chan struct{})
	stop := w.room.Clock.AfterFunc(max(until.Sub(w.room.Clock.Now()), 0), func() { close(over) })
	defer stop()
	select {
	case <-w.ear:
	case <-over:
	case <-ctx.Done():
	}
}

// Wait waits until it is woken; false if the time is over or the caller has gone. Something is due at a time of the store; zero for never.
func (w *Waiter) Wait(ctx context.Context, due, until time.Time) bool {
	r := w.room
	if !due.IsZero() {
		r.due(due)
	}
	over := make(chan struct{})
	stop := r.Clock.AfterFunc(max(until.Sub(r.Clock.Now()), 0), func() { close(over) })
	defer stop()
	select {
	case <-w.woke:
		return true
	case <-over:
		return false
	case <-ctx.Done():
		return false
	}
}

// Leave takes a worker out, which returns soon or does not. One that was woken and has not looked passes that on.
func (w *Waiter) Leave(returns bool) {
	r := w.room
	r.mu.Lock()
	defer r.mu.Unlock()
	q := slices.DeleteFunc(r.queues[w.of], func(other *Waiter) bool { return other == w })
	if r.queues[w.of] = q; len(q) == 0 {
		delete(r.queues, w.of)
	}
	select {
	case <-w.woke:
		wake(q)
	default:
	}
	if len(r.queues) > 0 {
		return
	}
	if r.disarm != nil {
		r.disarm()
		r.disarm = nil
	}
	if !returns || r.stop == nil {
		r.hush()
		return
	}
	r.deaf = r.Clock.AfterFunc(Lingers, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.hush()
	})
}
