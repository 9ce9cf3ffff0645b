package inspect

// When a live task will be due: worked out ahead from its schedule, without a store.

import (
	"cmp"
	"time"

	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/schedule/phrase"
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

// ReadBack is the schedule of a live task as a phrase, and its next times, so many at most, in a zone: what the submitter of a task is shown. agentZone is
// the zone of the agent's profile. It is empty if the task is not going to run. It does not ask the store.
func ReadBack(t *model.TaskInfo, agentZone string, in *time.Location, most int) string {
	const ahead = 20 * 365 * 24 * time.Hour
	if t.Status.Finished() || t.NextRun.IsZero() && !t.Manual {
		return ""
	}
	s := phrase.Schedule{Every: t.Every, FromStart: t.From == model.FromStart, Cron: t.Cron, Zone: t.Zone, DayMatch: t.DayMatch, Gap: t.Gap, Manual: t.Manual}
	if s.Cron == "" && s.Every == 0 && !s.Manual {
		s.At = t.NextRun.In(in)
	}
	next := Upcoming(t, agentZone, t.NextRun.Add(ahead), most)
	for i := range next {
		next[i] = next[i].In(in)
	}
	return phrase.WithTimes(s, next)
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
