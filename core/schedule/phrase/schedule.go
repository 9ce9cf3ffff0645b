package phrase

// The schedule that a phrase means, and its next times.

import (
	"errors"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/schedule"
)

// ZoneOfAgent as the zone of a schedule is that of the agent's profile, as in a task.
const ZoneOfAgent = "agent"

// Schedule has the fields of a task that say when it is due, with the same meaning. The zero Schedule is due at once.
type Schedule struct {
	At    time.Time     // once
	Delay time.Duration // once, this long after the submit; puts off the first run of Every
	Every time.Duration // an interval
	// FromStart counts Every from the start of a run, and not from its end.
	FromStart bool

	Cron     string
	Zone     string // of Cron; empty if the phrase names none: then it is the zone that the phrase was read in
	DayMatch schedule.DayMatch
	Gap      schedule.Gap

	Manual bool // without a time: run by hand
}

// Equal reports whether two schedules mean the same: cron expressions may be written differently.
func (s Schedule) Equal(o Schedule) bool {
	return s.At.Equal(o.At) && s.Delay == o.Delay && s.Every == o.Every && s.FromStart == o.FromStart && s.Manual == o.Manual &&
		s.Zone == o.Zone && gapOf(s) == gapOf(o) && sameCron(s, o)
}

func gapOf(s Schedule) schedule.Gap {
	if s.Gap == "" {
		return schedule.GapRun
	}
	return s.Gap
}

// location is the zone of a schedule: its own, else the one that is given, which is also that of the agent.
func (s Schedule) location(zone *time.Location) (*time.Location, error) {
	if zone == nil {
		zone = time.UTC
	}
	if s.Cron == "" || s.Zone == "" || s.Zone == ZoneOfAgent {
		return zone, nil
	}
	return schedule.LoadZone(s.Zone)
}

// Next returns the next times of a schedule after a time, n at most: fewer if it ends, none for what is run by hand. They are shown in the zone of its
// cron expression, else in the given one, which is also the zone of an expression without one and of the agent. Intervals and delays are counted from
// after. The error is about an expression or a zone that is not valid.
func Next(s Schedule, after time.Time, zone *time.Location, n int) ([]time.Time, error) {
	in, err := s.location(zone)
	if err != nil || n <= 0 {
		return nil, err
	}
	switch {
	case s.Manual:
		return nil, nil
	case s.Cron != "":
		return fires(s, after, in, n)
	case s.Every > 0:
		return spaced(s, after.In(in), n), nil
	case s.At.IsZero():
		return []time.Time{after.Add(s.Delay).In(in)}, nil
	case s.At.After(after):
		return []time.Time{s.At.In(in)}, nil
	}
	return nil, nil
}

// fires are the next times of a cron expression.
func fires(s Schedule, after time.Time, in *time.Location, n int) ([]time.Time, error) {
	c, err := schedule.ParseCron(s.Cron, in.String(), s.DayMatch, s.Gap)
	if err != nil {
		return nil, err
	}
	var out []time.Time
	for len(out) < n {
		if after, err = c.Next(after); errors.Is(err, schedule.ErrNever) {
			break
		} else if err != nil {
			return nil, err
		}
		out = append(out, after)
	}
	return out, nil
}

// spaced are the next times of an interval, as long as RFC 3339 can write them.
func spaced(s Schedule, after time.Time, n int) []time.Time {
	const lastYear = 9999
	var out []time.Time
	first := s.Every
	if s.Delay > 0 {
		first = s.Delay
	}
	for at := after.Add(first); len(out) < n && at.Year() < lastYear; at = at.Add(s.Every) {
		out = append(out, at)
	}
	return out
}

// readBack is how many times ReadBack shows.
const readBack = 5

// ReadBack is a schedule as a phrase and its next five times after a time, in the zone: `every weekday at 09:00 in Europe/Berlin; next: Thu 2026-11-26
// 09:00, ...`. It is what a user is shown before or after a submit.
func ReadBack(s Schedule, after time.Time, zone *time.Location) (string, error) {
	times, err := Next(s, after, zone, readBack)
	if err != nil {
		return "", err
	}
	if s.Cron != "" && s.Zone == "" && zone != nil {
		s.Zone = zone.String()
	}
	return WithTimes(s, times), nil
}

// WithTimes is a schedule as a phrase, and times behind it.
func WithTimes(s Schedule, times []time.Time) string {
	text := Print(s)
	if len(times) == 0 {
		return text
	}
	shown := make([]string, len(times))
	for i, t := range times {
		shown[i] = stamp(t)
	}
	return text + "; next: " + strings.Join(shown, ", ")
}

// stamp is a time for people: with the weekday, which shows at once whether the phrase was understood.
func stamp(t time.Time) string {
	if t.Second() != 0 {
		return t.Format("Mon 2006-01-02 15:04:05 MST")
	}
	return t.Format("Mon 2006-01-02 15:04 MST")
}
