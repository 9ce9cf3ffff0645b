package phrase

// Days that recur: of the week and of the month.

import (
	"slices"
	"time"
)

// readWeekday reads days of the week: "every monday and thursday", "mon-fri", "on weekends".
func readWeekday(p *reader) bool {
	every := p.take("every", "each")
	if !every {
		p.seq("on a", "on", "a", "from")
	}
	set, plural, n := readDaySet(p)
	if n == 0 {
		return false
	}
	p.once(p.r.weekdays != 0, "the day of the week")
	p.r.weekdays = set
	p.once(p.r.rhythm == daily && (every || !plural && n == 1), "how often")
	switch {
	case every && p.r.rhythm == noRhythm:
		p.r.rhythm = weekly
	case every && p.r.rhythm == monthly, every && p.r.rhythm == yearly:
		p.err = refused("a day each week and each month are two schedules: say which Monday of the month, as in the first monday of each month")
	case !plural && n == 1:
		p.r.loose = true
	case p.r.rhythm == noRhythm:
		p.r.rhythm = weekly
	}
	return true
}

// readDaySet reads a list of days, and says how many names it has: a range counts as many.
func readDaySet(p *reader) (set days, plural bool, n int) {
	for {
		at := p.at
		if n > 0 {
			comma := p.take(",")
			if !p.take("and", "plus") && !comma {
				return set, plural, n
			}
			p.seq("on", "every", "each")
		}
		more, many, ok := readDayName(p)
		if !ok {
			p.at = at
			return set, plural, n
		}
		if _, one := more.single(); !one {
			n++
		}
		set, plural, n = set|more, plural || many, n+1
		// A time in the list belongs to the day before it, and not to all.
		if p.at > at && p.peek(0) == "at" {
			return set, plural, n
		}
	}
}

// readDayName reads one day, a range of days, or a word for several.
func readDayName(p *reader) (set days, plural, ok bool) {
	switch {
	case p.take("weekday"):
		return workdays, false, true
	case p.take("weekdays", "weeknights"):
		return workdays, true, true
	case p.take("weekend"), p.seq("weekend day"):
		p.take("day")
		return weekend, false, true
	case p.take("weekends"):
		return weekend, true, true
	case readWorkdays(p):
		return workdays, true, true
	}
	first, plural, ok := weekday(p.peek(0))
	if !ok {
		return 0, false, false
	}
	p.at++
	at := p.at
	if p.take("to", "through", "thru", "till", "until", "-", "–") {
		if last, _, ok := weekday(p.peek(0)); ok {
			p.at++
			for d := first; ; d = (d + 1) % 7 {
				if set |= only(d); d == last {
					return set, true, true
				}
			}
		}
		p.at = at
	}
	return only(first), plural, true
}

// readWorkdays asks about days on which people work: a schedule knows no holidays.
func readWorkdays(p *reader) bool {
	return takeWorkday(p) && doubtful(p, "A schedule knows no holidays. On every weekday?", func(r *reading) { r.weekdays, r.rhythm, r.loose = workdays, weekly, false })
}

func takeWorkday(p *reader) bool {
	return p.seq("business day", "business days", "working day", "working days", "workday", "workdays", "work day", "work days")
}

// readWithout reads days that are left out: "except sunday".
func readWithout(p *reader) bool {
	if !p.seq("except on", "except for", "except", "but not on", "but not", "excluding", "other than") {
		return false
	}
	set, _, n := readDaySet(p)
	if n == 0 {
		p.err = refused("only days of the week can be left out, as in every day except sunday")
		return false
	}
	p.once(p.r.except != 0, "the days to leave out")
	p.r.except = set
	return true
}

// readNthDay reads a weekday of the month: "the first monday of each month", "every last friday".
func readNthDay(p *reader) bool {
	every := p.take("every", "each")
	if !every {
		p.take("on")
	}
	p.take("the")
	var ks []int
	for {
		k, ok := ordinal(p.peek(0))
		if p.peek(0) == "last" {
			k, ok = -1, true
		}
		if !ok {
			return false
		}
		p.at++
		ks = append(ks, k)
		if comma := p.take(","); !p.take("and") && !comma {
			break
		}
		p.take("the")
	}
	return readOfMonth(p, ks, every)
}

