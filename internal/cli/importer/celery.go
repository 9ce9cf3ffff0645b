package importer

// Periodic tasks of Celery, as Django dumps those of django-celery-beat: a periodic task is a task, and `celery call` sends it to the workers that it has.

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// beat is an object of a dump: a periodic task, or a schedule that others name.
type beat struct {
	Model  string          `json:"model"`
	PK     json.RawMessage `json:"pk"`
	Fields struct {
		Name, Task, Args, Kwargs string
		Queue, Exchange          *string
		RoutingKey               *string `json:"routing_key"`
		Headers                  string
		Priority                 *int
		Expires                  *string
		ExpireSeconds            *int    `json:"expire_seconds"`
		StartTime                *string `json:"start_time"`
		OneOff                   bool    `json:"one_off"`
		Enabled                  bool
		Interval, Crontab        json.RawMessage
		Solar, Clocked           json.RawMessage
		Every                    float64
		Period                   string
		Minute, Hour, Timezone   string
		DayOfWeek                string `json:"day_of_week"`
		DayOfMonth               string `json:"day_of_month"`
		MonthOfYear              string `json:"month_of_year"`
		ClockedTime              string `json:"clocked_time"`
	} `json:"fields"`
}

// periods are the units of intervals.
var periods = map[string]time.Duration{"days": 24 * time.Hour, "hours": time.Hour, "minutes": time.Minute, "seconds": time.Second, "microseconds": time.Microsecond}

// celery reads a dump. Schedules may come before the tasks that name them, or behind.
func (f *Found) celery(data []byte, agent string) error {
	var objects []beat
	if err := json.Unmarshal(data, &objects); err != nil {
		return &core.InvalidError{Field: "file", Reason: "is no dump of django_celery_beat: " + err.Error()}
	}
	schedules := map[string]*beat{}
	for i := range objects {
		schedules[strings.ToLower(objects[i].Model)+string(objects[i].PK)] = &objects[i]
	}
	for i := range objects {
		if strings.EqualFold(objects[i].Model, beatModel+"periodictask") {
			f.periodic(&objects[i], schedules, agent)
		}
	}
	if len(f.Tasks) > 0 {
		f.left("handlers", "celery call needs the application: set APP, or BROKER_URL, for the daemon. Stop celery beat, or each runs twice")
	}
	return nil
}

// beatModel begins the names of the models.
const beatModel = "django_celery_beat."

// periodic reads one task.
func (f *Found) periodic(b *beat, schedules map[string]*beat, agent string) {
	p, where := &b.Fields, "task "+b.Fields.Name
	t := Task{Agent: agent, ID: p.Name, Paused: !p.Enabled}
	if p.Task == "" {
		f.left(where, "left out: it names no task")
		return
	}
	if !f.beatTime(where, b, schedules, &t) {
		return
	}
	argv := []string{"sh", "-c", `exec celery call "$0" "$@"`, p.Task}
	for _, option := range []struct{ flag, value string }{
		{"--args", given(p.Args, "[]")}, {"--kwargs", given(p.Kwargs, "{}")}, {"--queue", text(p.Queue)}, {"--exchange", text(p.Exchange)}, {"--routing-key", text(p.RoutingKey)},
	} {
		if option.value != "" {
			argv = append(argv, option.flag+"="+option.value)
		}
	}
	if p.ExpireSeconds != nil {
		argv = append(argv, fmt.Sprintf("--expires=%d", *p.ExpireSeconds))
	}
	for what, have := range map[string]bool{
		"expires: duly ends no task at a time": p.Expires != nil, "start_time: it is due from now on": p.StartTime != nil, "priority: `level:` of its task is the nearest": p.Priority != nil,
		"headers: celery call sends none": given(p.Headers, "{}") != "", "one_off: delete the task after its first run": p.OneOff && t.At == "",
	} {
		if have {
			f.left(where, "%s", what)
		}
	}
	t.Kind = f.kind(named(p.Name))
	f.Kinds[t.Kind] = Handler{Exec: argv}
	f.add(t)
}

// given is a value that is not the default.
func given(value, usual string) string {
	if strings.TrimSpace(value) == usual {
		return ""
	}
	return strings.TrimSpace(value)
}

// text is a text that may be missing.
func text(value *string) string {
	if value == nil {
		return ""
	}
	return *value
}

// beatTime sets when a task runs, and reports whether duly can do so.
func (f *Found) beatTime(where string, b *beat, schedules map[string]*beat, t *Task) bool {
	find := func(model string, pk json.RawMessage) *beat {
		if len(pk) == 0 || string(pk) == "null" {
			return nil
		}
		return schedules[beatModel+model+string(pk)]
	}
	p := &b.Fields
	if s := find("intervalschedule", p.Interval); s != nil {
		t.From = "start"
		return f.every(where, t, time.Duration(s.Fields.Every*float64(periods[s.Fields.Period])))
	}
	if s := find("crontabschedule", p.Crontab); s != nil {
		squeezed := func(field string) string { return strings.Join(strings.Fields(field), "") }
		c := &s.Fields
		day, weekday := squeezed(c.DayOfMonth), squeezed(c.DayOfWeek)
		t.Cron = strings.Join([]string{squeezed(c.Minute), squeezed(c.Hour), day, squeezed(c.MonthOfYear), weekday}, " ")
		t.Zone = c.Timezone
		t.days(day, weekday)
		return f.cron(where, t.Cron, t.Zone)
	}
	if s := find("clockedschedule", p.Clocked); s != nil {
		at, ok := instant(s.Fields.ClockedTime)
		if t.At = at; !ok {
			f.left(where, "left out: %q is no time with a zone", s.Fields.ClockedTime)
		}
		return ok
	}
	f.left(where, "left out: duly knows no schedule by the sun, and the dump has no other of it")
	return false
}
