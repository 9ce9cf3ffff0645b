package codec

// The schedule of a task, as a key to parsed schedules.

import (
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/schedule"
)

// CronSpec names a cron schedule.
type CronSpec struct {
	Expr, Zone string
	Match      schedule.DayMatch
	Gap        schedule.Gap
}

// CronOf is the task's schedule, if it is one.
func CronOf(t *model.NewTask) CronSpec {
	return CronSpec{Expr: t.Cron, Zone: t.Zone, Match: t.DayMatch, Gap: t.Gap}
}