// readOfMonth reads which days of the month are the first, or the last.
func readOfMonth(p *reader, ks []int, every bool) bool {
	if !readWeekdaysOf(p, ks) && (len(ks) > 1 || !readOneDay(p, ks[0])) || p.err != nil {
		return false
	}
	tail := readTail(p)
	if every && !tail {
		if p.err != nil || ks[0] != 1 && ks[0] != -1 || len(p.r.nths) == 0 {
			return false // "every second monday" is asked about elsewhere
		}
		noteMonthly(p)
	}
	p.r.loose = p.r.loose || !tail && !every
	return true
}

// readWeekdaysOf reads the weekday of which the first or the last of the month are meant.
func readWeekdaysOf(p *reader, ks []int) bool {
	w, _, ok := weekday(p.peek(0))
	if !ok || ks[0] > 5 {
		return false
	}
	p.at++
	p.once(p.r.nths != nil, "the weekday of the month")
	for _, k := range ks {
		if k > 5 {
			p.err = refused("no month has a %d%s %s", k, suffix(k), w)
		}
		p.r.nths = append(slices.Clip(p.r.nths), nth{k, w})
	}
	return true
}

// readOneDay reads a day of the month that is no weekday by its name: its last day, and the first of its weekdays.
func readOneDay(p *reader, k int) bool {
	switch {
	case k == -1 && p.take("day"):
		p.once(p.r.lastDay, "the last day of the month")
		p.r.lastDay = true
	case k == 1 && p.take("weekday"):
		p.r.nearest = 1
	case k == 1 && takeWorkday(p):
		p.r.nearest = 1
		doubtful(p, "A schedule knows no holidays. On the first weekday?", func(*reading) {})
	case k == -1 && (p.take("weekday") || takeWorkday(p)):
		doubtful(p, "A schedule cannot say the last weekday of the month. Which day instead?",
			func(r *reading) { r.lastDay, r.rhythm, r.loose = true, monthly, false },
			func(r *reading) { r.nths, r.rhythm, r.loose = []nth{{-1, time.Friday}}, monthly, false })
	default:
		return false
	}
	return true
}

// noteMonthly notes that something recurs each month.
func noteMonthly(p *reader) {
	p.once(p.r.rhythm != noRhythm && p.r.rhythm != monthly, "how often")
	p.r.rhythm = monthly
}

// readTail reads which months a day is of: "of each month", "of january and july", "of the quarter".
func readTail(p *reader) bool {
	at := p.at
	p.take("day", "days")
	switch {
	case p.take("monthly"), p.seq("of the month", "of each month", "of every month", "of a month", "in each month", "in every month", "every month", "each month", "of the months"):
		noteMonthly(p)
		return true
	case p.seq("of the quarter", "of each quarter", "of every quarter", "each quarter", "every quarter"):
		return noteQuarterly(p)
	case p.seq("of the year", "of each year", "of every year", "each year", "every year"):
		return readOfYear(p)
	case p.seq("of next month", "next month"):
		noteDates(p, monthFrom(p, 1))
		return true
	case p.seq("of this month", "this month"):
		noteDates(p, monthFrom(p, 0))
		return true
	}
	p.take("of", "in")
	if readMonths(p) {
		if p.r.rhythm == noRhythm && (p.r.monthDays == 0 || p.r.lastDay) {
			p.r.rhythm = monthly
		}
		return true
	}
	p.at = at
	return false
}

// readOfYear is the first or the last day of the year.
func readOfYear(p *reader) bool {
	switch {
	case p.r.lastDay:
		p.r.lastDay, p.r.monthDays, p.r.inMonths = false, 1<<31, 1<<12
	case p.r.monthDays == 1<<1:
		p.r.inMonths = 1 << 1
	default:
		return false
	}
	return noteRhythm(p, yearly)
}

