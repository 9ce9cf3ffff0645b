package base

// Phrases: the schedule that a new task says in words.

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/schedule/phrase"
)

// readWhen replaces the phrase of a task by the fields that it means. What is wrong with it is found before the store is asked for anything but its
// time.
func (s *Base) readWhen(ctx context.Context, t *model.NewTask) error {
	if t.When == "" {
		return nil
	}
	if err := t.CheckWhen(); err != nil {
		return err
	}
	zone, err := s.zoneOfPhrase(t)
	if err != nil {
		return err
	}
	now, err := s.AskedNow(ctx)
	if err != nil {
		return err
	}
	said, err := phrase.Parse(t.When, now.Time(), zone)
	if err != nil {
		return notSaid(err)
	}
	return say(t, said, now.Time())
}

// zoneOfPhrase is the zone in which the phrase of a task is read; none if none is known.
func (s *Base) zoneOfPhrase(t *model.NewTask) (*time.Location, error) {
	name := cmp.Or(t.Zone, s.Config.Zone)
	if name == model.ZoneOfAgent {
		name = cmp.Or(s.Profiles.LastOf(t.Agent).Zoned(codec.CronSpec{Zone: model.ZoneOfAgent}, s.Config.Zone).Zone, "UTC")
	}
	if name == "" {
		return nil, nil //nolint:nilnil // no zone is known: the phrase is asked about it
	}
	zone, err := schedule.LoadZone(name)
	if err != nil {
		return nil, check.Invalid("zone", "%q is not known: use an IANA name such as Europe/Berlin", check.Clip(name))
	}
	return zone, nil
}

// notSaid is the error about a phrase, for the caller.
func notSaid(err error) error {
	if ambiguous, ok := errors.AsType[*phrase.AmbiguousError](err); ok {
		return check.Invalid("when", "is ambiguous: %v", ambiguous)
	}
	return check.Invalid("when", "is no schedule: %v", err)
}

// say puts what a phrase means into a task.
func say(t *model.NewTask, said phrase.Schedule, now time.Time) error {
	switch {
	case said.Zone != "" && t.Zone != "" && said.Zone != t.Zone:
		return check.Invalid("when", "names the zone %s, and zone is %s: leave one out", said.Zone, check.Clip(t.Zone))
	case !said.At.IsZero() && t.Zone == model.ZoneOfAgent:
		return check.Invalid("zone", "must be an IANA name for a date, as the zone of an agent may change")
	case said == (phrase.Schedule{}) && t.Preset != "": // or the preset would say when
		said.At = now
	}
	if t.When = ""; said.Cron == "" && !said.At.IsZero() {
		t.Zone = "" // it has had its use
	}
	t.At, t.Delay, t.Every, t.Manual = said.At, said.Delay, said.Every, said.Manual
	t.Cron, t.Zone, t.DayMatch, t.Gap = said.Cron, cmp.Or(said.Zone, t.Zone), said.DayMatch, said.Gap
	if said.FromStart {
		t.From = model.FromStart
	}
	return nil
}
