package dulytest

// The clock that a test turns.

import (
	"slices"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// Clock is a [core.Clock] that does not move until it is advanced. It starts at midnight UTC of 1 January 2030. It is safe for
// concurrent use: a handler may advance it, to see its own timeout.
//
// It moves by itself only where a scheduler would wait for ever otherwise: a timer of at most two seconds that is still set after
// that much real time, such as the pause before a store that failed is asked again, takes the clock with it.
type Clock struct {
	mu     sync.Mutex
	now    time.Time
	timers []*timer // in the order in which they were set
}

var _ core.Clock = (*Clock)(nil)

type timer struct {
	at   time.Time
	call func()
	real *time.Timer // of a short timer
}

// short is the longest timer that real time fires too: schedulers pause for at most so long.
const short = 2 * time.Second

func newClock() *Clock { return &Clock{now: begin} }

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance turns the clock forward. Each timer that falls due on the way is called, in a goroutine of its own, with the clock at
// its time; Advance does not wait for them. It panics if d is negative: time does not go back.
func (c *Clock) Advance(d time.Duration) {
	if d < 0 {
		panic("dulytest: Advance: the duration must not be negative, not " + d.String())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn(c.now.Add(d))
}

// turn sets the clock to end, and calls what falls due on the way. The mutex is held.
func (c *Clock) turn(end time.Time) {
	for next := c.next(end); next != nil; next = c.next(end) {
		c.remove(next)
		c.now = next.at
		go next.call()
	}
	c.now = end
}

// next is the timer that is due first, by end at the latest; nil for none. The mutex is held.
func (c *Clock) next(end time.Time) *timer {
	var first *timer
	for _, t := range c.timers {
		if !t.at.After(end) && (first == nil || t.at.Before(first.at)) {
			first = t
		}
	}
	return first
}

// remove takes a timer out, and reports whether it was still there. The mutex is held.
func (c *Clock) remove(t *timer) bool {
	at := slices.Index(c.timers, t)
	if at >= 0 {
		c.timers = slices.Delete(c.timers, at, at+1)
		if t.real != nil {
			t.real.Stop()
		}
	}
	return at >= 0
}

// AfterFunc calls f in a goroutine of its own once the clock has been advanced by d; at once if d is not positive. The returned
// function prevents it, and reports whether it did.
func (c *Clock) AfterFunc(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if d <= 0 {
		go f()
		return func() bool { return false }
	}
	t := &timer{at: c.now.Add(d), call: f}
	c.timers = append(c.timers, t)
	if d <= short {
		t.real = time.AfterFunc(d, func() { //nolint:forbidigo // what ends a wait that the test knows nothing of
			c.mu.Lock()
			defer c.mu.Unlock()
			if slices.Contains(c.timers, t) {
				c.turn(t.at)
			}
		})
	}
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.remove(t)
	}
}
