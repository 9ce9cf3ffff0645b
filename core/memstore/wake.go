package memstore

// Wake-ups: they reach sleeping processes when something is due earlier.

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Wakeups subscribes to tasks that fall due earlier than before; see [store.Waker].
func (s *Store) Wakeups(ctx context.Context) (<-chan store.Wakeup, error) {
	// Room for a burst: a watcher that is busy for a moment misses nothing.
	out := make(chan store.Wakeup, 16)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.watchers[out] = struct{}{}
	// The channel is closed under the lock, under which wake sends:
	// nothing is sent on a closed channel.
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, out)
		close(out)
	})
	return out, nil
}

// announce wakes the processes that sleep longer than until due.
// A task behind the head of the agenda changes nothing for those who sleep until then.
func (s *Store) announce(p *partition, due store.Millis) {
	if head, ok := p.agenda.head(); !ok || due <= head.visit {
		s.wake(p, due)
	}
}

// withdraw asks for what was claimed ahead of its time, as a command may be about it. It returns until when such tasks begin; zero if all
// have by now.
func withdraw(p *partition, now store.Millis) store.Millis {
	if p.ahead <= now {
		return 0
	}
	send(p.store.watchers, store.Wakeup{Partition: p.index, Withdrawn: true})
	return p.ahead
}

// wake sends a wake-up to all watchers. It never blocks: a full channel means
// that a wake-up is already pending.
func (s *Store) wake(p *partition, due store.Millis) {
	send(s.watchers, store.Wakeup{Partition: p.index, Due: due})
}

func send(watchers map[chan store.Wakeup]struct{}, w store.Wakeup) {
	for to := range watchers {
		select {
		case to <- w:
		default:
		}
	}
}
