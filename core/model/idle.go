package model

// How long a gate that said no is left alone.

import (
	"cmp"
	"math"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// IdleBackoff says how much less often tasks of a kind are asked about whose gate says that there is nothing to do: each
// such answer in a row multiplies the time until the next by Factor, up to Max or the task's own interval, whichever is
// longer. The first run that the gate lets through puts it back to the task's own interval.
//
// Tasks with an interval always back off. If either field is set, so do the others: a task with a cron expression leaves out
// whole occurrences until the time is reached, counted from the shortest distance of its next ones; an activity task, which
// otherwise waits for activity, is asked about again, first after its quiet time or delay times Factor, until nothing has
// happened for a week. Activity puts it back to its own time.
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

// Set reports whether somebody has said how to back off.
func (b IdleBackoff) Set() bool { return b != IdleBackoff{} }

// or is the back-off with another's fields in place of those that are zero.
func (b IdleBackoff) or(o IdleBackoff) IdleBackoff {
	return IdleBackoff{Factor: cmp.Or(b.Factor, o.Factor), Max: cmp.Or(b.Max, o.Max)}
}

// validate refuses what makes no sense. The field is one of IdleBackoff.
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

// Distance is how long after the last question the next one comes: base after none in a row that was answered with no.
func (b IdleBackoff) Distance(base time.Duration, idle int) time.Duration {
	b = b.or(IdleBackoff{Factor: DefaultIdleFactor, Max: DefaultMaxIdle})
	most := max(base, b.Max)
	// In floating point there is no overflow: what is too long is infinite, and longer than the most.
	stretched := float64(base) * math.Pow(b.Factor, float64(idle))
	if stretched < float64(most) {
		return time.Duration(stretched)
	}
	return most
}
