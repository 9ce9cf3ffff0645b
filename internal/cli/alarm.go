package cli

// The alarm of the file, and the check of doctor about what is booked.

import (
	"context"
	"fmt"
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

// bookedBy is the clock of a process that serves. One that runs what is due by itself books nothing: it is there when it falls due.
func bookedBy(ctx context.Context, c *dulyfile.File, onRequest bool, logger *slog.Logger) (core.Alarm, error) {
	if onRequest || c.Alarm == nil {
		return alarmOf(c)
	}
	logger.LogAttrs(ctx, slog.LevelInfo, "alarm is not used: a daemon is there when something falls due")
	return nil, nil //nolint:nilnil // none is wanted
}

// mostUnbooked is how much later than something falls due the next alarm may be. A process that has just made it due is about to book.
const mostUnbooked = time.Minute

// checkAlarm compares what is booked with what is due next. It says nothing where nobody uses alarms.
func checkAlarm(ctx context.Context, s *core.Scheduler, st *storage, c *dulyfile.File) []finding {
	booked, err := st.Book(ctx, store.Booking{}) // which only asks
	if err != nil {
		return []finding{found("alarm", checkFailed, "cannot be read: "+err.Error(), "check Redis, then try again")}
	}
	if booked.At == 0 && c.Alarm == nil {
		return nil
	}
	due, err := s.NextDue(ctx)
	if err != nil {
		return []finding{found("alarm", checkFailed, "the next due time cannot be read: "+err.Error(), "check Redis, then try again")}
	}
	text := "none is booked, and nothing is scheduled"
	switch {
	case booked.At != 0:
		text = "the next is booked for " + clock(booked.At.Time())
	case !due.IsZero():
		text = "none is booked"
	}
	if due.IsZero() || booked.At != 0 && booked.At.Time().Sub(due) <= mostUnbooked {
		return []finding{found("alarm", checkOK, text, "")}
	}
	return []finding{found("alarm", checkWarning, fmt.Sprintf("%s, and something is due at %s: it waits for the watchdog's call, unless a daemon is running", text, clock(due)),
		"see that every process that submits has alarm:, and look for its errors in their logs; duly run-due --all -c FILE books now")}
}
