package core

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// An occurrence is one due time of a task. What comes after one is worked out here, from its nominal time: the time on
// the clock or the grid of slots, without jitter and however late it ran.

// skippedError is the outcome of an occurrence that is not run.
type skippedError struct{ reason string }

func (e *skippedError) Error() string { return "skipped: " + e.reason }

// The reasons of a skip.
const (
	skipMisfire = "misfire" // it was missed while nobody was there to run it
	skipOverlap = "overlap" // it fell due while the task ran
	skipPaused  = "paused"  // its task was paused when its time came
	skipGate    = "gate"    // its gate said that there was nothing to do
)

// mostCounted bounds how many skipped occurrences are counted at a time.
const mostCounted = 1000

// nextDue books the next occurrence of a recurring task. Those that have fallen due meanwhile are caught up, queued or
// skipped as the task says; what is skipped is recorded.
func (r *run) nextDue(v *verdict, interval time.Duration) {
	if !r.body.fixed() {
		nominal := r.nominal()
		r.nextOccurrence()
		r.again(v, store.When{After: interval + jitter(r.body.Jitter, r.claimed.Agent, r.claimed.ID, nominal)})
		return
	}
	now, claimed := r.pull.s.storeNow(), r.info.Claimed
	next := r.after(r.nominal(), interval)
	if next == 0 { // accepted by another version, or at its end: come back to it, visibly
		r.pull.s.config.Logger.ErrorContext(r.pull.ctx, "a cron expression cannot be computed; the task is tried again in an hour",
			slog.String("agent", r.claimed.Agent), slog.String("task", r.claimed.ID))
		r.nextOccurrence()
		r.again(v, store.When{After: time.Hour})
		return
	}
	late := next <= now && interval == r.interval() // a stretched interval misses nothing: it waits
	switch {
	case late && next <= claimed && r.body.misfire() == MisfireAll && r.state.CaughtUp < r.pull.s.kind(r.claimed.Kind).CatchUp:
		r.state.CaughtUp++
		r.book(v, next, true)
		return
	case late:
		next = r.passOver(next, claimed, now)
	case next <= now:
		next = r.after(now, interval)
	}
	r.state.CaughtUp = 0
	r.book(v, next, false)
}

// passOver skips the occurrences from one on that were due before the claim, as missed, and those that fell due during the
// run, as overlapped. It returns the one that is next: the last of the latter if the task queues one.
func (r *run) passOver(first, claimed, now store.Millis) store.Millis {
	var missed, overlapped int64
	var last store.Millis
	for at := first; at != 0 && at <= now && missed+overlapped < mostCounted; at = r.after(at, r.interval()) {
		switch {
		case at <= claimed:
			missed++
		default:
			overlapped++
			last = at
		}
	}
	queue := r.body.overlap() == OverlapQueueOne && overlapped > 0
	if queue {
		overlapped--
	}
	r.skipped(missed, skipMisfire)
	r.skipped(overlapped, skipOverlap)
	if queue {
		return last // those before it are accounted for: its own run does not meet them again
	}
	return r.after(now, r.interval())
}

// after is the first occurrence after a time; zero if there is none.
func (r *run) after(at store.Millis, interval time.Duration) store.Millis {
	if r.body.Cron == "" {
		// The grid goes on from the occurrence that is planned, whatever the interval is stretched to.
		grid := r.grid()
		switch {
		case interval > r.interval():
			return store.Millis(schedule.Slot(int64(grid), int64(max(at.Add(interval)-1, r.pull.s.storeNow())), r.interval()))
		case at < grid:
			return grid
		default:
			return store.Millis(schedule.Slot(int64(grid), int64(at), r.interval()))
		}
	}
	next, err := r.pull.s.crons.next(r.body.spec(), at)
	if err != nil {
		return 0
	}
	return next
}

// grid is a time that the slots of a task counted from its start go through.
func (r *run) grid() store.Millis {
	if r.state.Nominal != 0 {
		return r.state.Nominal
	}
	return r.claimed.Due
}

// book makes the task wait for an occurrence.
func (r *run) book(v *verdict, nominal store.Millis, catchingUp bool) {
	r.nextOccurrence()
	now := r.pull.s.storeNow()
	r.state.Spread = catchingUp || nominal <= now // it is late on purpose
	due := nominal.Add(jitter(r.body.Jitter, r.claimed.Agent, r.claimed.ID, nominal))
	if !catchingUp {
		due = max(due, now)
	}
	r.state.Nominal = nominal
	r.again(v, store.When{At: due})
}

// nextOccurrence forgets what belongs to the occurrence that has ended.
func (r *run) nextOccurrence() {
	r.state.Attempt, r.state.Nominal, r.state.Checkpoint, r.state.Spread = 0, 0, nil, false
}

