package decide

// What happens to a recurring task after a run.

import (
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/plan"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/internal/spread"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// nextDue books the next occurrence of a recurring task. Those that have fallen due meanwhile are caught up, queued or
// skipped as the task says; skips are recorded.
func (d *Decision) nextDue(v *Verdict, interval time.Duration) {
	if d.Body.Manual {
		d.nextOccurrence()
		d.State.Nominal = moment.Never
		d.again(v, moment.When{At: moment.Never})
		return
	}
	if !d.Body.Fixed() {
		nominal := d.nominal()
		d.nextOccurrence()
		d.again(v, moment.When{After: interval + spread.Jitter(d.Body.Jitter, d.Claimed.Agent, d.Claimed.ID, nominal)})
		return
	}
	now, claimed := d.Now, d.ClaimedAt
	// guard: occurrence
	next := d.after(d.answered(d.nominal()), interval)
	if next == 0 { // accepted by another version, or at its end: try again later, with a warning
		v.Warning = warnNoCron
		d.nextOccurrence()
		d.again(v, moment.When{After: time.Hour})
		return
	}
	late := next <= now && interval == d.interval() // a stretched interval misses nothing: it waits
	switch {
	case late && next <= claimed && d.Body.MisfirePolicy() == model.MisfireAll && d.State.CaughtUp < d.Kind.CatchUp:
		d.State.CaughtUp++
		d.book(v, next, true)
		return
	case late:
		next = d.passOver(next, claimed, now)
	case next <= now:
		next = d.after(now, interval)
	}
	d.State.CaughtUp = 0
	d.book(v, next, false)
}

// passOver skips the occurrences from first on that were due before the claim, as missed, and those that fell due during the
// run, as overlapped. It returns the next one: the last of the latter if the task queues one.
func (d *Facts) passOver(first, claimed, now moment.Millis) moment.Millis {
	var missed, overlapped int64
	var last moment.Millis
	for at := first; at != 0 && at <= now && missed+overlapped < plan.MostCounted; at = d.after(at, d.interval()) {
		switch {
		case at <= claimed:
			missed++
		default:
			overlapped++
			last = at
		}
	}
	queue := d.Body.OverlapPolicy() == model.OverlapQueueOne && overlapped > 0
	if queue {
		overlapped--
	}
	d.skipped(missed, plan.SkipMisfire)
	// guard: overlap
	d.skipped(overlapped, plan.SkipOverlap)
	if queue {
		return last // those before it are counted already: its own run does not skip them again
	}
	return d.after(now, d.interval())
}

// after is the first occurrence after a time; zero if there is none.
func (d *Facts) after(at moment.Millis, interval time.Duration) moment.Millis {
	if d.Body.Cron == "" {
		// The grid continues from the planned occurrence, no matter how the interval is stretched.
		grid := d.grid()
		switch {
		case interval > d.interval():
			return moment.Millis(schedule.Slot(int64(grid), int64(max(at.Add(interval)-1, d.Now)), d.interval()))
		case at < grid:
			return grid
		default:
			return moment.Millis(schedule.Slot(int64(grid), int64(at), d.interval()))
		}
	}
	next, err := d.Next(d.Profile.Zoned(d.Body.Spec(), d.Zone), at)
	if err != nil {
		return 0
	}
	return next
}

// grid is a time that the slots of a task counted from its start go through.
func (d *Facts) grid() moment.Millis {
	if d.State.Nominal != 0 {
		return d.State.Nominal
	}
	return plan.BaseOf(d.State, d.Claimed.Due)
}

// book makes the task wait for an occurrence.
func (d *Decision) book(v *Verdict, nominal moment.Millis, catchingUp bool) {
	d.nextOccurrence()
	now := d.Now
	d.State.Spread = catchingUp || nominal <= now // it is late on purpose
	due := nominal.Add(spread.Jitter(d.Body.Jitter, d.Claimed.Agent, d.Claimed.ID, nominal))
	if !catchingUp {
		due = max(due, now)
	}
	d.State.Nominal = nominal
	d.again(v, moment.When{At: due})
}

// nextOccurrence clears what belongs to the occurrence that has ended.
func (d *Facts) nextOccurrence() {
	d.State.Attempt, d.State.Nominal, d.State.Checkpoint, d.State.Spread = 0, 0, nil, false
	d.State.PutOff, d.State.Hand = nil, false
}

// skipped records occurrences that are not run. They are placed before a run that has just ended, which happened
// last.
func (d *Facts) skipped(n int64, reason string) {
	if n == 0 {
		return
	}
	d.State.SkipCount += n
	d.State.RunCount += n
	entry := record.Run{Started: d.Now, Outcome: string(model.OutcomeSkipped), Error: reason}
	if n > 1 {
		entry.Error = fmt.Sprintf("%s (%d occurrences)", reason, n)
	}
	run, some := d.State.Runs.Pop()
	if some && run.Outcome != string(model.OutcomeSkipped) {
		entry.Started = run.Started
		d.add(entry)
		d.State.Runs.Add(run)
		return
	}
	if some {
		d.State.Runs.Add(run)
	}
	d.add(entry)
}

// skipOccurrence settles an occurrence that is not run.
func (d *Decision) skipOccurrence(v *Verdict, reason string) {
	v.Outcome = model.OutcomeSkipped
	d.crashes(nil)
	d.State.SkipCount++
	d.State.RunCount++
	d.add(record.Run{Started: d.Now, Outcome: string(model.OutcomeSkipped), Error: reason})
	if reason == plan.SkipGate {
		d.turnedAway()
		d.askLater(v)
		return
	}
	d.nextDue(v, d.interval())
}

// putOffBefore reports whether the occurrence is due later than planned, as its handler has put it off.
func (d *Facts) putOffBefore() bool {
	n := d.State.Nominal
	return n != 0 && plan.BaseOf(d.State, d.Claimed.Due) > n.Add(spread.Jitter(d.Body.Jitter, d.Claimed.Agent, d.Claimed.ID, n))
}

// misfired settles an occurrence that is so late that no process can have been running at its time: it is skipped, or put off
// once, so that not all missed ones run at the same moment.
func (d *Decision) misfired(v *Verdict) bool {
	kind := d.Kind
	late := d.ClaimedAt.Sub(d.Claimed.Due)
	begun := d.State.Attempt > 0 || d.State.Checkpoint != nil || d.Claimed.Crashes > 0 || d.putOffBefore() || d.State.Hand || d.byHand() // a process was running
	if !d.Body.Recurs() || begun || d.State.Spread || late <= kind.Grace {
		return false
	}
	if d.Body.MisfirePolicy() == model.MisfireSkip || d.Body.MisfirePolicy() == model.MisfireAll && kind.CatchUp == 0 {
		d.skipOccurrence(v, plan.SkipMisfire)
		return true
	}
	if d.Claimed.Lined { // a process was running, and its limit lets one start after the other: put off, it would have used a start for nothing
		return false
	}
	window := kind.Spread // but not past the next occurrence
	if !d.Body.Fixed() {
		window = min(window, d.interval())
	} else if next := d.after(d.ClaimedAt, d.interval()); next != 0 {
		window = min(window, next.Sub(d.ClaimedAt))
	}
	wait := spread.Among(window.Milliseconds(), d.Claimed.Agent, d.Claimed.ID, d.nominal())
	if wait == 0 {
		return false
	}
	v.Outcome, v.Status = model.OutcomeSnoozed, store.StatusWaiting
	d.sameOccurrence()
	d.State.Spread = true
	v.Settlement.Verb, v.Settlement.Due = store.VerbAgain, d.delayPastQuiet(moment.When{At: d.ClaimedAt.Add(time.Duration(wait) * time.Millisecond)})
	v.Settlement.State = d.State.Encode()
	return true
}
