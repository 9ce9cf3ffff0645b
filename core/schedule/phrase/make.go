package phrase

// From a reading without doubts to the schedule.

import (
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/schedule"
)

// schedule is what a reading without doubts means. What has no place in it is refused, and never left out.
func (r *reading) schedule(now time.Time) (Schedule, error) {
	rest, s := *r, Schedule{}
	var err error
	switch {
	case r.now:
		rest.now = false
	case r.manual:
		s.Manual, rest.manual = true, false
	case r.cron != "":
		s.Cron, rest.cron = r.cron, ""
		if r.both {
			s.DayMatch, rest.both = schedule.DayMatchAll, false
		}
	case !r.at.IsZero():
		s.At, rest.at, rest.zone, rest.single = r.at, time.Time{}, "", false
		if r.zone != "" {
			s.At = r.at.In(now.Location())
		}
	case r.dates != nil:
		s.At, err = r.once(now)
		rest.dates, rest.times, rest.zone, rest.count, rest.single = nil, nil, "", 0, false
	case r.every != 0 && !r.byClock(), r.wait != 0:
		s.Every, s.Delay, s.FromStart = r.every, r.wait, r.fromStart
		err = inBounds(s)
		rest.every, rest.wait, rest.fromStart, rest.single = 0, 0, false, r.single && r.every != 0
	case r.calendar() || r.every != 0:
		s, err = r.byCalendar()
		rest = reading{window: r.window, fromStart: r.fromStart, wait: r.wait, months: r.months, grid: r.grid, single: r.single, skipGap: r.skipGap, zone: r.zone, past: r.past}
		if r.every != 0 {
			rest.window, rest.grid, rest.past = nil, false, nil
		}
	case r.months != 0:
		return s, refused("a schedule cannot recur every %d months: say in which months", r.months)
	default:
		return s, &UnknownError{}
	}
	if err != nil {
		return s, err
	}
	return r.zoned(s, rest)
}

// inBounds refuses an interval and a delay that no task may have.
func inBounds(s Schedule) error {
	switch {
	case s.Every != 0 && (s.Every < schedule.MinInterval || s.Every > longest):
		return refused("an interval must be from %s to 10 years", schedule.MinInterval)
	case s.Delay > longest:
		return refused("a delay must be at most 10 years")
	}
	return nil
}

// zoned adds the zone and what happens when the clocks change, which only a cron expression has, and refuses what is left.
func (r *reading) zoned(s Schedule, rest reading) (Schedule, error) {
	if s.Cron != "" {
		s.Zone, rest.zone = r.zone, ""
		if r.skipGap {
			s.Gap, rest.skipGap = schedule.GapSkip, false
		}
		if _, err := schedule.ParseCron(s.Cron, "", s.DayMatch, s.Gap); err != nil {
			return s, refused("no such day ever comes")
		}
	}
	if what := rest.first(); what != "" {
		return s, refused("%s has no place in this schedule", what)
	}
	return s, nil
}

// first is something that a reading has; empty if it has nothing.
func (r *reading) first() string {
	for _, has := range []struct {
		is   bool
		what string
	}{
		{r.zone != "", "a zone"},
		{r.single, "once"},
		{r.now, "now"},
		{r.manual, "by hand"},
		{r.every != 0, "an interval"},
		{r.months != 0, "an interval of months"},
		{r.wait != 0, "a delay"},
		{r.fromStart, "the start of a run"},
		{r.grid, "the clock"},
		{r.past != nil, "the minute of the hour"},
		{r.window != nil, "a range of hours"},
		{r.dates != nil || !r.at.IsZero(), "a date"},
		{r.times != nil || r.count > 1, "a time of day"},
		{r.part != "", "the " + string(r.part)},
		{r.rhythm != noRhythm || r.quarter || r.onDays() || r.except != 0, "a day that recurs"},
		{r.both, "how days match"},
		{r.skipGap, "what happens when the clocks change"},
		{r.cron != "", "a cron expression"},
		{r.bare != 0, "a duration"},
	} {
		if has.is {
			return has.what
		}
	}
	return ""
}

