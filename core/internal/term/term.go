// Package term is the time that a pull has: when it began, when it has to end, and what of that is left for its calls and runs.
package term

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/decide"
	"github.com/seed-6f6f2c11/duly/core/internal/slots"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Term is when a pull has begun, and when it has to end.
type Term struct {
	Clock  model.Clock
	Margin time.Duration // Config.Margin
	Begun  time.Time
	End    time.Time   // when handlers are cancelled at the latest; zero for no limit
	Spent  atomic.Bool // its time was up, rather than its caller's patience
}

// SortPatience is how long suspects of one sort wait for those of another before they have their turn: a small part of a pull that has an
// end, as they are to start in it.
func (t *Term) SortPatience() time.Duration {
	if t.End.IsZero() {
		return slots.SuspectsLinger
	}
	return t.End.Sub(t.Begun) / 8
}

// Call is the context of one call of the store within the pull: it has a deadline before the pull's end, regardless of the
// caller's context, and is not cut off before that, as tasks that a claim has taken would stay under lease.
func (t *Term) Call(ctx context.Context, longest time.Duration) (context.Context, context.CancelFunc) {
	if !t.End.IsZero() {
		longest = min(longest, max(t.End.Sub(t.Clock.Now()), 0)+t.Margin/2)
	}
	return context.WithTimeout(context.WithoutCancel(ctx), longest)
}

// Fresh reports whether a run that begins at a time has nearly all the time of the pull before it.
func (t *Term) Fresh(at time.Time) bool {
	return t.End.Sub(at) >= t.End.Sub(t.Begun)*9/10
}

// Budget is the time that a run had which has just ended after so long.
func (t *Term) Budget(took time.Duration) decide.Budget {
	if t.End.IsZero() {
		return decide.Budget{}
	}
	begun := t.Clock.Now().Add(-took)
	return decide.Budget{Spent: t.Spent.Load(), Left: t.End.Sub(begun), Whole: t.End.Sub(t.Begun), NearlyAll: t.Fresh(begun)}
}

// SettleBy is by when outcomes have to be stored of a pull that has an end. A host that stops the process at its limit leaves no time for
// more; a part of the margin is for the report.
func (t *Term) SettleBy() time.Time { return t.End.Add(t.Margin * 3 / 4) }
