package console

// The page of an agent: its tasks, its profile, its budgets and what is due within the next week.

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// agentPage is the page of an agent.
type agentPage struct {
	Agent        string
	Tasks        []core.TaskInfo
	Profile      *core.Profile
	Quiet        []string
	Quota        []bounded
	Budgets      []share
	Week         *week
	Status, Kind string
	Statuses     []string
	More, First  string
	Steers       bool
	Paused       *model.PauseInfo // of the agent itself, as far as its tasks say
}

// share is what an agent has used of a budget that counts each agent by itself.
type share struct {
	Budget  bound.BudgetUse
	Used    bound.Amount
	Percent int
}

// tasksShown is how many tasks a page has.
const tasksShown = 40

// statuses are those that tasks can be selected by.
var statuses = []string{"waiting", "in_progress", "completed", "failed", "cancelled"}

// agent is the page of one agent.
func (c *console) agent(v *visit) (*page, error) {
	p := agentPage{Agent: v.q.Get("agent"), Status: v.q.Get("status"), Kind: v.q.Get("kind"), Statuses: statuses}
	if p.Agent == "" {
		return nil, &core.InvalidError{Field: "agent", Reason: "is required"}
	}
	if err := v.may(model.ActionRead, p.Agent); err != nil {
		return nil, err
	}
	l := core.List{Agent: p.Agent, Kind: p.Kind, Limit: tasksShown, Cursor: v.q.Get("cursor")}
	if p.Status != "" {
		l.Status = []core.Status{core.Status(p.Status)}
	}
	ctx := v.r.Context()
	var next string
	var err error
	if p.Tasks, next, err = c.scheduler.Tasks(ctx, l); err != nil {
		return nil, err
	}
	profile, err := c.scheduler.Profile(ctx, p.Agent)
	switch {
	case err == nil:
		p.Profile, p.Quiet, p.Quota = &profile, quietText(profile.Quiet), quotaOf(&profile)
	case !errors.Is(err, core.ErrNotFound):
		return nil, err
	}
	whole := l.Status == nil && l.Kind == "" && l.Cursor == ""
	if whole && len(p.Tasks) == 0 && p.Profile == nil {
		return nil, fmt.Errorf("the agent %q has no tasks, no records of finished ones, and no profile: %w", p.Agent, core.ErrNotFound)
	}
	if p.Budgets, err = c.shares(v, p.Agent); err != nil {
		return nil, err
	}
	p.finish(v, next)
	return &page{name: "agent", title: "Agent " + p.Agent, body: p}, nil
}

// finish works out what follows from what was read.
func (p *agentPage) finish(v *visit, next string) {
	zone := ""
	if p.Profile != nil {
		zone = p.Profile.Zone
	}
	p.Week = weekOf(p.Tasks, zone, v.now)
	p.Steers = v.steers(p.Agent)
	for i := range p.Tasks {
		for k := range p.Tasks[i].Pauses {
			if pause := &p.Tasks[i].Pauses[k]; pause.Target == (core.Target{Agent: p.Agent}) {
				p.Paused = pause
			}
		}
	}
	q := url.Values{"agent": {p.Agent}, "status": {p.Status}, "kind": {p.Kind}}
	if v.q.Get("cursor") != "" {
		p.First = Path + "/agent?" + q.Encode()
	}
	if next != "" {
		q.Set("cursor", next)
		p.More = Path + "/agent?" + q.Encode()
	}
}

// quietText are quiet hours in words.
func quietText(all []core.QuietHours) []string {
	var out []string
	for _, q := range all {
		days := "every day"
		if len(q.Days) > 0 {
			days = strings.Join(q.Days, ", ")
		}
		out = append(out, q.From+" to "+q.To+", "+days)
	}
	return out
}

// bounded is a part of the quota of an agent, in words.
type bounded struct{ Name, Text string }

