package world

// Time: the bubble's, the store's, and those of the processes, which may be wrong. The driver fires all timers.

import (
	"context"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
)

// elapsed is how much of the history has passed.
func (w *World) elapsed() time.Duration {
	return time.Since(w.began)
}

// storeTime is the store's clock.
// No skew changes it.
func (w *World) storeTime() time.Time { return draw.Begin.Add(w.elapsed()) }

// storeClock is the store's clock, as a store in memory asks for it. A store that is given its past again sees the times of then.
type storeClock struct {
	w    *World
	then *time.Time
}

// Now is the store's time.
func (c *storeClock) Now() time.Time {
	if c.then != nil {
		return *c.then
	}
	return c.w.storeTime()
}

// clock is the clock of a process.
type clock struct{ p *process }

// timer is something that a process does at a time.
type timer struct {
	at   time.Duration
	seq  int
	call func()
}

// Now is what the process thinks that the time is.
// Only what it reads is wrong, by a fixed skew: spans are measured correctly by every process.
func (c clock) Now() time.Time { return c.p.w.storeTime().Add(c.p.plan.Skew) }

// AfterFunc has the driver call f when its time has come.
// A timer of a process that is frozen fires late, and one of a dead process never.
func (c clock) AfterFunc(d time.Duration, f func()) func() bool {
	w, p := c.p.w, c.p
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seq++
	t := &timer{at: w.elapsed() + max(d, 0), seq: w.seq, call: f}
	p.timers = append(p.timers, t)
	return func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		at := slices.Index(p.timers, t)
		if at >= 0 {
			p.timers = slices.Delete(p.timers, at, at+1)
		}
		return at >= 0
	}
}

// deadline is when a context ends by itself, in the time of the history; false if never.
func (w *World) deadline(ctx context.Context) (time.Duration, bool) {
	at, ok := ctx.Deadline()
	return at.Sub(w.began), ok
}

// AfterFunc makes it a clock of a scheduler that runs nothing.
func (*storeClock) AfterFunc(time.Duration, func()) func() bool { return func() bool { return true } }
