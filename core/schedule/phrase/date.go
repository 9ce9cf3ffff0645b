package phrase

// Days of the calendar: once, or each year.

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

var (
	isoDate   = pattern(`^(\d{4})-(\d{1,2})-(\d{1,2})(?:t(\d{2}:\d{2}(?::\d{2})?))?$`)
	figures   = pattern(`^(\d{1,2})([/.-])(\d{1,2})(?:[/.-](\d{4}))?$`)
	yearFirst = pattern(`^(\d{4})/(\d{1,2})/(\d{1,2})$`)
	yearOnly  = pattern(`^(20|21|22)\d\d$`)
)

// noteDates notes alternatives for the day, of which the rest of the phrase may leave one.
func noteDates(p *reader, alternatives []date) bool {
	p.once(p.r.dates != nil || p.r.wait != 0 || !p.r.at.IsZero(), "the day")
	p.r.dates = alternatives
	return true
}

// todays is the day some days after today: two, if the zone of the phrase and that of the user are not on the same day.
func todays(p *reader, n int) []date {
	here, there := dateOf(p.user), dateOf(p.now)
	if here == there {
		return []date{there.plus(n)}
	}
	return []date{here.plus(n), there.plus(n)}
}

// readDate reads a day: "tomorrow", "next friday", "2026-12-24", "05/06/2026".
func readDate(p *reader) bool {
	p.take("on")
	switch {
	case p.seq("today"):
		return noteDates(p, todays(p, 0))
	case p.seq("the day after tomorrow", "day after tomorrow"):
		return noteDates(p, todays(p, 2))
	case p.seq("tomorrow"):
		return noteDates(p, todays(p, 1))
	case p.seq("yesterday", "last week", "last month", "last night", "last year"):
		p.err = refused("%q has passed", p.words[p.at-1].raw)
		return false
	case p.seq("next weekend"):
		return noteDates(p, saturdays(append(weekFrom(p, 0), weekFrom(p, 1)...)))
	case p.seq("this weekend"):
		return noteDates(p, saturdays(weekFrom(p, 0)))
	case p.seq("next week"):
		return noteDates(p, weekFrom(p, 1))
	case p.seq("this week"):
		return noteDates(p, weekFrom(p, 0))
	case p.seq("next month"):
		return noteDates(p, monthFrom(p, 1))
	case p.seq("this month"):
		return noteDates(p, monthFrom(p, 0))
	case p.seq("the end of the month", "at the end of the month", "end of the month", "end of month", "month end"):
		p.r.lastDay, p.r.loose = true, true
		return true
	case p.seq("the end of each month", "at the end of each month", "at the end of every month", "the end of every month", "end of each month"):
		p.r.lastDay, p.r.rhythm = true, monthly
		return true
	}
	return readInstant(p) || readWritten(p) || readNextDay(p)
}

// readInstant reads a time with its offset from UTC, as RFC 3339 has it.
func readInstant(p *reader) bool {
	text := strings.ToUpper(p.peek(0))
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		if t, err = time.Parse("2006-01-02T15:04Z07:00", text); err != nil {
			return false
		}
	}
	p.at++
	p.once(p.r.dates != nil || p.r.wait != 0 || !p.r.at.IsZero(), "the day")
	p.r.at = t
	return true
}

// readWritten reads a date in figures.
func readWritten(p *reader) bool {
	text := p.peek(0)
	if m := isoDate().FindStringSubmatch(text); m != nil {
		p.at++
		if m[4] != "" {
			p.once(p.r.times != nil, "the time of day")
			c, _ := onClock(p, m[4][:2], m[4][3:5], strings.TrimPrefix(m[4][5:], ":"), "")
			p.r.times = []clock{c}
		}
		return exactDate(p, m[1], m[2], m[3])
	}
	if m := yearFirst().FindStringSubmatch(text); m != nil {
		p.at++
		return exactDate(p, m[1], m[2], m[3])
	}
	m := figures().FindStringSubmatch(text)
	if m == nil || m[4] == "" && m[2] != "/" {
		return false
	}
	p.at++
	return eitherDate(p, m[1], m[3], m[4])
}

// exactDate is a date of which it is clear what is what.
func exactDate(p *reader, year, month, day string) bool {
	y, _ := strconv.Atoi(year)
	m, _ := strconv.Atoi(month)
	d, _ := strconv.Atoi(day)
	on := date{y, time.Month(m), d}
	if !on.valid() {
		p.err = refused("%q is no day of the calendar", p.words[p.at-1].raw)
		return false
	}
	return noteDates(p, []date{on})
}

// eitherDate is a date of which some write the day first, and others the month.
func eitherDate(p *reader, one, other, year string) bool {
	a, _ := strconv.Atoi(one)
	b, _ := strconv.Atoi(other)
	y, _ := strconv.Atoi(year)
	var found []date
	for _, on := range []date{{y, time.Month(b), a}, {y, time.Month(a), b}} {
		if y == 0 {
			on.year = 2024 // which has all days
		}
		if on.valid() && (len(found) == 0 || on != found[0]) {
			found = append(found, on)
		}
	}
	if len(found) == 0 {
		p.err = refused("%q is no day of the calendar", p.words[p.at-1].raw)
		return false
	}
	if y > 0 {
		return noteDates(p, found)
	}
	var options []func(r *reading)
	for _, on := range found {
		options = append(options, func(r *reading) { r.monthDays, r.inMonths, r.loose = 1<<on.day, 1<<on.month, true })
	}
	if len(options) > 1 {
		return doubtful(p, "The day first, or the month?", options...)
	}
	p.once(p.r.monthDays != 0 || p.r.inMonths != 0, "the day of the year")
	options[0](&p.r)
	return true
}