// readMonths reads a list of months.
func readMonths(p *reader) bool {
	set := readMonthRange(p)
	for more := set; more != 0; set |= more {
		at := p.at
		comma := p.take(",")
		more = 0
		if p.take("and") || comma {
			more = readMonthRange(p)
		}
		if more == 0 {
			p.at = at
		}
	}
	p.once(set != 0 && p.r.inMonths != 0, "the month")
	p.r.inMonths |= set
	return set != 0
}

// readMonthRange reads a month, or the months from one to another.
func readMonthRange(p *reader) (set uint16) {
	m, ok := month(p.peek(0))
	if !ok {
		return 0
	}
	p.at++
	set = 1 << m
	at := p.at
	if !p.take("to", "through", "-") {
		return set
	}
	last, ok := month(p.peek(0))
	if !ok {
		p.at = at
		return set
	}
	p.at++
	for m != last {
		m = m%12 + 1
		set |= 1 << m
	}
	return set
}

// readInMonth reads months by themselves: "in january and july", "every march".
func readInMonth(p *reader) bool {
	if p.take("every", "each") {
		if !readMonths(p) {
			return false
		}
		if p.r.rhythm == noRhythm {
			p.r.rhythm = yearly
		}
		return true
	}
	if p.seq("of the month", "of each month", "of every month") {
		noteMonthly(p)
		return true
	}
	return p.take("in", "during", "from") && readMonths(p)
}

// readDayOfMonth reads days by their number: "on the 1st and 15th of each month", "day 15", "the weekday nearest the 15th".
func readDayOfMonth(p *reader) bool {
	every := p.take("every", "each")
	if !every {
		p.take("on")
	}
	p.take("the")
	nearest := p.seq("weekday nearest the", "weekday nearest to the", "nearest weekday to the")
	set, ok := readNumbered(p)
	if !ok {
		return false
	}
	p.once(p.r.monthDays != 0 || p.r.nearest != 0, "the day of the month")
	p.r.monthDays = set
	if list := bits(set); nearest && len(list) == 1 {
		p.r.nearest, p.r.monthDays = list[0], 0
	} else if nearest {
		p.err = refused("only one day can have its nearest weekday")
	}
	if p.seq("and the last day", "and last day", "and on the last day") {
		p.r.lastDay = true
	}
	if readTail(p) {
		return true
	}
	p.r.loose = p.r.loose || !every && len(bits(set)) == 1
	if every && p.r.rhythm == noRhythm {
		noteMonthly(p)
	}
	return !every || ordinalDigits().MatchString(p.words[p.at-1].text) // "every day 9" and "every second" are something else
}

// readNumbered reads the numbers of days of the month, or words for half of them.
func readNumbered(p *reader) (set uint32, ok bool) {
	switch {
	case p.seq("odd days", "odd day"):
		return oddDays, true
	case p.seq("even days", "even day"):
		return evenDays, true
	}
	return readDayNumbers(p)
}

// readDayNumbers reads a list of days of the month.
func readDayNumbers(p *reader) (set uint32, ok bool) {
	counted := p.take("day", "days")
	for {
		at := p.at
		if set != 0 {
			comma := p.take(",")
			if !p.take("and") && !comma {
				return set, true
			}
			p.seq("on the", "the")
		}
		d, ok := ordinal(p.peek(0))
		if counted {
			d, ok = number(p.peek(0))
		}
		if !ok || otherFollows(p) {
			p.at = at
			return set, set != 0
		}
		if d < 1 || d > 31 {
			p.err = refused("no month has a day %d", d)
			return 0, false
		}
		p.at++
		set |= 1 << d
	}
}

// otherFollows reports whether the word behind the next one is a unit or a day of the week: then the next is no day of the month, but for "1st day of".
func otherFollows(p *reader) bool {
	_, _, ok := unit(p.peek(1))
	return ok && (p.peek(1) != "day" && p.peek(1) != "days" || p.peek(2) != "of" && p.peek(2) != "in") || isDay(p.peek(1))
}
