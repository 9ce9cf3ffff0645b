package trigger

import (
	"sync"
	"time"
)

// Repeated deliveries. Every sender delivers at least once; without this a repeat would cost a pull.

// Occasion is what is delivered once or, in a repeat, again: one time of a schedule, or one message of a sender. The zero
// value is never a repeat.
type Occasion struct{ Of, At string }

// OccasionOf is a time of a schedule, normalised to one zone; the zero value if it is no time in RFC 3339 or the
// schedule has no name: then it is still a tick, but its repeats are not recognised.
func OccasionOf(schedule, at string) Occasion {
	when, err := time.Parse(time.RFC3339, at)
	if schedule == "" || err != nil {
		return Occasion{}
	}
	return Occasion{schedule, when.UTC().Format(time.RFC3339Nano)}
}

// repeats knows the latest occasions that were served in this process. It only saves the work of a repeat: that no task
// runs twice is what the lease in the store is for, as a repeat may meet another process.
// An array is enough, and bounds the memory by itself.
type repeats struct {
	mu     sync.Mutex
	latest [mostOccasions]Occasion
	next   int
}

// mostOccasions is far more than the repeats of one schedule: they come within a day, and one process lives for hours.
const mostOccasions = 64

// has reports whether an occasion was served.
func (r *repeats) has(key Occasion) bool {
	if key == (Occasion{}) {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hasLocked(key)
}

// hasLocked is has for callers that hold mu.
func (r *repeats) hasLocked(key Occasion) bool {
	for i := range r.latest {
		if r.latest[i] == key {
			return true
		}
	}
	return false
}

// add remembers an occasion, in place of the oldest.
func (r *repeats) add(key Occasion) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if key == (Occasion{}) || r.hasLocked(key) {
		return
	}
	r.latest[r.next] = key
	r.next = (r.next + 1) % mostOccasions
}