// quotaOf are the parts of a quota, and how much is used of those that are counted.
func quotaOf(p *core.Profile) (out []bounded) {
	q, u := &p.Quota, p.Used
	if u == nil {
		u = &store.QuotaUse{}
	}
	for _, part := range []struct {
		name       string
		used, most int64
	}{
		{"live tasks", int64(u.Live), int64(q.Live)},
		{"recurring tasks", int64(u.Recurring), int64(q.Recurring)},
		{"bytes", u.Bytes, q.Bytes},
		{"submits a minute", int64(u.Submits), int64(q.Submits)},
	} {
		if part.most > 0 {
			out = append(out, bounded{part.name, fmt.Sprintf("%d of %d, %d %%", part.used, part.most, 100*part.used/part.most)})
		}
	}
	for name, text := range map[string]string{
		"least interval": moment.ShortDuration(q.Interval), "horizon": moment.ShortDuration(q.Horizon), "kinds": strings.Join(q.Kinds, ", "),
		"depth": strconv.Itoa(q.Depth), "spawned tasks an hour": strconv.Itoa(q.Spawned),
	} {
		if text != "" && text != "0" && text != "0s" {
			out = append(out, bounded{name, text})
		}
	}
	slices.SortStableFunc(out, func(a, b bounded) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// shares are what an agent has used of budgets that count each agent by itself, of those that have used most: what others have used is not shown.
func (c *console) shares(v *visit, agent string) ([]share, error) {
	all, err := c.scheduler.Budgets(v.r.Context())
	if err != nil {
		return nil, err
	}
	var out []share
	for i := range all {
		b := all[i]
		if b.About.Each != bound.EachAgent {
			continue
		}
		one := share{Budget: b}
		for _, s := range b.Shares {
			if s.Of == agent {
				one.Used, one.Percent = s.Used, int(100*float64(s.Used)/float64(b.Amount))
			}
		}
		one.Budget.Shares = nil
		out = append(out, one)
	}
	return out, nil
}

// week is what is due within the next days, a line for each task.
type week struct {
	Days          []day
	Rows          []weekRow
	Width, Height int
	Cut           bool // there are more tasks than lines
	Zone          string
}

// day is where a day begins.
type day struct {
	X    float64
	Name string
}

// weekRow is a task within the week.
type weekRow struct {
	ID, Kind, To string
	Y            int
	Marks        []mark
	Dense        bool // it is due more often than is drawn
	DenseWidth   float64
	Text         string
}

// mark is one time that a task is due.
type mark struct {
	X     float64
	Title string
}

// Sizes of the week, in units of its view box.
const (
	weekDays   = 7
	weekWidth  = 700
	weekRowsUp = 18
	weekRowHi  = 26
	mostMarks  = 120
)

// weekOf draws what the tasks are due for within the next week, as far as that is known now. Nil if nothing is.
func weekOf(tasks []core.TaskInfo, zone string, now time.Time) *week {
	location := time.UTC
	if l, err := time.LoadLocation(zone); err == nil && zone != "Local" {
		location = l
	}
	w := &week{Width: weekWidth, Zone: location.String()}
	until := now.Add(weekDays * 24 * time.Hour)
	for i := range tasks {
		t := &tasks[i]
		times := inspect.Upcoming(t, zone, until, mostMarks+1)
		if len(times) == 0 {
			continue
		}
		if len(w.Rows) == weekRowsUp {
			w.Cut = true
			break
		}
		w.Rows = append(w.Rows, weekLine(t, times, now, until, location, len(w.Rows)))
	}
	if len(w.Rows) == 0 {
		return nil
	}
	w.Height = len(w.Rows) * weekRowHi
	local := now.In(location)
	for i := range weekDays + 1 {
		at := time.Date(local.Year(), local.Month(), local.Day()+i, 0, 0, 0, 0, location)
		if x := xOf(at, now, until); x >= 0 && x <= weekWidth-40 { // room for its name
			w.Days = append(w.Days, day{X: x, Name: at.Format("Mon 2")})
		}
	}
	return w
}

// weekLine is the line of one task.
func weekLine(t *core.TaskInfo, times []time.Time, now, until time.Time, zone *time.Location, line int) weekRow {
	row := weekRow{ID: t.ID, Kind: t.Kind, To: taskURL(t.Agent, t.ID), Y: line * weekRowHi, Text: scheduleOf(t)}
	if len(times) > mostMarks {
		row.Dense, row.DenseWidth = true, weekWidth-xOf(times[0], now, until)
		times = times[:1]
	}
	for _, at := range times {
		row.Marks = append(row.Marks, mark{X: max(xOf(at, now, until), 1), Title: at.In(zone).Format("Mon 2 Jan 15:04:05 MST")})
	}
	return row
}

// xOf is where a time is between two others.
func xOf(at, from, to time.Time) float64 {
	return float64(at.Sub(from)) / float64(to.Sub(from)) * weekWidth
}

// scheduleOf is when a task is due, in words.
func scheduleOf(t *core.TaskInfo) string {
	switch {
	case t.Cron != "":
		zone := t.Zone
		if zone == "" {
			zone = "UTC"
		}
		return "cron " + t.Cron + " (" + zone + ")"
	case t.Manual:
		return "by hand"
	case t.Schedule == store.ScheduleActivity:
		return "after activity"
	case t.Every > 0:
		return "every " + t.Every.String()
	default:
		return "once"
	}
}
