package inspect

// Forecasts: when a schedule would be due, for the command line, the API and the console.

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// MostTimes is the most times that a forecast has.
const MostTimes = 1000

// Preview is a schedule to be tried out: Cron, Every or At, with the fields that a task has beside them.
type Preview struct {
	Cron     string            `json:"cron"`
	Zone     string            `json:"zone"` // of an expression without a zone: UTC, and in [View.Forecast] Config.Zone
	DayMatch schedule.DayMatch `json:"day_match"`
	Gap      schedule.Gap      `json:"gap"`
	Every    time.Duration     `json:"every"` // counted from After
	At       time.Time         `json:"at"`

	After time.Time `json:"from"`  // times are later than this
	Count int       `json:"count"` // how many at most, up to MostTimes
}

// Forecast is when a schedule will be due, in its zone, and before which of these times the clocks of the zone change.
type Forecast struct {
	Times   []time.Time   `json:"times"`
	Changes []ClockChange `json:"changes,omitempty"`
}

// ClockChange says that the clocks of a zone change between one of the times of a forecast and the one before it; for the first, the one before
// is After.
type ClockChange struct {
	Before time.Time     // one of the times
	Shift  time.Duration // negative if the clocks go back
}

// MarshalJSON writes the shift as Go writes durations.
func (c ClockChange) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Before time.Time `json:"before"`
		Shift  string    `json:"shift"`
	}{c.Before, c.Shift.String()})
}

// Forecast is the forecast of a schedule as for a task of this scheduler: Config.Zone applies, and without After it begins now, by the store's
// clock as of its last answer. It does not call the store.
func (s *View) Forecast(p Preview) (Forecast, error) {
	if p.Cron != "" {
		p.Zone = cmp.Or(p.Zone, s.base.Config.Zone)
	}
	if p.After.IsZero() {
		p.After = s.base.StoreNow().Time()
	}
	return p.Forecast()
}

// Forecast works out when the schedule will be due. It has fewer times than asked for, or none, if the schedule comes to an end. The error is an
// *[store.InvalidError] that names a field of a task, or from, for After, or count.
func (p *Preview) Forecast() (Forecast, error) {
	f := Forecast{Times: []time.Time{}}
	if err := p.check(); err != nil {
		return f, err
	}
	switch {
	case p.Cron != "":
		c, err := schedule.ParseCron(p.Cron, p.Zone, p.DayMatch, p.Gap)
		if wrong, ok := errors.AsType[*schedule.ParseError](err); ok {
			return f, &store.InvalidError{Field: wrong.Field, Reason: wrong.Reason}
		}
		if err != nil {
			return f, err
		}
		f.Times = append(f.Times, fired(c, p.After, time.Time{}, p.Count)...)
	case p.Every != 0:
		for at := p.After.UTC().Add(p.Every); len(f.Times) < p.Count && at.Year() <= lastYear; at = at.Add(p.Every) {
			f.Times = append(f.Times, at)
		}
	case p.At.After(p.After):
		f.Times = append(f.Times, p.At.UTC())
	}
	f.mark(p.After)
	return f, nil
}

// lastYear is the last year of a forecast: later times have no form in JSON.
const lastYear = 9999

// check refuses an invalid schedule, as a submit would.
func (p *Preview) check() error {
	t := model.NewTask{Cron: p.Cron, Zone: p.Zone, DayMatch: p.DayMatch, Gap: p.Gap, Every: p.Every, At: p.At}
	switch year := p.After.UTC().Year(); {
	case !t.Timed():
		return check.Invalid("cron", "is required, or every, or at")
	case year < 1970 || year > lastYear:
		return check.Invalid("from", "must be a time of the years 1970 to %d", lastYear)
	case p.Count < 1 || p.Count > MostTimes:
		return check.Invalid("count", "must be from 1 to %d, not %d", MostTimes, p.Count)
	}
	return t.CheckSchedule()
}

// mark notes the changes of the clocks.
func (f *Forecast) mark(before time.Time) {
	for _, at := range f.Times {
		_, was := before.In(at.Location()).Zone()
		if _, is := at.Zone(); is != was {
			f.Changes = append(f.Changes, ClockChange{Before: at, Shift: time.Duration(is-was) * time.Second})
		}
		before = at
	}
}

// Plan returns when a task would be due if it were submitted now, and how: Agent, Cron, Every and the fields that go with them, Manual and NextRun. It
// is refused as a submit would be for what is wrong with it. Nothing is stored; the store is asked for its time alone, and only if it is not known yet.
func (s *View) Plan(ctx context.Context, t *model.NewTask) (model.TaskInfo, error) {
	now, err := s.base.AskedNow(ctx)
	if err != nil {
		return model.TaskInfo{}, err
	}
	filled, err := s.base.Filled(ctx, []model.NewTask{*t})
	if err != nil {
		return model.TaskInfo{}, err
	}
	subs, err := s.base.Prepare(filled, nil)
	if err != nil {
		return model.TaskInfo{}, err
	}
	if err := s.base.Plan(ctx, filled, subs); err != nil {
		return model.TaskInfo{}, err
	}
	f := &filled[0]
	info := model.TaskInfo{
		Agent: f.Agent, Kind: f.Kind, Status: store.StatusWaiting, Submitted: now.Time(),
		TaskSettings: model.TaskSettings{Manual: f.Manual, Every: f.Every, From: f.From, Cron: f.Cron, Zone: f.Zone, DayMatch: f.DayMatch, Gap: f.Gap},
	}
	if !f.Manual {
		info.NextRun = max(subs[0].Due.At, now.Add(subs[0].Due.After)).Time()
	}
	return info, nil
}