// once is the time of a date.
func (r *reading) once(now time.Time) (time.Time, error) {
	switch {
	case r.every != 0:
		return time.Time{}, refused("an interval has no place beside a date")
	case len(r.times) != 1:
		return time.Time{}, refused("a date has one time")
	}
	at, _ := r.dates[0].at(r.times[0], now.Location())
	if !at[0].After(now) {
		return time.Time{}, refused("%s has passed", at[0].Format("2006-01-02 15:04"))
	}
	return at[0], nil
}

// at are the times at which clocks of a zone show a time of a date: two if they are set back over it. If they skip it, in a gap, it is the end of the
// gap.
func (d date) at(c clock, zone *time.Location) (times []time.Time, gap bool) {
	local := time.Date(d.year, d.month, d.day, c.hour, c.minute, c.second, 0, time.UTC)
	var offsets [2]int
	for i, near := range []time.Time{local.Add(-day), local.Add(day)} {
		_, offsets[i] = near.In(zone).Zone()
	}
	for i, offset := range offsets {
		t := local.Add(-time.Duration(offset) * time.Second).In(zone)
		if _, is := t.Zone(); is == offset && (i == 0 || offsets[0] != offsets[1]) {
			times = append(times, t)
		}
	}
	if len(times) > 0 {
		return times, false
	}
	_, end := local.Add(-time.Duration(offsets[0])*time.Second - day).In(zone).ZoneBounds()
	return []time.Time{end.In(zone), end.Add(-time.Minute).In(zone)}, true
}

// byCalendar is the cron expression of a reading.
func (r *reading) byCalendar() (Schedule, error) {
	clock, err := r.clockFields()
	if err != nil {
		return Schedule{}, err
	}
	days, match, err := r.dayFields()
	if err != nil {
		return Schedule{}, err
	}
	return Schedule{Cron: clock + " " + days, DayMatch: match}, nil
}

// clockFields are the fields of the time: second, if not zero, minute and hour.
func (r *reading) clockFields() (string, error) {
	if r.every != 0 {
		return r.stepFields()
	}
	if len(r.times) == 0 {
		return "", &UnknownError{}
	}
	hours, minutes, second, ok := product(r.times)
	if !ok {
		return "", refused("these times are several schedules")
	}
	fields := compress(minutes, 0, 59) + " " + ranged(hours)
	if second != 0 {
		fields = strconv.Itoa(second) + " " + fields
	}
	return fields, nil
}

// product splits times into hours and minutes, if all of these hours have all of these minutes.
func product(times []clock) (hours, minutes uint64, second int, ok bool) {
	all := sorted(times)
	for _, c := range all {
		hours, minutes = hours|1<<c.hour, minutes|1<<c.minute
		if second = c.second; second != all[0].second {
			return 0, 0, 0, false
		}
	}
	return hours, minutes, second, len(bits(hours))*len(bits(minutes)) == len(all)
}

// stepFields are the fields of the time of an interval by the clock.
func (r *reading) stepFields() (string, error) {
	step := func(every, unit time.Duration) string {
		if every == unit {
			return "*"
		}
		return "*/" + strconv.Itoa(int(every/unit))
	}
	if r.past != nil && r.every < time.Hour {
		return "", refused("the minute of the hour goes with an interval of hours")
	}
	hours, err := r.windowHours()
	switch {
	case err != nil:
		return "", err
	case r.every < minute:
		return step(r.every, time.Second) + " * " + hours, nil
	case r.every < time.Hour:
		return step(r.every, minute) + " " + hours, nil
	}
	minutes := "0"
	if r.past != nil {
		minutes = compress(setOf(r.past), 0, 59)
	} else if r.window != nil {
		minutes = strconv.Itoa(r.window.from.minute)
	}
	if r.window == nil {
		hours = step(r.every, time.Hour)
	}
	return minutes + " " + hours, nil
}

