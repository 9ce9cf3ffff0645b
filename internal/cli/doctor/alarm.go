package doctor

// The check of doctor about the alarm that is booked.

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store/alarm"
	"github.com/seed-6f6f2c11/duly/internal/cli/storage"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// mostUnbooked is how much later than something falls due the next alarm may be. A process that has just made it due is about to book.
const mostUnbooked = time.Minute

// checkAlarm compares the booked alarm with the next due time. It reports nothing where no alarm is used.
func checkAlarm(ctx context.Context, s *core.Scheduler, st *storage.Store, c *dulyfile.File) []finding {
	booked, err := st.Book(ctx, alarm.Booking{}) // which only asks
	if err != nil {
		return []finding{found("alarm", checkFailed, "cannot be read: "+err.Error(), "check Redis, then try again")}
	}
	if !booked.Fleet && c.Alarm == nil {
		return nil
	}
	due, err := s.NextDue(ctx)
	if err != nil {
		return []finding{found("alarm", checkFailed, "the next due time cannot be read: "+err.Error(), "check Redis, then try again")}
	}
	if c.Alarm == nil {
		return []finding{found("alarm", checkWarning, "hosts are called by alarms here, and this file has none: what its processes make due waits until another one books",
			"give the file the alarm: of the others")}
	}
	text := "none is booked, and nothing is scheduled"
	switch {
	case booked.Next != 0:
		text = "the next is booked for " + table.Clock(booked.Next.Time())
	case !due.IsZero():
		text = "none is booked"
	}
	if booked.Owed != 0 {
		text += ", and one for " + table.Clock(booked.Owed.Time()) + " is owed, as no clock has confirmed it"
	}
	if due.IsZero() || booked.Next != 0 && booked.Next.Time().Sub(due) <= mostUnbooked {
		return []finding{found("alarm", checkOK, text, "")}
	}
	return []finding{found("alarm", checkWarning, fmt.Sprintf("%s, and something is due at %s: it waits for the watchdog's call, unless a daemon is running", text, table.Clock(due)),
		"see that every process that submits has alarm:, and look for its errors in their logs; duly run-due --all -c FILE books now")}
}
