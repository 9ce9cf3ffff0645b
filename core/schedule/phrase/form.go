package phrase

// The fields of a cron expression: what they mean, however they are written, and the reading of them.

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/schedule"
)

// A form is what a cron expression means: two expressions that have the same one fire at the same times in any zone.
type form struct {
	second, minute, hour, month uint64
	repeats, elapsed            bool   // as in schedule.Cron: what stars mean when the clocks change
	dom, dow                    string // the elements in order; "*" for all
	domOpen, dowOpen, all       bool   // a star, or a step on one, is no restriction
}

// formOf is the form of the expression of a schedule.
func formOf(s Schedule) (form, bool) {
	fields, err := schedule.Fields(s.Cron)
	if err != nil {
		return form{}, false
	}
	var f form
	var ok [4]bool
	f.second, ok[0] = values(fields[0], 0, 59)
	f.minute, ok[1] = values(fields[1], 0, 59)
	f.hour, ok[2] = values(fields[2], 0, 23)
	f.month, ok[3] = values(fields[4], 1, 12)
	f.repeats, f.elapsed = fields[1][0] == '*', strings.ContainsAny(fields[2], "*/")
	f.dom, f.domOpen = days31(fields[3], 31), strings.ContainsAny(fields[3][:1], "*?")
	f.dow, f.dowOpen = days31(fields[5], 6), strings.ContainsAny(fields[5][:1], "*?")
	f.all = s.DayMatch == schedule.DayMatchAll && !f.domOpen && !f.dowOpen
	return f, ok == [4]bool{true, true, true, true}
}

// values are the numbers of a field without special elements.
func values(field string, low, high int) (set uint64, ok bool) {
	for element := range strings.SplitSeq(field, ",") {
		span, step, stepped := strings.Cut(element, "/")
		by := 1
		if stepped {
			if by, _ = strconv.Atoi(step); by < 1 {
				return 0, false
			}
		}
		from, to, ranged := strings.Cut(span, "-")
		first, err := strconv.Atoi(from)
		last := first
		switch {
		case from == "*" || from == "?":
			first, last = low, high
		case err != nil:
			return 0, false
		case ranged:
			if last, err = strconv.Atoi(to); err != nil {
				return 0, false
			}
		case stepped:
			last = high
		}
		for v := first; v <= last && v < 64; v += by {
			set |= 1 << v
		}
	}
	return set, true
}

// days31 writes a field of days in one way: its numbers, or its elements in order if some are special.
func days31(field string, high int) string {
	low := 1
	if high == 6 {
		low = 0
	}
	set, ok := values(field, low, high)
	if !ok {
		elements := strings.Split(field, ",")
		slices.Sort(elements)
		return strings.Join(slices.Compact(elements), ",")
	}
	if high == 6 && set>>7&1 == 1 { // Sunday
		set = set&^(1<<7) | 1
	}
	return compress(set, low, high)
}

// sameCron reports whether the expressions of two schedules mean the same.
func sameCron(s, o Schedule) bool {
	if s.Cron == "" || o.Cron == "" {
		return s.Cron == o.Cron
	}
	f, one := formOf(s)
	g, other := formOf(o)
	match := func(s Schedule) bool { return s.DayMatch == schedule.DayMatchAll }
	if !one || !other {
		return s.Cron == o.Cron && match(s) == match(o)
	}
	return f == g
}

// mostMinutes is how many minutes of the hour have words.
const mostMinutes = 6

// readCron is the reading of a cron expression, if there may be words for it.
func readCron(s Schedule) (r reading, ok bool) {
	f, ok := formOf(s)
	if !ok || !r.readDays(f) {
		return r, false
	}
	fields, _ := schedule.Fields(s.Cron)
	minutes, hours := bits(f.minute), bits(f.hour)
	switch step, stepped := stepOf(fields[1], 60); {
	case len(bits(f.second)) > 1:
		return r, r.readSeconds(fields)
	case stepped && f.second == 1:
		r.every = time.Duration(step) * minute
		if fields[2] == "*" {
			r.grid = true
			return r, true
		}
		return r, r.readWindow(hours, 0, 60-step)
	case fields[2] == "*" && f.second == 1:
		r.every, r.past = time.Hour, minutes
		return r, len(minutes) <= mostMinutes
	}
	return r, r.readHours(f, fields[2])
}