// windowHours is the field of the hours of an interval.
func (r *reading) windowHours() (string, error) {
	if r.window == nil {
		return "*", nil
	}
	from, to, step := r.window.from, r.window.to, 1
	switch {
	case r.every >= time.Hour:
		if step = int(r.every / time.Hour); r.past != nil && from.minute != 0 || from.second != 0 {
			return "", refused("the hours begin at a full minute, and at a full hour if the minutes of the hour are given")
		}
	case !r.window.through:
		to.hour = (to.hour + 23) % 24
	}
	var set uint64
	crosses := false
	for h := from.hour; ; h += step {
		set |= 1 << (h % 24)
		crosses = crosses || h >= 24
		if left := (to.hour - h%24 + 24) % 24; left < step {
			break
		}
	}
	if crosses && r.onDays() {
		return "", refused("hours that go on after midnight are of two days: leave out the days, or submit a task for each part")
	}
	text := ranged(set)
	if list := bits(set); step > 1 && !crosses && len(list) > 1 {
		text = strconv.Itoa(list[0]) + "-" + strconv.Itoa(list[len(list)-1]) + "/" + strconv.Itoa(step)
	}
	return text, nil
}

// dayFields are the fields of the days: day of month, month and day of week.
func (r *reading) dayFields() (string, schedule.DayMatch, error) {
	month := compress(uint64(r.inMonths), 1, 12)
	dom, dow := r.daysOfMonth(), compress(uint64(r.weekdays), 0, 6)
	var match schedule.DayMatch
	if len(r.nths) > 0 {
		if dow != "*" || dom != "*" {
			return "", "", refused("a weekday of the month goes with no other day")
		}
		dow = nthField(r.nths)
	}
	switch {
	case dom != "*" && dow != "*" && !r.both:
		return "", "", refused("days of the month and days of the week are two schedules")
	case dom != "*" && dow != "*":
		match = schedule.DayMatchAll
	case r.rhythm == weekly && dom != "*":
		return "", "", refused("days of the month do not recur each week")
	}
	return dom + " " + month + " " + dow, match, nil
}

// daysOfMonth is the field of the days of the month.
func (r *reading) daysOfMonth() string {
	var elements []string
	switch {
	case r.monthDays == oddDays:
		elements = append(elements, "1-31/2")
	case r.monthDays == evenDays:
		elements = append(elements, "2-30/2")
	case r.monthDays != 0:
		elements = append(elements, compress(uint64(r.monthDays), 1, 31))
	}
	if r.nearest != 0 {
		elements = append(elements, strconv.Itoa(r.nearest)+"W")
	}
	if r.lastDay {
		elements = append(elements, "L")
	}
	if elements == nil {
		return "*"
	}
	return strings.Join(elements, ",")
}

// nthField is the field of weekdays of the month.
func nthField(nths []nth) string {
	elements := make([]string, len(nths))
	for i, n := range nths {
		if elements[i] = strconv.Itoa(int(n.day)) + "L"; n.k > 0 {
			elements[i] = strconv.Itoa(int(n.day)) + "#" + strconv.Itoa(n.k)
		}
	}
	return strings.Join(elements, ",")
}

// compress writes a set as a field does: "*" for all or none, and ranges.
func compress(set uint64, low, high int) string {
	if list := bits(set); len(list) == 0 || len(list) == high-low+1 {
		return "*"
	}
	return ranged(set)
}

// ranged writes a set with ranges of three and more, also if it is all of them: a star would have another meaning when the clocks change.
func ranged(set uint64) string {
	list := bits(set)
	var out []string
	for i := 0; i < len(list); {
		j := i
		for j+1 < len(list) && list[j+1] == list[j]+1 {
			j++
		}
		if j-i >= 2 {
			out = append(out, strconv.Itoa(list[i])+"-"+strconv.Itoa(list[j]))
			i = j + 1
			continue
		}
		out = append(out, strconv.Itoa(list[i]))
		i++
	}
	return strings.Join(out, ",")
}
