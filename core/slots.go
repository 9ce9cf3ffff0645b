package core

import (
	"context"
	"runtime"
	"sync"
)

// slots is a semaphore that hands out several places at once: as many as are free, but at least one.
type slots struct {
	mu    *sync.Mutex
	free  *int
	freed chan struct{} // has a token when somebody may look again
}

func newSlots(n int) slots {
	return slots{mu: new(sync.Mutex), free: &n, freed: make(chan struct{}, 1)}
}

// take takes between 1 and most places, waiting for the first one until ctx is done; 0 then.
func (s slots) take(ctx context.Context, most int) int {
	for {
		if ctx.Err() != nil {
			s.signal() // the token that came, if one did, is for somebody else
			return 0
		}
		if n := s.grab(most); n > 0 {
			if n < most {
				runtime.Gosched() // runs that are about to end come along
				n += s.grab(most - n)
			}
			return n
		}
		select {
		case <-s.freed:
		case <-ctx.Done():
		}
	}
}

func (s slots) grab(most int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(most, *s.free)
	*s.free -= n
	if n > 0 && *s.free > 0 {
		s.signal() // somebody else may be waiting too
	}
	return n
}

// give gives places back.
func (s slots) give(n int) {
	if n == 0 {
		return
	}
	s.mu.Lock()
	*s.free += n
	s.mu.Unlock()
	s.signal()
}

func (s slots) signal() {
	select {
	case s.freed <- struct{}{}:
	default:
	}
}
