package model

// The clock: the only way in which core sees time.

import "time"

// Clock is the only source of time on the Go side of duly. It decides nothing about tasks: the store's clock decides what is due and
// which lease has expired. It measures durations and drives timers, so it may be wrong
// by any amount, as long as it goes forward.
type Clock interface {
	// Now is the time.
	Now() time.Time
	// AfterFunc calls f in its own goroutine once d has passed. The returned function prevents it, and reports
	// whether it did.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// SystemClock is the clock of the machine.
type SystemClock struct{}

// Now is time.Now.
func (SystemClock) Now() time.Time { return time.Now() }

// AfterFunc is time.AfterFunc.
func (SystemClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}
