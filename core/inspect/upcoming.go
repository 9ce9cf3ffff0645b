package inspect

// When a live task will be due: worked out ahead from its schedule, without a store.

import (
	"cmp"
	"time"

	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/schedule"
)

// fired are the times after one and until another, which is open if it is zero.
func fired(c *schedule.Cron, after, until time.Time, most int) []time.Time {
	var out []time.Time
	for len(out) < most {
		next, err := c.Next(after)
		if err != nil || !until.IsZero() && next.After(until) {
			break
		}
		out = append(out, next)
		after = next
	}
	return out
}

// Upcoming returns when a live task will be due until a time, at most so many times, as far as that is known now: it knows neither how its runs
// will end nor the quiet hours of its agent, nor jitter. zone is that of the agent's profile, for a task whose zone is ZoneOfAgent. For a task that
// is due already that time comes first. It does not ask the store.
func Upcoming(t *model.TaskInfo, zone string, until time.Time, most int) []time.Time {
	due := t.NextRun
	if t.Status.Finished() || due.IsZero() || due.After(until) || most < 1 {
		return nil
	}
	out := []time.Time{due}
	switch {
	case t.Cron != "":
		of := t.Zone
		if of == model.ZoneOfAgent {
			of = cmp.Or(zone, "UTC")
		}
		if c, err := schedule.ParseCron(t.Cron, of, t.DayMatch, t.Gap); err == nil {
			out = append(out, fired(c, due, until, most-1)...)
		}
	case t.Every > 0:
		for at := due.Add(t.Every); !at.After(until) && len(out) < most; at = at.Add(t.Every) {
			out = append(out, at)
		}
	}
	return out
}
