package importer

// Jobs of APScheduler, as the script of the guide prints them, since its stores have them pickled: a job is a task, and its function a kind of workers.

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// apJob is a job.
type apJob struct {
	ID, Func, Trigger, Timezone string
	Args                        []any
	Kwargs                      map[string]any
	Paused                      bool
	Fields                      map[string]string // of a cron trigger
	Seconds                     float64           // of an interval
	RunDate                     string            `json:"run_date"`
	Jitter                      float64
	EndDate                     *string  `json:"end_date"`
	Instances                   int      `json:"max_instances"`
	Grace                       *float64 `json:"misfire_grace_time"`
}

// apscheduler reads an array of jobs.
func (f *Found) apscheduler(data []byte, agent string) error {
	var jobs []apJob
	if err := json.Unmarshal(data, &jobs); err != nil {
		return &core.InvalidError{Field: "file", Reason: "is no output of the script for APScheduler: " + err.Error()}
	}
	for i := range jobs {
		f.apJob(&jobs[i], agent)
	}
	if len(f.Tasks) > 0 {
		f.left("handlers", "workers run the functions, by their names: `pip install duly`, or put exec or webhook in the place of worker. Stop the scheduler, or each runs twice")
	}
	return nil
}

// apJob reads one.
func (f *Found) apJob(j *apJob, agent string) {
	where := "job " + j.ID
	t := Task{Agent: agent, ID: j.ID, Kind: named(j.Func), Paused: j.Paused, Payload: map[string]any{"args": append([]any{}, j.Args...), "kwargs": j.Kwargs}}
	if j.Func == "" {
		f.left(where, "left out: it names no function; one without a name cannot be run elsewhere")
		return
	}
	ok := false
	switch strings.ToLower(strings.TrimSuffix(j.Trigger, "Trigger")) {
	case "cron":
		ok = f.apCron(where, j, &t)
	case "interval":
		t.From = "start"
		ok = f.every(where, &t, time.Duration(j.Seconds*float64(time.Second)))
	case "date":
		if t.At, ok = instant(j.RunDate); !ok {
			f.left(where, "left out: %q is no time with a zone", j.RunDate)
		}
	default:
		f.left(where, "left out: duly knows no trigger %q", j.Trigger)
	}
	if !ok {
		return
	}
	if j.Instances > 1 {
		t.Overlap = "allow"
		f.left(where, "max_instances %d: its runs may overlap; a limit bounds how many", j.Instances)
	}
	f.jitter(where, &t, time.Duration(j.Jitter*float64(time.Second)))
	if j.EndDate != nil {
		f.left(where, "end_date: duly ends no task at a time")
	}
	h := f.work(t.Kind)
	if j.Grace != nil {
		grace := seconds(int64(*j.Grace))
		if h = f.Kinds[t.Kind]; h.Grace != "" && h.Grace != grace {
			f.left(where, "misfire_grace_time: the kind has %s already", h.Grace)
		} else {
			h.Grace = grace
			f.Kinds[t.Kind] = h
		}
	}
	f.add(t)
}

var (
	apRange   = pattern(`^(\w+)(?:-(\w+))?(?:/(\d+))?$`)
	apNth     = pattern(`^(1st|2nd|3rd|4th|5th|last) (\w{3})$`)
	weekdays  = []string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"} // as APScheduler counts them
	apOrdinal = map[string]string{"1st": "#1", "2nd": "#2", "3rd": "#3", "4th": "#4", "5th": "#5", "last": "L"}
)

// apCron sets the expression of a cron trigger. All of its fields have to match, and its weeks begin on Monday.
func (f *Found) apCron(where string, j *apJob, t *Task) bool {
	field := func(name, usual string) string {
		if value := strings.TrimSpace(j.Fields[name]); value != "" {
			return value
		}
		return usual
	}
	for _, name := range []string{"year", "week"} {
		if value := field(name, "*"); value != "*" {
			f.left(where, "left out: duly knows no field %s, which is %s", name, value)
			return false
		}
	}
	day := field("day", "*")
	weekday, ok := apWeekdays(field("day_of_week", "*"))
	if m := apNth().FindStringSubmatch(day); m != nil && slices.Contains(weekdays, m[2]) {
		ok = weekday == "*"
		day, weekday = "*", cronDay(m[2])+apOrdinal[m[1]]
	} else if day == "last" {
		day = "L"
	}
	if !ok {
		f.left(where, "left out: duly cannot say the days %s, %s", field("day", "*"), field("day_of_week", "*"))
		return false
	}
	parts := []string{field("second", "0"), field("minute", "0"), field("hour", "0"), day, field("month", "*"), weekday}
	if parts[0] == "0" {
		parts = parts[1:]
	}
	t.Cron, t.Zone = strings.Join(parts, " "), j.Timezone
	t.days(day, weekday)
	return f.cron(where, t.Cron, t.Zone)
}

// cronDay is a weekday as cron counts it, from Sunday on.
func cronDay(name string) string { return strconv.Itoa((slices.Index(weekdays, name) + 1) % 7) }

// apWeekdays are days of the week as cron has them, one by one.
func apWeekdays(text string) (string, bool) {
	if text == "*" {
		return text, true
	}
	var days []string
	for part := range strings.SplitSeq(text, ",") {
		m := apRange().FindStringSubmatch(strings.TrimSpace(part))
		if m == nil {
			return "", false
		}
		from, to, step := apDay(m[1]), apDay(m[1]), 1
		if m[2] != "" {
			to = apDay(m[2])
		}
		if m[3] != "" {
			step, _ = strconv.Atoi(m[3])
		}
		if from < 0 || to < from || step < 1 {
			return "", false
		}
		for d := from; d <= to; d += step {
			days = append(days, cronDay(weekdays[d]))
		}
	}
	return strings.Join(days, ","), true
}

// apDay is the number of a day, from Monday on; -1 for what is none.
func apDay(text string) int {
	if n, err := strconv.Atoi(text); err == nil && n >= 0 && n < len(weekdays) {
		return n
	}
	return slices.Index(weekdays, strings.ToLower(text))
}
