// Package ahead keeps what was claimed before its time until that time has come by the clock of the store.
package ahead

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// StartWithin is how late a task starts at most that was claimed ahead of its time: one that comes later is given back. A pause waits until
// none starts any more.
const StartWithin = 50 * time.Millisecond

// drift is how much faster the clock of a process may run than that of a store, as a part of the time that passes: one in so many.
// Clocks that are kept by NTP differ by less.
const drift = 5000

// Clock is a lower bound of the clock of a store, learned from answers: when one is received the store's clock shows the time in it, or
// more. It is never ahead of the store's clock, and after a few answers hardly behind it, although these have whole milliseconds.
//
// It counts by the monotonic clock of the process: a step of the machine's clock changes nothing.
type Clock struct {
	at    time.Time // by our clock; zero before the first answer
	shows time.Time // what the store's clock showed then, at least
}

// Observe learns from an answer that has a time of the store, to a call that was sent and answered by our clock.
func (c *Clock) Observe(now moment.Millis, sent, received time.Time) {
	known := c.now(received)
	// Where it was put back, or another server answers, the bound that was known is too high.
	back := known.After(now.Add(time.Millisecond).Time().Add(received.Sub(sent)))
	if c.at.IsZero() || back || !now.Time().Before(known) {
		c.at, c.shows = received, now.Time()
	}
}

// now is what the store's clock shows at a time of ours, at least.
func (c *Clock) now(ours time.Time) time.Time {
	passed := ours.Sub(c.at)
	return c.shows.Add(passed - passed/drift)
}

// Reaches is when the store's clock has certainly come to a time, by our clock.
func (c *Clock) Reaches(at moment.Millis) time.Time {
	// guard: ahead-at-once
	left := at.Time().Sub(c.shows)
	return c.at.Add(left + left/drift + time.Nanosecond)
}
