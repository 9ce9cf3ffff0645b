package memos

import (
	"context"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
)

// Waiting together: many requests that wait for one user share what is seen.

// looks lets the requests that wait for the same agent share what is seen of it: however many they are, one of them looks at a
// time, and for a small part of the time only.
// It is generic over what is seen, and not over how: both kinds of look share all of its rules.
type looks[T any] struct {
	mu     sync.Mutex
	agents map[string]*look[T]
}

// look is what was seen of an agent. What it holds is guarded by looks.mu.
type look[T any] struct {
	users int           // requests that want it; without any it goes once another look may begin
	busy  chan struct{} // closed when the look under way has ended; nil while there is none
	begun time.Time     // of the last look that succeeded; zero before the first
	free  time.Time     // when the next look may begin
	seen  T
}

// restFactor times as long as a look took, no other look at the agent is made. That bounds the cost of a user with many tasks
// to a tenth of one connection, however many clients wait and however short their poll interval is.
const restFactor = 10

// use is to be called before see; the returned function when the request is done.
// The agent's entry is kept from use to leave, and for a rest beyond that.
func (l *looks[T]) use(agent string, clock core.Clock) (leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.agents == nil {
		l.agents = map[string]*look[T]{}
	}
	one := l.agents[agent]
	if one == nil {
		one = &look[T]{}
		l.agents[agent] = one
	}
	one.users++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if one.users--; one.users > 0 {
			return
		}
		if rest := one.free.Sub(clock.Now()); rest > 0 {
			// The rest is for everybody: a client that asks again and again, one
			// request after the other, has it too.
			clock.AfterFunc(rest, func() { l.drop(agent, one) })
			return
		}
		delete(l.agents, agent)
	}
}

// drop forgets what was seen of an agent, unless a request wants it again.
func (l *looks[T]) drop(agent string, one *look[T]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// A new entry may have taken its place.
	if one.users == 0 && l.agents[agent] == one {
		delete(l.agents, agent)
	}
}

// seeing says how a request looks at an agent.
type seeing[T any] struct {
	clock core.Clock
	since time.Time                  // a look that was begun before is too old
	pause func(d time.Duration) bool // waits; false if the request waits no longer
	look  func() (T, error)          // asks the store
}

// see returns the result of a look that began at or after a given time, and when it began. If the request waits no longer, ok is false, and
// it returns the last result, which may be empty. If another request's look ends as its client goes away, it looks again.
// It loops until there is a look that is recent enough: its own or another request's.
func (l *looks[T]) see(ctx context.Context, agent string, s seeing[T]) (seen T, begun time.Time, ok bool, err error) {
	for {
		l.mu.Lock()
		one, now := l.agents[agent], s.clock.Now()
		switch {
		// Another request has looked since: no call of the store at all.
		case !one.begun.IsZero() && !one.begun.Before(s.since):
			seen, begun = one.seen, one.begun
			l.mu.Unlock()
			return seen, begun, true, nil
		// Another request is looking now: its result may do, so this request waits for it.
		case one.busy != nil:
			busy := one.busy
			l.mu.Unlock()
			select {
			case <-busy:
			case <-ctx.Done():
				return seen, begun, false, nil
			}
		// The store rests from the last look.
		case now.Before(one.free):
			seen, begun = one.seen, one.begun
			l.mu.Unlock()
			if !s.pause(one.free.Sub(now)) {
				return seen, begun, false, nil
			}
		// It is this request's turn.
		default:
			one.busy = make(chan struct{})
			l.mu.Unlock()
			if err := l.lead(one, now, s); err != nil {
				return seen, begun, false, err
			}
		}
	}
}

// lead looks for all waiting requests. Even if the store fails or panics, they are woken, and one of them tries again.
func (l *looks[T]) lead(one *look[T], now time.Time, s seeing[T]) error {
	var seen T
	var err error = problem.ErrInternal // unless it returns
	// Deferred, so that a panic wakes those who wait as well.
	defer func() {
		end := s.clock.Now()
		l.mu.Lock()
		defer l.mu.Unlock()
		if err == nil {
			one.seen, one.begun = seen, now
		}
		// A slow look earns a long rest: the cost of looking stays a tenth of the time.
		one.free = end.Add(restFactor * end.Sub(now))
		close(one.busy)
		one.busy = nil
	}()
	seen, err = s.look()
	return err
}
