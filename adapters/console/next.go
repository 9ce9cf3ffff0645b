package console

// The page on which a schedule is tried out.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core"
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
func (*console) next(v *visit) (*page, error) {
	p := nextPage{Cron: v.q.Get("cron"), Zone: v.q.Get("zone"), Zones: []string{
		"UTC", "Europe/Berlin", "Europe/London", "America/New_York", "America/Los_Angeles", "America/Sao_Paulo", "Asia/Kolkata", "Asia/Shanghai", "Asia/Tokyo",
		"Australia/Sydney",
	}}
	out := &page{name: "next", title: "Schedule preview"}
	if p.Cron != "" {
		times, err := core.NextTimes(p.Cron, p.Zone, v.now, timesShown)
		if err != nil {
			p.Wrong, out.status = sentence(err.Error()), 400
		}
		p.Times = marked(times, v.now)
	}
	out.body = p
	return out, nil
}

// marked says beside each time whether the clocks have changed since the one before, or since now.
func marked(times []time.Time, now time.Time) []fired {
	var out []fired
	before := now
	for _, t := range times {
		f := fired{At: t, Local: t.Format("Mon 2 January 2006, 15:04:05"), Offset: t.Format("MST (UTC-07:00)")}
		_, was := before.In(t.Location()).Zone()
		if _, is := t.Zone(); is > was {
			f.Change = "clocks went forward by " + rough(time.Duration(is-was)*time.Second)
		} else if is < was {
			f.Change = "clocks went back by " + rough(time.Duration(was-is)*time.Second)
		}
		out = append(out, f)
		before = t
	}
	return out
}
