// Package given is what the tests of a store are given: a clock that they set, options that they vary, and requests about tasks as they were submitted.
package given

import (
	"sync"
	"time"
)

// Options are the settings of a store that the tests vary. Zero means the store's default.
// Each test sets only what it is about.
type Options struct {
	Partitions int
	Retention  time.Duration
	Kept       int
	KeptBytes  int
	MaxTasks   int
	MaxBytes   int
}

// Clock is a store's clock that stands still until it is moved.
// It never moves by itself, so that "a millisecond before" and "a millisecond after" can be tested.
type Clock struct {
	mu  sync.Mutex
	now time.Time
	// set are the listeners of OnSet.
	set []func(now time.Time)
}

// NewClock is a clock at some time in 2026.
// Any fixed time would do; one that is not now shows a store that reads another clock.
func NewClock() *Clock {
	return &Clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

// Now is the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc is the machine's: stores drive no timers.
func (*Clock) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

// Advance moves the clock on.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	// Under the lock, so that no reader sees a time that a store has not got yet.
	for _, set := range c.set {
		set(c.now)
	}
}

// OnSet calls set with the time, now and whenever it changes: for stores whose clock is elsewhere.
func (c *Clock) OnSet(set func(now time.Time)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set = append(c.set, set)
	set(c.now)
}
