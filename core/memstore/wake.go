package memstore

// Wake-ups: who sleeps is told when something is due earlier.

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Wakeups subscribes to what falls due earlier than before; see [store.Waker].
func (s *Store) Wakeups(ctx context.Context) (<-chan store.Wakeup, error) {
	out := make(chan store.Wakeup, 16)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers[out] = struct{}{}
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, out)
		close(out)
	})
	return out, nil
}

// announce wakes whoever sleeps longer than until due.
func (s *Store) announce(p *partition, due store.Millis) {
	if head, ok := p.agenda.head(); !ok || due <= head.visit {
		s.wake(p, due)
	}
}

// wake tells all watchers; one whose channel is full has been woken already.
func (s *Store) wake(p *partition, due store.Millis) {
	for w := range s.watchers {
		select {
		case w <- store.Wakeup{Partition: p.index, Due: due}:
		default:
		}
	}
}