// skipped records occurrences that are not run. They stand before a run that has just ended: it was the last thing to
// happen.
func (r *run) skipped(n int64, reason string) {
	if n == 0 {
		return
	}
	r.state.SkipCount += n
	r.state.RunCount += n
	entry := record.Run{Started: r.pull.s.storeNow(), Outcome: string(OutcomeSkipped), Error: reason}
	if n > 1 {
		entry.Error = fmt.Sprintf("%s (%d occurrences)", reason, n)
	}
	last := len(r.state.Runs) - 1
	if last < 0 || r.state.Runs[last].Outcome == string(OutcomeSkipped) {
		r.add(entry)
		return
	}
	run := r.state.Runs[last]
	r.state.Runs = r.state.Runs[:last]
	entry.Started = run.Started
	r.add(entry)
	r.state.Add(run)
}

// failedInARow says that so many have failed.
func failedInARow(n int) string {
	if n == 1 {
		return "the last occurrence failed"
	}
	return fmt.Sprintf("%d occurrences in a row failed", n)
}

// skipOccurrence settles an occurrence that is not run.
func (r *run) skipOccurrence(v *verdict, reason string) {
	v.outcome = OutcomeSkipped
	r.crashes(nil)
	r.state.SkipCount++
	r.state.RunCount++
	r.add(record.Run{Started: r.pull.s.storeNow(), Outcome: string(OutcomeSkipped), Error: reason})
	interval := r.interval()
	if reason == skipGate {
		r.state.Idle++
		interval = schedule.Stretch(max(interval, r.pull.s.kind(r.claimed.Kind).Backoff), r.state.Idle)
	}
	switch {
	case r.body.Activity != nil:
		r.rest(v)
	case !r.body.recurs(): // there is no next occurrence: this one is asked for again
		r.sameOccurrence()
		r.again(v, store.When{After: interval})
	case r.body.Cron != "":
		r.nextDue(v, r.interval())
	default:
		r.nextDue(v, interval)
	}
}

// early settles what is not to be run at all; false if it is to be run.
func (r *run) early() (verdict, bool) {
	v := verdict{settlement: store.Settlement{Run: r.claimed.Run, Group: r.body.Group, Kind: r.claimed.Kind}}
	switch {
	case r.claimed.Cancelled:
		r.order.Store(&r.claimed.Order)
		r.endCancelled(&v, nil, r.claimed.Order, false)
	case r.body.Activity != nil && r.state.Retire != 0 && r.claimed.Due == r.state.Retire:
		v.quiet = true
		r.end(&v, store.VerbComplete, StatusCompleted, "rested")
	default:
		return v, r.misfired(&v)
	}
	return v, true
}

// putOffBefore reports whether the occurrence is due later than it was planned: its handler has put it off.
func (r *run) putOffBefore() bool {
	n := r.state.Nominal
	return n != 0 && r.claimed.Due > n.Add(jitter(r.body.Jitter, r.claimed.Agent, r.claimed.ID, n))
}

// misfired settles an occurrence that comes so late that nobody was there at its time: it is skipped, or put off once, so
// that not all that was missed runs at the same moment.
func (r *run) misfired(v *verdict) bool {
	kind := r.pull.s.kind(r.claimed.Kind)
	late := r.info.Claimed.Sub(r.claimed.Due)
	begun := r.state.Attempt > 0 || r.state.Checkpoint != nil || r.claimed.Crashes > 0 || r.putOffBefore() || r.byHand() // somebody was there
	if !r.body.recurs() || begun || r.state.Spread || late <= kind.Grace {
		return false
	}
	if r.body.misfire() == MisfireSkip || r.body.misfire() == MisfireAll && kind.CatchUp == 0 {
		r.skipOccurrence(v, skipMisfire)
		return true
	}
	window := kind.Spread // but not past the next occurrence
	if !r.body.fixed() {
		window = min(window, r.interval())
	} else if next := r.after(r.info.Claimed, r.interval()); next != 0 {
		window = min(window, next.Sub(r.info.Claimed))
	}
	wait := stable(window.Milliseconds(), r.claimed.Agent, r.claimed.ID, r.nominal())
	if wait == 0 {
		return false
	}
	v.outcome, v.status = OutcomeSnoozed, StatusWaiting
	r.sameOccurrence()
	r.state.Spread = true
	v.settlement.Verb, v.settlement.State = store.VerbAgain, r.state.Encode()
	v.settlement.Due = store.When{At: r.info.Claimed.Add(time.Duration(wait) * time.Millisecond)}
	return true
}
