package model

// Local times: `at` without an offset, in the zone of the task.

import (
	"encoding/json"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/schedule"
)

// localForms are how a local time may be written.
var localForms = []string{"2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04"}

// isLocal reports whether a value is a local time.
func isLocal(value json.RawMessage) bool {
	_, ok := localTime(value)
	return ok
}

func localTime(value json.RawMessage) (time.Time, bool) {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return time.Time{}, false
	}
	for _, form := range localForms {
		if t, err := time.Parse(form, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// readLocal sets At to a local time in the zone, which has no other meaning then.
func (t *NewTask) readLocal(value json.RawMessage) error {
	local, _ := localTime(value)
	switch {
	case t.Cron != "":
		return check.Invalid("at", "excludes cron")
	case t.Zone == "":
		return check.Invalid("at", "has no offset: end it with Z or one such as +01:00, or say its zone with zone")
	case t.Zone == ZoneOfAgent:
		return check.Invalid("zone", "must be an IANA name for at, as the zone of an agent may change")
	}
	location, err := schedule.LoadZone(t.Zone)
	if err != nil {
		return check.Invalid("zone", "%q is not known: use an IANA name such as Europe/Berlin", check.Clip(t.Zone))
	}
	t.At, t.Zone = inZone(local, location), ""
	return nil
}

// inZone is the moment at which clocks of a zone show a time: the first one if they show it twice, and the end of the gap if they skip it.
func inZone(local time.Time, zone *time.Location) time.Time {
	shows := func(t time.Time) bool {
		_, ahead := t.In(zone).Zone()
		return t.Add(time.Duration(ahead) * time.Second).Equal(local)
	}
	const day = 24 * time.Hour
	_, before := local.Add(-day).In(zone).Zone()
	_, after := local.Add(day).In(zone).Zone()
	for _, ahead := range []int{before, after} {
		if t := local.Add(-time.Duration(ahead) * time.Second); shows(t) {
			return t
		}
	}
	_, end := local.Add(-time.Duration(before)*time.Second - day).In(zone).ZoneBounds()
	return end.UTC()
}
