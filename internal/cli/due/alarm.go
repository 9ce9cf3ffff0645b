package due

// The alarm of the file.

import (
	"context"
	"log/slog"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// alarmOf opens the clock of the file; nil if there is none.
func alarmOf(c *dulyfile.File) (core.Alarm, error) {
	if c.Alarm == nil {
		return nil, nil //nolint:nilnil // no alarm is wanted
	}
	return c.Alarm.Open()
}

// bookedBy is the alarm of a process that serves. One that runs due tasks by itself books nothing: it is still running when they fall due.
func bookedBy(ctx context.Context, c *dulyfile.File, onRequest bool, logger *slog.Logger) (core.Alarm, error) {
	if onRequest || c.Alarm == nil {
		return alarmOf(c)
	}
	logger.LogAttrs(ctx, slog.LevelInfo, "alarm is not used: a daemon is there when something falls due")
	return nil, nil //nolint:nilnil // none is wanted
}

// How often a long-running process checks for a missing alarm: after a failure; after a notification that a task became due, as the process that made it due
// has a second to book; after the booked task should have begun; at start; and otherwise.
const (
	bookAgain  = time.Second
	bookAfter  = 1200 * time.Millisecond
	bookUnrung = 2000 * time.Millisecond
	bookEvery  = 30 * time.Second
)

// keepsAlarm books what others could not, for as long as the process lives, if it has an alarm.
func keepsAlarm(s *core.Scheduler, waker store.Waker, logger *slog.Logger) func(context.Context) error {
	return func(ctx context.Context) error {
		if !s.BooksAlarms() {
			return nil
		}
		woken, err := waker.Wakeups(ctx)
		if err != nil {
			woken = nil // it still checks periodically
		}
		clock, failed := core.SystemClock{}, false
		var unrung unrung
		for next := clock.Now(); waitsToBook(ctx, s, woken, next); {
			due, err := s.BookAlarm(ctx)
			if next = unrung.after(due, clock.Now()); err != nil {
				next = clock.Now().Add(bookAgain)
			}
			if (err != nil) != failed && ctx.Err() == nil {
				failed = err != nil
				logger.LogAttrs(ctx, slog.LevelWarn, "whether alarms can be booked has changed", slog.Bool("booked", !failed), slog.Any("err", err))
			}
		}
		return nil
	}
}

// unrung is what a process knows of alarms that were confirmed, but whose tasks still wait after their time.
type unrung struct {
	due  time.Time
	wait time.Duration
}

// after is when to check again whether the task that is due next (zero: none) has begun. If no process claims it although the alarm rang, the checks become
// rarer and rarer: perhaps no process can run it, and each call costs.
func (u *unrung) after(due, now time.Time) time.Time {
	if u.due.Equal(due) && !due.After(now) {
		u.wait *= 2
	} else {
		u.due, u.wait = due, bookUnrung
	}
	at := now
	if due.After(now) {
		at = due
	}
	if latest := now.Add(bookEvery); due.IsZero() || at.Add(u.wait).After(latest) {
		return latest
	}
	return at.Add(u.wait)
}

// waitsToBook waits until it is time to look whether an alarm is missing; false once the process ends.
func waitsToBook(ctx context.Context, s *core.Scheduler, woken <-chan store.Wakeup, next time.Time) bool {
	clock := core.SystemClock{}
	for {
		select {
		case <-ctx.Done():
			return false
		case w, ok := <-woken:
			if soon := clock.Now().Add(bookAfter); !ok {
				woken = nil
			} else if soon.Before(next) && !s.AlarmBy(w.Due.Time()) {
				next = soon
			}
		case <-time.After(next.Sub(clock.Now())):
			return true
		}
	}
}
