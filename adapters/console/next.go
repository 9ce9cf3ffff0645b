package console

// The page on which a schedule is tried out.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core/inspect"
)

// nextPage is the page of a schedule.
type nextPage struct {
	Cron, Zone string
	Times      []fired
	Wrong      string
	Zones      []string // to choose from
}

// fired is one time at which a schedule fires.
type fired struct {
	At     time.Time
	Local  string
	Offset string
	Change string // that the clocks have changed since the time before
}

// timesShown is how many times a page has.
const timesShown = 10

// next shows when a cron expression fires. It asks no store.
func (c *console) next(v *visit) (*page, error) {
	p := nextPage{Cron: v.q.Get("cron"), Zone: v.q.Get("zone"), Zones: []string{
		"UTC", "Europe/Berlin", "Europe/London", "America/New_York", "America/Los_Angeles", "America/Sao_Paulo", "Asia/Kolkata", "Asia/Shanghai", "Asia/Tokyo",
		"Australia/Sydney",
	}}
	out := &page{name: "next", title: "Schedule preview"}
	if p.Cron != "" {
		forecast, err := c.scheduler.Forecast(inspect.Preview{Cron: p.Cron, Zone: p.Zone, After: v.now, Count: timesShown})
		if err != nil {
			p.Wrong, out.status = sentence(err.Error()), 400
		}
		p.Times = marked(&forecast)
	}
	out.body = p
	return out, nil
}

// marked says beside each time whether the clocks have changed since the one before, or since now.
func marked(f *inspect.Forecast) []fired {
	var out []fired
	changes := f.Changes
	for _, t := range f.Times {
		one := fired{At: t, Local: t.Format("Mon 2 January 2006, 15:04:05"), Offset: t.Format("MST (UTC-07:00)")}
		if len(changes) > 0 && changes[0].Before.Equal(t) {
			way := "forward"
			if changes[0].Shift < 0 {
				way = "back"
			}
			one.Change = "clocks went " + way + " by " + rough(changes[0].Shift.Abs())
			changes = changes[1:]
		}
		out = append(out, one)
	}
	return out
}