// comingDate is the next day with a month and a number, today included.
func comingDate(p *reader, m time.Month, d int) date {
	today := dateOf(p.now)
	for y := today.year; y < today.year+9; y++ {
		if on := (date{y, m, d}); on.valid() && !on.utc().Before(today.utc()) {
			return on
		}
	}
	return date{}
}

// weekFrom are the days of a week that are still to come: this one, or the next. Where weeks begin on Sunday, a Sunday is of another one.
func weekFrom(p *reader, n int) []date {
	today := dateOf(p.now)
	monday := today.plus(7*n - (int(p.now.Weekday())+6)%7)
	var found []date
	for i := -1; i < 7; i++ {
		if on := monday.plus(i); !on.utc().Before(today.utc()) {
			found = append(found, on)
		}
	}
	return found
}

// saturdays are the days of weekends among some, each once.
func saturdays(of []date) []date {
	var found []date
	for _, on := range of {
		if weekend&only(on.utc().Weekday()) != 0 && !slices.Contains(found, on) {
			found = append(found, on)
		}
	}
	return found
}

// monthFrom are the days of a month that are still to come: this one, or the next.
func monthFrom(p *reader, n int) []date {
	today := dateOf(p.now)
	first := dateOf(time.Date(today.year, today.month+time.Month(n), 1, 0, 0, 0, 0, time.UTC))
	var found []date
	for on := first; on.month == first.month; on = on.plus(1) {
		if !on.utc().Before(today.utc()) {
			found = append(found, on)
		}
	}
	return found
}

// readNextDay reads "next friday" and the like. Some mean the coming one by "next", others that of next week.
func readNextDay(p *reader) bool {
	var others []date // that may be meant, besides the coming one
	switch {
	case p.seq("this coming", "the coming", "coming"):
	case p.take("next"):
		others = weekFrom(p, 1)
	case p.take("this"):
		others = []date{dateOf(p.now)}
	default:
		return false
	}
	w, plural, ok := weekday(p.peek(0))
	if !ok || plural {
		return false
	}
	p.at++
	coming := dateOf(p.now).plus((int(w-p.now.Weekday())+6)%7 + 1)
	found := []date{coming}
	for _, on := range others {
		if on.utc().Weekday() == w && on != coming {
			found = append(found, on)
		}
	}
	return noteDates(p, found)
}

// readMonthDay reads a day with its month: "december 24", "the 24th of december 2026", "1 jan".
func readMonthDay(p *reader) bool {
	every := p.take("every", "each")
	if !every {
		p.take("on")
	}
	p.take("the")
	m, d, ok := readDayAndMonth(p)
	if !ok {
		return false
	}
	at := p.at
	p.take(",")
	if year := p.peek(0); yearOnly().MatchString(year) && !every && p.words[p.at-1].text != "at" {
		p.at++
		y, _ := strconv.Atoi(year)
		if on := (date{y, m, d}); on.valid() {
			return noteDates(p, []date{on})
		}
		p.err = refused("%s %d, %d is no day of the calendar", m, d, y)
		return false
	}
	p.at = at
	if p.seq("every year", "each year", "of every year", "of each year", "yearly", "annually") || every {
		noteRhythm(p, yearly)
	}
	if !comingDate(p, m, d).valid() {
		p.err = refused("%s has no day %d", m, d)
		return false
	}
	p.once(p.r.monthDays != 0 || p.r.inMonths != 0, "the day of the year")
	p.r.monthDays, p.r.inMonths, p.r.loose = 1<<d, 1<<m, p.r.rhythm == noRhythm
	return true
}

// readDayAndMonth reads a day and a month, in either order.
func readDayAndMonth(p *reader) (m time.Month, d int, ok bool) {
	dayOf := func() (int, bool) {
		d, ok := ordinal(p.peek(0))
		if !ok {
			d, ok = number(p.peek(0))
		}
		return d, ok && d >= 1 && d <= 31 && p.take(p.peek(0))
	}
	if m, ok = month(p.peek(0)); ok {
		p.at++
		p.take("the")
		d, ok = dayOf()
		// A list of days of a month, and a time, are other clauses.
		return m, d, ok && p.peek(0) != "and" && p.peek(0) != "am" && p.peek(0) != "pm"
	}
	if d, ok = dayOf(); !ok {
		return 0, 0, false
	}
	p.take("of")
	m, ok = month(p.peek(0))
	if ok {
		p.at++
	}
	return m, d, ok && p.peek(0) != "and" && (p.peek(0) != "," || !monthFollows(p))
}

// monthFollows reports whether a month follows the comma, so that this one is the first of a list.
func monthFollows(p *reader) bool {
	_, ok := month(p.peek(1))
	return ok
}
