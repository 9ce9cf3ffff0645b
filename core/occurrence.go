package core

import (
	"fmt"
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
func (d *decision) nextDue(v *verdict, interval time.Duration) {
	if d.body.Manual {
		d.nextOccurrence()
		d.state.Nominal = store.Never
		d.again(v, store.When{At: store.Never})
		return
	}
	if !d.body.fixed() {
		nominal := d.nominal()
		d.nextOccurrence()
		d.again(v, store.When{After: interval + jitter(d.body.Jitter, d.claimed.Agent, d.claimed.ID, nominal)})
		return
	}
	now, claimed := d.now, d.claimedAt
	next := d.after(d.answered(d.nominal()), interval)
	if next == 0 { // accepted by another version, or at its end: come back to it, visibly
		v.warning = warnNoCron
		d.nextOccurrence()
		d.again(v, store.When{After: time.Hour})
		return
	}
	late := next <= now && interval == d.interval() // a stretched interval misses nothing: it waits
	switch {
	case late && next <= claimed && d.body.misfire() == MisfireAll && d.state.CaughtUp < d.kind.CatchUp:
		d.state.CaughtUp++
		d.book(v, next, true)
		return
	case late:
		next = d.passOver(next, claimed, now)
	case next <= now:
		next = d.after(now, interval)
	}
	d.state.CaughtUp = 0
	d.book(v, next, false)
}

// passOver skips the occurrences from one on that were due before the claim, as missed, and those that fell due during the
// run, as overlapped. It returns the one that is next: the last of the latter if the task queues one.
func (d *decision) passOver(first, claimed, now store.Millis) store.Millis {
	var missed, overlapped int64
	var last store.Millis
	for at := first; at != 0 && at <= now && missed+overlapped < mostCounted; at = d.after(at, d.interval()) {
		switch {
		case at <= claimed:
			missed++
		default:
			overlapped++
			last = at
		}
	}
	queue := d.body.overlap() == OverlapQueueOne && overlapped > 0
	if queue {
		overlapped--
	}
	d.skipped(missed, skipMisfire)
	d.skipped(overlapped, skipOverlap)
	if queue {
		return last // those before it are accounted for: its own run does not meet them again
	}
	return d.after(now, d.interval())
}

// after is the first occurrence after a time; zero if there is none.
func (d *decision) after(at store.Millis, interval time.Duration) store.Millis {
	if d.body.Cron == "" {
		// The grid continues from the occurrence that is planned, whatever the interval is stretched to.
		grid := d.grid()
		switch {
		case interval > d.interval():
			return store.Millis(schedule.Slot(int64(grid), int64(max(at.Add(interval)-1, d.now)), d.interval()))
		case at < grid:
			return grid
		default:
			return store.Millis(schedule.Slot(int64(grid), int64(at), d.interval()))
		}
	}
	next, err := d.next(d.habits.zoned(d.body.spec(), d.zone), at)
	if err != nil {
		return 0
	}
	return next
}

// grid is a time that the slots of a task counted from its start go through.
func (d *decision) grid() store.Millis {
	if d.state.Nominal != 0 {
		return d.state.Nominal
	}
	return baseOf(d.state, d.claimed.Due)
}

// book makes the task wait for an occurrence.
func (d *decision) book(v *verdict, nominal store.Millis, catchingUp bool) {
	d.nextOccurrence()
	now := d.now
	d.state.Spread = catchingUp || nominal <= now // it is late on purpose
	due := nominal.Add(jitter(d.body.Jitter, d.claimed.Agent, d.claimed.ID, nominal))
	if !catchingUp {
		due = max(due, now)
	}
	d.state.Nominal = nominal
	d.again(v, store.When{At: due})
}

// nextOccurrence forgets what belongs to the occurrence that has ended.
func (d *decision) nextOccurrence() {
	d.state.Attempt, d.state.Nominal, d.state.Checkpoint, d.state.Spread = 0, 0, nil, false
	d.state.PutOff, d.state.Hand = nil, false
}

// skipped records occurrences that are not run. They stand before a run that has just ended: it was the last thing to
// happen.
func (d *decision) skipped(n int64, reason string) {
	if n == 0 {
		return
	}
	d.state.SkipCount += n
	d.state.RunCount += n
	entry := record.Run{Started: d.now, Outcome: string(OutcomeSkipped), Error: reason}
	if n > 1 {
		entry.Error = fmt.Sprintf("%s (%d occurrences)", reason, n)
	}
	run, some := d.state.Runs.Pop()
	if some && run.Outcome != string(OutcomeSkipped) {
		entry.Started = run.Started
		d.add(entry)
		d.state.Runs.Add(run)
		return
	}
	if some {
		d.state.Runs.Add(run)
	}
	d.add(entry)
}

// failedInARow says that so many have failed.
func failedInARow(n int) string {
	if n == 1 {
		return "the last occurrence failed"
	}
	return fmt.Sprintf("%d occurrences in a row failed", n)
}

// skipOccurrence settles an occurrence that is not run.
func (d *decision) skipOccurrence(v *verdict, reason string) {
	v.outcome = OutcomeSkipped
	d.crashes(nil)
	d.state.SkipCount++
	d.state.RunCount++
	d.add(record.Run{Started: d.now, Outcome: string(OutcomeSkipped), Error: reason})
	if reason == skipGate {
		d.turnedAway()
		d.askLater(v)
		return
	}
	d.nextDue(v, d.interval())
}

// putOffBefore reports whether the occurrence is due later than it was planned: its handler has put it off.
func (d *decision) putOffBefore() bool {
	n := d.state.Nominal
	return n != 0 && baseOf(d.state, d.claimed.Due) > n.Add(jitter(d.body.Jitter, d.claimed.Agent, d.claimed.ID, n))
}

// misfired settles an occurrence that comes so late that nobody was there at its time: it is skipped, or put off once, so
// that not all that was missed runs at the same moment.
func (d *decision) misfired(v *verdict) bool {
	kind := d.kind
	late := d.claimedAt.Sub(d.claimed.Due)
	begun := d.state.Attempt > 0 || d.state.Checkpoint != nil || d.claimed.Crashes > 0 || d.putOffBefore() || d.state.Hand || d.byHand() // somebody was there
	if !d.body.recurs() || begun || d.state.Spread || late <= kind.Grace {
		return false
	}
	if d.body.misfire() == MisfireSkip || d.body.misfire() == MisfireAll && kind.CatchUp == 0 {
		d.skipOccurrence(v, skipMisfire)
		return true
	}
	if d.claimed.Lined { // somebody was there, and its limit lets one start after the other: put off, it would have used a start for nothing
		return false
	}
	window := kind.Spread // but not past the next occurrence
	if !d.body.fixed() {
		window = min(window, d.interval())
	} else if next := d.after(d.claimedAt, d.interval()); next != 0 {
		window = min(window, next.Sub(d.claimedAt))
	}
	wait := stable(window.Milliseconds(), d.claimed.Agent, d.claimed.ID, d.nominal())
	if wait == 0 {
		return false
	}
	v.outcome, v.status = OutcomeSnoozed, StatusWaiting
	d.sameOccurrence()
	d.state.Spread = true
	v.settlement.Verb, v.settlement.Due = store.VerbAgain, d.hush(store.When{At: d.claimedAt.Add(time.Duration(wait) * time.Millisecond)})
	v.settlement.State = d.state.Encode()
	return true
}
