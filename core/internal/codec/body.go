// Package codec converts tasks to and from their stored form: a new task becomes a submission, and what is stored becomes what users see.
package codec

// The body of a task in core: what is fixed when it is submitted, and what derives from that.

import (
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Body is the part of a task that never changes, and what derives from it.
type Body struct{ record.Body }

// DecodeBody reads a body as it is stored. With an error it has what could be read.
func DecodeBody(data []byte) (Body, error) {
	b, err := record.DecodeBody(data)
	return Body{b}, err
}

// Recurs reports whether the task has another occurrence after this one.
func (b *Body) Recurs() bool { return b.Every != 0 || b.Cron != "" }

// Fixed reports whether its times do not depend on when its runs end.
func (b *Body) Fixed() bool { return b.Cron != "" || b.Every != 0 && b.FromStart }

// OverlapPolicy is what happens to occurrences that fall due while the task runs.
func (b *Body) OverlapPolicy() model.Overlap { return model.Overlap(b.Overlap) }

// MisfirePolicy is what happens to occurrences that were missed.
func (b *Body) MisfirePolicy() model.Misfire { return model.Misfire(b.Misfire) }

// Spec is its cron schedule.
func (b *Body) Spec() CronSpec {
	return CronSpec{Expr: b.Cron, Zone: b.Zone, Match: dayMatch(b.MatchAll), Gap: gap(b.GapSkip)}
}

// dayMatch is what the stored flag means to the parser; empty for its default.
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
func from(start bool) model.From {
	if start {
		return model.FromStart
	}
	return ""
}

// CronZone is the zone in which its cron expression is read; empty without one. The task of one occurrence has the zone of its
// parent.
func (b *Body) CronZone() string {
	if b.Cron != "" && b.Zone == "" {
		return "UTC"
	}
	return b.Zone
}

// Schedule is the sort of schedule, for counters and lists.
func (b *Body) Schedule() store.ScheduleType {
	switch {
	case b.Activity != nil:
		return store.ScheduleActivity
	case b.Manual:
		return store.ScheduleManual
	case b.Cron != "":
		return store.ScheduleCron
	case b.Every != 0:
		return store.ScheduleEvery
	default:
		return store.ScheduleAt
	}
}
