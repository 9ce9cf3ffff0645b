package core

// RetryAfter: handlers that were told when to come back, and how often that may happen.

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// DefaultMaxRetryAfters is how often in a row a task may be told to come back later without being charged.
const DefaultMaxRetryAfters = 100

// retryLater repeats the occurrence at the time that its handler asked for, uncharged: somebody else's limit is no fault of
// the task. Once there were too many in a row it is a failed attempt, which is repeated no sooner either.
func (d *decision) retryLater(v *verdict, later *retryAfterError, err error) {
	kind := d.pauses()
	d.state.RetryAfters++
	asked := min(max(later.at.Sub(d.clock), 0), maxDelay)
	// A server that says "now" is not asked in a loop, and tasks that were told the same time do not come back together.
	if kind.Backoff <= 0 { // none is meant for attempts, which are counted
		kind.Backoff, kind.MaxBackoff = DefaultBackoff, max(kind.MaxBackoff, DefaultBackoff)
	}
	pause := max(asked, kind.Backoff) + d.pauseOf(kind, min(d.state.RetryAfters, record.KeptRuns))
	v.spent().Busy = max(asked, kind.Backoff)
	if key := d.body.LimitKey; key != "" && asked > 0 {
		note := Order{By: byDuly, Reason: clip(err.Error())}
		v.busy = &store.Hold{Target: store.Target{Key: key}, Note: note.encode(), Until: store.When{After: asked}, Prolong: true}
	}
	if d.state.RetryAfters > kind.MaxRetryAfters {
		v.pause = pause
		d.fail(v, err)
		return
	}
	v.why = err
	d.note(v, OutcomeSnoozed, err)
	d.sameOccurrence()
	d.again(v, store.When{After: pause})
}

// pauses are the settings of the task's kind, with the pauses between attempts that the task itself names.
func (d *decision) pauses() KindConfig {
	kind := *d.kind
	switch own := d.body.Backoff; {
	case own > 0:
		kind.Backoff, kind.MaxBackoff = own, max(kind.MaxBackoff, own)
	case own < 0:
		kind.Backoff = 0
	}
	return kind
}

// countRetryAfters ends a row of RetryAfters with any other outcome.
func countRetryAfters(s *state, err error) {
	if !isOf[*retryAfterError](err) {
		s.RetryAfters = 0
	}
}

// delay puts a due time off by what the run was told to wait, and to the end of the interval that the task demands between
// two starts.
func (d *decision) delay(v *verdict, due store.When) store.When {
	if v.pause == 0 && d.body.MinInterval == 0 {
		return due
	}
	now := d.now
	wait := max(v.pause, d.leastWait(now))
	if due.At != 0 {
		due.At = max(due.At, now.Add(wait))
	} else {
		due.After = max(due.After, wait)
	}
	return due
}

// leastWait is how long it takes until the task may start again.
func (d *decision) leastWait(now store.Millis) time.Duration {
	if d.body.MinInterval == 0 {
		return 0
	}
	return max(d.claimedAt.Add(d.body.MinInterval).Sub(now), 0)
}

// holdBusy holds the limit keys of runs that were told to come back later, for all agents: of each key once, until the
// latest time that was asked for. It is tried once. Without it the other tasks of the key are told the same one by one.
func (t *settler) holdBusy(ctx context.Context, batch []*run) {
	var holds []store.Hold
	for i := range batch {
		c := batch[i].verdict.busy
		if c == nil {
			continue
		}
		same := func(other store.Hold) bool { return other.Target == c.Target }
		if at := slices.IndexFunc(holds, same); at < 0 {
			holds = append(holds, *c)
		} else if c.Until.After > holds[at].Until.After {
			holds[at] = *c
		}
	}
	if len(holds) == 0 {
		return
	}
	effects, err := t.s.store.Hold(ctx, holds)
	if err != nil {
		t.s.config.Logger.WarnContext(ctx, "the tasks of a limit key could not be paused together; each retries by itself", slog.Any("err", err))
		return
	}
	for i := range effects {
		if t.s.tells() && effects[i].Code != store.EffectNone {
			why := decodeHold(holds[i].Note)
			t.s.emit(Event{Type: EventHold, Key: holds[i].Target.Key, By: why.By, Reason: why.Reason, Next: t.s.storeNow().Add(holds[i].Until.After).Time()})
		}
	}
}
