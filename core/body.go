package core

// The body of a task in core: what is fixed when it is submitted, and what follows from that.

import (
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/schedule"
)

// body is the part of a task that never changes, and what follows from it.
type body struct{ record.Body }

// decodeBody reads a body as it is stored. With an error it has what could be read.
func decodeBody(data []byte) (body, error) {
	b, err := record.DecodeBody(data)
	return body{b}, err
}

// recurs reports whether the task has another occurrence after this one.
func (b *body) recurs() bool { return b.Every != 0 || b.Cron != "" }

// fixed reports whether its times stand whenever its runs end.
func (b *body) fixed() bool { return b.Cron != "" || b.Every != 0 && b.FromStart }

func (b *body) overlap() Overlap { return Overlap(b.Overlap) }
func (b *body) misfire() Misfire { return Misfire(b.Misfire) }

// spec is its cron schedule.
func (b *body) spec() cronSpec {
	return cronSpec{expr: b.Cron, zone: b.Zone, match: dayMatch(b.MatchAll), gap: gap(b.GapSkip)}
}

// dayMatch and gap are what is stored as a flag: what is not the default.
func dayMatch(all bool) schedule.DayMatch {
	if all {
		return schedule.DayMatchAll
	}
	return ""
}

// gap is what the stored flag means to the parser; empty for its default.
func gap(skip bool) schedule.Gap {
	if skip {
		return schedule.GapSkip
	}
	return ""
}

// from is what an interval counts from; empty for its default.
func from(start bool) From {
	if start {
		return FromStart
	}
	return ""
}

// zone is the zone that its cron expression is read in; empty without one. The task of one occurrence keeps that of its
// parent.
func (b *body) zone() string {
	if b.Cron != "" && b.Zone == "" {
		return "UTC"
	}
	return b.Zone
}

// schedule is the sort of schedule, for counters and lists.
func (b *body) schedule() ScheduleType {
	switch {
	case b.Activity != nil:
		return ScheduleActivity
	case b.Manual:
		return ScheduleManual
	case b.Cron != "":
		return ScheduleCron
	case b.Every != 0:
		return ScheduleEvery
	default:
		return ScheduleAt
	}
}
