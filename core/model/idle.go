package model

// How long until a gate that said no is asked again.

import (
	"cmp"
	"math"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// IdleBackoff says how much less often the gate of a kind is asked about a task while it says that there is nothing to do: each
// such answer in a row multiplies the time until the next question by Factor, up to the longer of Max and the task's own
// interval. The first run that the gate lets through resets it to the task's own interval.
//
// Tasks with an interval always back off. If either field is set, so do the others: a task with a cron expression skips
// whole occurrences until the time is reached, counted from the shortest distance between its next ones; the gate of an activity
// task, which otherwise waits for activity, is asked again, first after its quiet time or delay times Factor, until nothing has
// happened for a week. Activity resets it to its own time.
type IdleBackoff struct {
	Factor float64       // between 1, for no back-off, and 100; DefaultIdleFactor if zero
	Max    time.Duration // DefaultMaxIdle if zero
}

// Defaults of IdleBackoff.
const (
	DefaultIdleFactor = 2
	DefaultMaxIdle    = 5 * time.Minute
	mostIdleFactor    = 100
)

// Set reports whether a back-off is configured.
func (b IdleBackoff) Set() bool { return b != IdleBackoff{} }

// or returns the back-off, with zero fields taken from o.
func (b IdleBackoff) or(o IdleBackoff) IdleBackoff {
	return IdleBackoff{Factor: cmp.Or(b.Factor, o.Factor), Max: cmp.Or(b.Max, o.Max)}
}

// validate refuses invalid settings. The field of its error is one of IdleBackoff.
func (b IdleBackoff) validate() *store.ConfigError {
	switch {
	case b.Factor != 0 && !(b.Factor >= 1 && b.Factor <= mostIdleFactor): // so that NaN is refused too
		return check.Misconfigured("Factor", b.Factor, "must be between 1 and %d, not %v", mostIdleFactor, b.Factor)
	case b.Max < 0 || b.Max > check.MaxDelay:
		return check.Misconfigured("Max", b.Max, "must be between 0 and %s, not %s", check.MaxDelay, b.Max)
	default:
		return nil
	}
}

// Distance is the time from one question to the next after idle answers of no in a row: base for none.
func (b IdleBackoff) Distance(base time.Duration, idle int) time.Duration {
	b = b.or(IdleBackoff{Factor: DefaultIdleFactor, Max: DefaultMaxIdle})
	most := max(base, b.Max)
	// Floating point does not overflow: a time that is too long is infinite, and longer than most.
	stretched := float64(base) * math.Pow(b.Factor, float64(idle))
	if stretched < float64(most) {
		return time.Duration(stretched)
	}
	return most
}
