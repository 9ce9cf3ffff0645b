package phrase

// The words of a reading.

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

func quote(text string) string { return strconv.Quote(text) }

// text is a time as 24-hour clocks show it; a bare one as it was said.
func (c clock) text() string {
	switch {
	case c.bare && c.minute == 0:
		return strconv.Itoa(c.hour)
	case c.second != 0:
		return fmt.Sprintf("%02d:%02d:%02d", c.hour, c.minute, c.second)
	}
	return fmt.Sprintf("%02d:%02d", c.hour, c.minute)
}

func (d date) text() string { return fmt.Sprintf("%04d-%02d-%02d", d.year, d.month, d.day) }

// measures are the units in which durations are spelt.
var measures = []struct {
	name string
	d    time.Duration
}{{"week", week}, {"day", day}, {"hour", time.Hour}, {"minute", minute}, {"second", time.Second}}

// readLength spells a duration: "2 hours", "1 hour 30 minutes".
func length(d time.Duration) string {
	if d%time.Second != 0 {
		return d.String()
	}
	var parts []string
	for _, m := range measures {
		n := d / m.d
		if n == 0 || m.d == week && d%week != 0 { // 8 days, and not a week and a day
			continue
		}
		part := fmt.Sprintf("%d %s", n, m.name)
		if n > 1 {
			part += "s"
		}
		parts, d = append(parts, part), d%m.d
	}
	return strings.Join(parts, " ")
}

// spell is a duration behind "every", where one of it has no number.
func spell(d time.Duration) string {
	switch d {
	case time.Hour, minute, time.Second:
		return strings.TrimPrefix(length(d), "1 ")
	case day:
		return "24 hours" // "every day" is of the calendar
	case week:
		return "7 days"
	default:
	}
	if minutes := d / minute; d%minute == 0 && d%time.Hour != 0 && minutes < 180 {
		return strconv.Itoa(int(minutes)) + " minutes"
	}
	if hours := d / time.Hour; d%time.Hour == 0 && d%day != 0 && hours < 240 && hours > 1 {
		return strconv.Itoa(int(hours)) + " hours"
	}
	return length(d)
}

// text is the phrase of a reading that is a cron expression.
func (r *reading) text() string {
	if r.every == 0 {
		return r.dayText() + " at " + timesText(r.times)
	}
	text := "every " + spell(r.every)
	switch {
	case len(r.past) == 1 && r.past[0] == 0:
		text += " on the hour"
	case r.past != nil:
		past := make([]string, len(r.past))
		for i, m := range r.past {
			past[i] = fmt.Sprintf(":%02d", m)
		}
		text += " at " + list(past, "and")
	case r.window != nil:
		text += " from " + r.window.from.text() + " through " + r.window.to.text()
	}
	switch {
	case r.weekdays == 0 && r.inMonths != 0 && !r.onMonthDays():
		text += strings.TrimPrefix(r.dayText(), "every day")
	case r.onMonthDays():
		text += " " + r.dayText()
	case r.weekdays != 0:
		text += " " + r.weekdaysText() + r.monthsText()
	case r.window == nil && r.past == nil:
		text += " on the clock"
	}
	return text
}

func timesText(times []clock) string {
	out := make([]string, len(times))
	for i, c := range times {
		out[i] = c.text()
	}
	return list(out, "and")
}

// dayText names the days on which something happens.
func (r *reading) dayText() string {
	in, months := r.monthsText(), bits(r.inMonths)
	if r.onMonthDays() {
		if in == "" {
			return "on " + r.monthDayText() + " of each month"
		}
		if days := bits(r.monthDays); len(months) == 1 && len(days) == 1 && !r.lastDay && !r.both {
			return "every " + monthNames[months[0]-1] + " " + strconv.Itoa(days[0])
		}
		return "on " + r.monthDayText() + " of " + strings.TrimPrefix(in, " in ")
	}
	switch r.weekdays {
	case 0:
		return "every day" + in
	case workdays:
		return "every weekday" + in
	default:
	}
	if missing, one := (allDays &^ r.weekdays).single(); one {
		return "every day except " + strings.ToLower(missing.String()) + in
	}
	return "every " + list(r.weekdays.names(""), "and") + in
}

// names are those of some days, Monday first.
func (d days) names(ending string) []string {
	var names []string
	for i := 1; i <= 7; i++ {
		if w := time.Weekday(i % 7); d&only(w) != 0 {
			names = append(names, strings.ToLower(w.String())+ending)
		}
	}
	return names
}

// weekdaysText names days of the week behind an interval.
func (r *reading) weekdaysText() string {
	if r.weekdays == workdays {
		return "on weekdays"
	}
	if missing := (allDays &^ r.weekdays).names(""); len(missing) == 1 {
		return "except " + missing[0]
	}
	return "on " + list(r.weekdays.names("s"), "and")
}

// monthsText names the months, if not all.
func (r *reading) monthsText() string {
	var months []string
	for _, m := range bits(r.inMonths) {
		months = append(months, monthNames[m-1])
	}
	if months == nil {
		return ""
	}
	return " in " + list(months, "and")
}

// monthDayText names days of the month.
func (r *reading) monthDayText() string {
	numbers := func(set uint32) string {
		var names []string
		for _, d := range bits(set) {
			names = append(names, strconv.Itoa(d)+suffix(d))
		}
		if r.lastDay && len(names) > 0 {
			return "the " + strings.Join(names, ", ") + " and the last day"
		}
		return "the " + list(names, "and")
	}
	switch {
	case r.both:
		w, _ := r.weekdays.single()
		return strings.ToLower(w.String()) + " " + numbers(r.monthDays)
	case len(r.nths) > 0:
		return "the " + nthText(r.nths)
	case r.nearest == 1:
		return "the first weekday"
	case r.nearest > 1:
		return "the weekday nearest the " + strconv.Itoa(r.nearest) + suffix(r.nearest)
	case r.monthDays == oddDays:
		return "odd days"
	case r.monthDays == evenDays:
		return "even days"
	case r.lastDay && r.monthDays == 0:
		return "the last day"
	}
	return numbers(r.monthDays)
}

// nthText names weekdays of the month.
func nthText(nths []nth) string {
	var names []string
	for _, n := range nths {
		if n.k < 0 {
			names = append(names, "last")
		} else {
			names = append(names, ordinals[n.k-1])
		}
	}
	return list(names, "and") + " " + strings.ToLower(nths[0].day.String())
}
