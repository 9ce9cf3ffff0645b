package phrase

// From a schedule to the phrase that means it.

import (
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/schedule"
)

// Print writes a schedule as a phrase that [Parse] reads as the same schedule, by any time before its At. A cron expression that has no words is
// readWritten as such. At is shown in its own location.
func Print(s Schedule) string {
	text := plainly(s)
	// A cron expression has words only if they mean it: the parser is the judge, and not this printer.
	if s.Cron != "" {
		if back, err := quietly(text); err != nil || !back.Equal(s) {
			text = literally(s)
		}
	}
	return text
}

// quietly parses a phrase without working out the answers to its doubts.
func quietly(text string) (Schedule, error) {
	words, zone, err := takeZone(split(text))
	if err != nil {
		return Schedule{}, err
	}
	p := &reader{words: words, now: time.Unix(0, 0).UTC(), user: time.Unix(0, 0).UTC(), r: reading{zone: zone}, quiet: true}
	return p.parse()
}

// plainly is the phrase of a schedule, without the proof that it is one.
func plainly(s Schedule) string {
	switch {
	case s.Manual:
		return "by hand"
	case s.Cron != "":
		r, ok := readCron(s)
		if !ok {
			return literally(s)
		}
		return r.text() + tail(s, false)
	case s.Every > 0:
		text := "every " + spell(s.Every)
		if s.Delay > 0 {
			text = "in " + length(s.Delay) + ", then " + text
		}
		if s.FromStart {
			text += ", counted from the start"
		}
		return text
	case s.Delay > 0:
		return "in " + length(s.Delay)
	case !s.At.IsZero():
		return instant(s.At)
	}
	return "now"
}

// literally is a cron expression as it is.
func literally(s Schedule) string {
	return "cron " + strings.Join(strings.Fields(s.Cron), " ") + tail(s, s.DayMatch == schedule.DayMatchAll)
}

// readTail is what follows the times of a cron expression: the zone, and what differs from the defaults.
func tail(s Schedule, both bool) string {
	var text string
	switch s.Zone {
	case "":
	case ZoneOfAgent:
		text = " in the agent's zone"
	default:
		text = " in " + s.Zone
	}
	if both {
		text += ", if both day fields match"
	}
	if s.Gap == schedule.GapSkip {
		text += ", skipping times that the clocks skip"
	}
	return text
}

// readInstant is a time once: as the clocks of its zone show it, or with its offset where that is not enough.
func instant(t time.Time) string {
	zone := t.Location()
	named := zone.String()
	on, c := dateOf(t), clock{hour: t.Hour(), minute: t.Minute(), second: t.Second()}
	_, err := schedule.LoadZone(named)
	at, _ := on.at(c, zone)
	_, found := zoneAt([]word{{strings.ToLower(named), named}})
	if named == "" || err != nil || len(at) != 1 || t.Nanosecond() != 0 || found == 0 || !at[0].Equal(t) {
		return t.Format(time.RFC3339Nano)
	}
	return on.text() + " " + c.text() + " in " + named
}
