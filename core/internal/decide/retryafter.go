package decide

// RetryAfter: handlers that ask to be called again later, and how often that may happen.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/outcome"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// retryLater repeats the occurrence at the time that its handler asked for, uncharged: the limit of another service is no fault of
// the task. After too many in a row it is a failed attempt, which is repeated no sooner either.
func (d *Decision) retryLater(v *Verdict, later *outcome.RetryAfterError, err error) {
	kind := d.pauses()
	d.State.RetryAfters++
	asked := min(max(later.At.Sub(d.Clock), 0), check.MaxDelay)
	// A server that says "now" is not asked in a loop, and tasks that got the same time are not retried together.
	if kind.Backoff <= 0 { // none is meant for attempts, whose number is bounded
		kind.Backoff, kind.MaxBackoff = model.DefaultBackoff, max(kind.MaxBackoff, model.DefaultBackoff)
	}
	// guard: retry-after
	pause := max(asked, kind.Backoff) + d.pauseOf(kind, min(d.State.RetryAfters, record.KeptRuns))
	v.spent().Busy = max(asked, kind.Backoff)
	if key := d.Body.LimitKey; key != "" && asked > 0 {
		note := model.Order{By: check.ByDuly, Reason: check.Clip(err.Error())}
		v.Busy = &store.Hold{Target: store.Target{Key: key}, Note: note.Encode(), Until: moment.When{After: asked}, Prolong: true}
	}
	// guard: retry-after-charged
	if d.State.RetryAfters > kind.MaxRetryAfters {
		v.pause = pause
		d.fail(v, err)
		return
	}
	v.Why = err
	d.note(v, model.OutcomeSnoozed, err)
	d.sameOccurrence()
	d.again(v, moment.When{After: pause})
}

// pauses are the settings of the task's kind, with the pauses between attempts that the task itself names.
func (d *Facts) pauses() model.KindConfig {
	kind := *d.Kind
	switch own := d.Body.Backoff; {
	case own > 0:
		kind.Backoff, kind.MaxBackoff = own, max(kind.MaxBackoff, own)
	case own < 0:
		kind.Backoff = 0
	}
	return kind
}

// countRetryAfters ends a row of RetryAfters with any other outcome.
func countRetryAfters(s *codec.State, err error) {
	if !IsOf[*outcome.RetryAfterError](err) {
		s.RetryAfters = 0
	}
}

// Delay puts a due time off by the pause that the run asked for, and to the end of the interval that the task demands between
// two starts.
func (d *Decision) Delay(v *Verdict, due moment.When) moment.When {
	if v.pause == 0 && d.Body.MinInterval == 0 {
		return due
	}
	now := d.Now
	wait := max(v.pause, d.leastWait(now))
	if due.At != 0 {
		due.At = max(due.At, now.Add(wait))
	} else {
		due.After = max(due.After, wait)
	}
	return due
}

// leastWait is how long it takes until the task may start again.
func (d *Facts) leastWait(now moment.Millis) time.Duration {
	// guard: min-interval
	if d.Body.MinInterval == 0 {
		return 0
	}
	return max(d.ClaimedAt.Add(d.Body.MinInterval).Sub(now), 0)
}
