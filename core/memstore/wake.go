package memstore

// Wake-ups: they reach sleeping processes when something is due earlier.

import (
	"context"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Wakeups subscribes to tasks that fall due earlier than before; see [store.Waker].
func (s *Store) Wakeups(ctx context.Context) (<-chan store.Wakeup, error) {
	// Room for a burst: a watcher that is busy for a moment misses nothing.
	out := make(chan store.Wakeup, 16)
	s.mu.Lock()
	w := s.watchers
	s.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.channels[out] = struct{}{}
	// The channel is closed under the lock, under which send sends:
	// nothing is sent on a closed channel.
	context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.channels, out)
		close(out)
	})
	return out, nil
}

// watchers are those who wait for wake-ups. They have a lock of their own, as they outlive a store that another takes the place of; see [State.Succeed].
type watchers struct {
	mu       sync.Mutex
	channels map[chan store.Wakeup]struct{}
}

// announce wakes the processes that sleep longer than until due.
// A task behind the head of the agenda changes nothing for those who sleep until then.
func (s *Store) announce(p *partition, due moment.Millis) {
	if head, ok := p.agenda.head(); !ok || due <= head.visit {
		s.wake(p, due)
	}
}

// withdraw asks for what was claimed ahead of its time, as a command may be about it. It returns until when such tasks begin; zero if all
// have by now.
func withdraw(p *partition, now moment.Millis) moment.Millis {
	if p.ahead <= now {
		return 0
	}
	p.store.watchers.send(store.Wakeup{Partition: p.index, Withdrawn: true})
	return p.ahead
}

// wake tells all watchers when something is due.
func (s *Store) wake(p *partition, due moment.Millis) {
	s.watchers.send(store.Wakeup{Partition: p.index, Due: due})
}

// hurry tells those who wait for tasks of level 1 alone of one that is due at a time.
func hurry(p *partition, t *task, due moment.Millis) {
	// guard: urgent-announced-in-memory
	if t.Level == store.LevelHigh {
		rouse(p, due)
	}
}

// rouse wakes those who wait for tasks of level 1 alone, if they wait longer than until due.
func rouse(p *partition, due moment.Millis) {
	if due < p.asked {
		p.asked = 0
		p.store.watchers.send(store.Wakeup{Partition: p.index, Urgent: true})
	}
}

// urgentFor is how long at most a claim for tasks of level 1 that finds none is enough; see [store.Claim.UrgentNext].
const urgentFor = time.Second

// urgentNext is when it is worth asking again for tasks of level 1, which a claim has looked for in vain; zero if it left some.
func urgentNext(c *claiming) moment.Millis {
	p := c.p
	if !c.r.Urgent || c.parked+c.left+c.held+len(p.open) > 0 || p.isParked(c.r.Kinds) {
		return 0
	}
	next := c.now.Add(urgentFor)
	if c.queued != 0 {
		next = min(next, c.queued)
	}
	for _, e := range p.agenda.items {
		if e.visit > c.now {
			// guard: urgent-next
			next = min(next, e.visit)
		}
	}
	p.asked = next
	return next
}

// send tells all. It never blocks: a full channel means that its reader is about to look anyway.
func (w *watchers) send(up store.Wakeup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for to := range w.channels {
		select {
		case to <- up:
		default:
		}
	}
}