// readSeconds reads an interval of seconds.
func (r *reading) readSeconds(fields []string) bool {
	step, ok := stepOf(fields[0], 60)
	r.every, r.grid = time.Duration(step)*time.Second, true
	return ok && fields[1] == "*" && fields[2] == "*"
}

// readHours reads times, or an interval of hours.
func (r *reading) readHours(f form, field string) bool {
	minutes, hours, seconds := bits(f.minute), bits(f.hour), bits(f.second)
	if step, ok := stepOf(field, 24); ok {
		r.every, r.past = time.Duration(step)*time.Hour, minutes
		return f.second == 1 && len(minutes) <= mostMinutes
	}
	if _, step, ok := strings.Cut(field, "/"); ok && len(minutes) == 1 && len(hours) > 1 && f.second == 1 {
		n, _ := strconv.Atoi(step)
		r.every = time.Duration(n) * time.Hour
		r.window = &window{clock{hour: hours[0], minute: minutes[0]}, clock{hour: hours[len(hours)-1], minute: minutes[0]}, true}
		return true
	}
	const mostHours, mostTimes = 3, 12
	if len(minutes) == 1 && len(hours) > mostHours && f.second == 1 {
		r.every = time.Hour
		if r.readWindow(hours, minutes[0], minutes[0]) {
			return true
		}
		r.every = 0
	}
	for _, h := range hours {
		for _, m := range minutes {
			r.times = append(r.times, clock{hour: h, minute: m, second: seconds[0]})
		}
	}
	return len(r.times) <= mostTimes
}

// readWindow reads hours that follow one another, also over midnight.
func (r *reading) readWindow(hours []int, first, last int) bool {
	from := 0
	for i := range hours {
		before := hours[(i+len(hours)-1)%len(hours)]
		if (before+1)%24 != hours[i] {
			if from != 0 {
				return false // a second gap
			}
			from = i + 1
		}
	}
	if from == 0 {
		from = 1
	}
	start := hours[from-1]
	r.window = &window{clock{hour: start, minute: first}, clock{hour: (start + len(hours) - 1) % 24, minute: last}, true}
	return true
}

// stepOf is the step of a field that is a star or a step on one.
func stepOf(field string, whole int) (int, bool) {
	if field == "*" {
		return 1, true
	}
	text, ok := strings.CutPrefix(field, "*/")
	n, err := strconv.Atoi(text)
	return n, ok && err == nil && n > 0 && whole%n == 0
}

// readDays reads the days of an expression.
func (r *reading) readDays(f form) bool {
	r.rhythm = daily
	if f.month != setOf([]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}) {
		r.inMonths = uint16(f.month & 0x1FFF)
	}
	return r.readMonthDays(f.dom) && r.readWeekdays(f.dow)
}

// readMonthDays reads the field of the days of the month.
func (r *reading) readMonthDays(field string) bool {
	if field == "*" {
		return true
	}
	for element := range strings.SplitSeq(field, ",") {
		near, nearest := strings.CutSuffix(element, "W")
		n, _ := strconv.Atoi(near)
		set, ok := values(element, 1, 31)
		switch {
		case element == "L":
			r.lastDay = true
		case nearest && element == field && n > 0:
			r.nearest = n
		case ok:
			r.monthDays |= uint32(set & 0xFFFFFFFF)
		default:
			return false
		}
	}
	return true
}

// readWeekdays reads the field of the days of the week.
func (r *reading) readWeekdays(field string) bool {
	if field == "*" {
		return true
	}
	if set, ok := values(field, 0, 6); ok {
		r.weekdays, r.both = days(set&0x7F), r.onMonthDays()
		return true
	}
	for element := range strings.SplitSeq(field, ",") {
		w, k, ok := strings.Cut(element, "#")
		n := nth{k: -1}
		if ok {
			n.k, _ = strconv.Atoi(k)
		} else if w, ok = strings.CutSuffix(element, "L"); !ok {
			return false
		}
		of, err := strconv.Atoi(w)
		if n.day = time.Weekday(of % 7); err != nil || len(r.nths) > 0 && r.nths[0].day != n.day {
			return false
		}
		r.nths = append(r.nths, n)
	}
	return !r.onMonthDays() || r.monthDays == 0 && !r.lastDay && r.nearest == 0
}
