package core

// The host's door: what a program asks of a scheduler that decides when it pulls, such as a daemon or a function.

import (
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/internal/ahead"
	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/horizon"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Host is what a host needs of a scheduler beside the pulls: when to pull again, whom to tell that it lives, and what to look after meanwhile. Who
// writes handlers or submits tasks needs none of it. Its methods are the scheduler's: see [Scheduler]. It is safe for concurrent use.
type Host struct{ s *Scheduler }

// NewSeries makes a series whose pulls look again at a partition that has reported nothing for so long: so they find what no process
// announces, such as the tasks of a process that died.
func (h *Host) NewSeries(every time.Duration) *Series {
	h.s.alarm.Lives()
	q := &Series{s: h.s, every: every, known: horizon.NewSeries(&h.s.partitions, h.s.slots, h.s.presence.Others, h.s.config.Ahead)}
	q.settler.s, q.settler.series = h.s, q
	q.waiting = ahead.NewWaiting(h.s.config.Clock, q.begin)
	return q
}

// Until is how long it is until t, a time of the store's clock as Report.NextDueAt is, judged by the last answer of the
// store. Hosts sleep by it, so that their own clock does not matter.
func (h *Host) Until(t time.Time) time.Duration { return t.Sub(h.s.base.StoreNow().Time()) }

// Slots returns how the slots of this process are used.
func (h *Host) Slots() model.SlotStats {
	st := h.s.slots.Stats()
	st.OfOneAgent = h.s.pulls.ofOneAgent()
	return st
}

// Waker is the store, if it announces what falls due early; nil otherwise.
func (h *Host) Waker() store.Waker { return h.s.waker }

// Partitions is the number of partitions of the store; see [store.PartitionOf].
func (h *Host) Partitions() int { return h.s.store.Partitions() }

// Patrol audits the next page of the store, as [Scheduler.Audit] does, and repairs what it finds, so that a task that would have stopped
// silently runs on without a command. Called every few seconds it goes round all partitions, or those that are named. Each
// fault is an event, and an error in the log: once when it is repaired, and once if it cannot be. A partition that does not answer
// begins again when the others have had their turn.
func (h *Host) Patrol(ctx context.Context, partitions []int) error {
	return h.s.patrol.Next(ctx, partitions)
}

// Announce stores what this process runs, unless it has done so within the last 20 seconds: a host that lives on, such as a daemon, calls it
// after each pull, so that it is among [Scheduler.Processes] while it is idle too. It costs one command, and does nothing without Config.Presence.
// The runs counted since the last time are added to what Config.Recent keeps, every five seconds; what waits, and what of budgets is used, is
// measured every five minutes by one of all processes.
func (h *Host) Announce(ctx context.Context) {
	h.s.runCounters.Measure(ctx)
	h.s.runCounters.Flush(ctx, inspect.TallyEvery)
	if h.s.config.Presence == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, base.LongestLook)
	defer cancel()
	h.s.presence.Announce(ctx, base.LiveEvery, base.AnnounceFor)
}

// Retire takes back what this process has announced: a host that has called Announce calls it when it ends, so that the process is not
// taken for an idle one that leaves work undone. It costs one command, and does nothing where nothing was announced.
func (h *Host) Retire(ctx context.Context) {
	h.s.runCounters.Flush(ctx, 0)
	h.s.presence.Retire(ctx)
}

// EarlyBy is how long it is until a time that the clock outside was given, as the time of a message is: by the clock of this process.
func (h *Host) EarlyBy(at time.Time) time.Duration { return at.Sub(h.s.config.Clock.Now()) }

// BookAlarm books for what is due next and for what other processes owe, as far as no alarm is booked yet. A process that lives on calls it when
// a [store.Waker] reports something, when it has failed, some time after the alarm should have rung, and periodically: then nothing waits for long
// that other processes could not book, or that a clock confirmed and never rang for. It returns when something is due next, zero for nothing; its
// error is an *[AlarmError].
func (h *Host) BookAlarm(ctx context.Context) (due time.Time, err error) {
	return h.s.alarm.BookNext(ctx)
}

// BooksAlarms reports whether the process has an alarm.
func (h *Host) BooksAlarms() bool { return h.s.config.Alarm != nil }

// AlarmBy reports whether this process knows of an alarm that is to come, no later than something that is due at a time of the store's clock.
func (h *Host) AlarmBy(due time.Time) bool { return h.s.alarm.By(due) }
