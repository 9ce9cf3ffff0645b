package phrase

// How often: intervals, delays and rhythms.

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/schedule"
)

const minute = time.Minute

// longest is the longest interval or delay that a task may have.
const longest = 10 * 365 * day

var (
	decimal = pattern(`^(\d{1,6})\.(\d{1,3})$`)
	compact = pattern(`^(\d+(\.\d+)?(w|d|h|m|s|ms|us|ns))+$`)
	joined  = pattern(`^(\d{1,9})-?(seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?)$`)
)

// readOften returns an answer to a question: an interval.
func often(d time.Duration) func(r *reading) { return func(r *reading) { r.every = d } }

// readAlways asks how often, of what is always.
func readAlways(p *reader) bool {
	if !p.seq("24/7", "around the clock", "constantly", "continuously", "all the time", "always") {
		return false
	}
	return doubtful(p, "How often?", often(minute), often(15*minute), often(60*minute))
}

// readVague asks about words that name no time at all.
func readVague(p *reader) bool {
	switch {
	case p.seq("every now and then", "every so often", "now and then", "often", "frequently", "regularly", "periodically", "sometimes", "occasionally", "rarely", "from time to time", "repeatedly"):
		return doubtful(p, "How often?", often(5*minute), often(60*minute), func(r *reading) { r.rhythm, r.times = daily, []clock{{hour: 9}} })
	case p.seq("later today"):
		return doubtful(p, "When?", func(r *reading) { r.wait = time.Hour }, func(r *reading) { r.wait = 3 * time.Hour },
			func(r *reading) { r.dates, r.times = []date{dateOf(p.now)}, []clock{{hour: 18}} })
	case p.seq("soon", "later", "shortly", "in a bit", "in a while", "in a moment", "eventually", "some time", "sometime"):
		wait := func(d time.Duration) func(r *reading) { return func(r *reading) { r.wait = d } }
		return doubtful(p, "When?", wait(5*minute), wait(60*minute), func(r *reading) { r.dates, r.times = []date{dateOf(p.now).plus(1)}, []clock{{hour: 9}} })
	case p.seq("biweekly", "bi-weekly"):
		return doubtful(p, "Twice a week, or every two weeks?", twiceAWeek, everyOther(2*week))
	case p.seq("bimonthly", "bi-monthly"):
		return doubtful(p, "Twice a month, or every two months?", twiceAMonth, everyTwoMonths)
	case p.seq("semiweekly", "semi-weekly", "twice a week", "twice per week", "twice weekly", "two times a week"):
		return doubtful(p, "On which two days?", twiceAWeek, func(r *reading) { r.weekdays, r.rhythm = only(time.Tuesday)|only(time.Friday), weekly })
	case p.seq("semimonthly", "semi-monthly", "twice a month", "twice per month", "twice monthly"):
		return doubtful(p, "On which two days?", twiceAMonth, func(r *reading) { r.monthDays, r.lastDay, r.rhythm = 1<<15, true, monthly })
	}
	return false
}

func twiceAWeek(r *reading) {
	if r.weekdays == 0 {
		r.weekdays = only(time.Monday)
	}
	r.weekdays |= (r.weekdays<<3 | r.weekdays>>4) & allDays
	r.rhythm, r.loose = weekly, false
}

func twiceAMonth(r *reading) { r.monthDays, r.rhythm = 1<<1|1<<15, monthly }

func everyOther(d time.Duration) func(r *reading) {
	return func(r *reading) { r.every, r.rhythm = d, noRhythm }
}

func everyTwoMonths(r *reading) {
	r.inMonths, r.rhythm = 1<<1|1<<3|1<<5|1<<7|1<<9|1<<11, monthly
	if !r.onMonthDays() {
		r.monthDays = 1 << 1
	}
}

// readTimes that words such as "twice" promise.
var multiples = map[string]int{"once": 1, "twice": 2, "thrice": 3}

// readPerDay reads how many times something happens in a day or an hour: "twice a day", "3 times per hour".
func readPerDay(p *reader) bool {
	n := multiples[p.peek(0)]
	if n > 0 {
		p.at++
	} else {
		var ok bool
		if n, ok = number(p.peek(0)); !ok || p.peek(1) != "times" {
			return false
		}
		p.at += 2
	}
	p.take("a", "per", "an", "each", "every", "in")
	word := p.peek(0)
	p.at++
	before := p.r.rhythm != noRhythm || p.r.every != 0
	switch {
	case word == "day" || word == "daily":
		p.r.rhythm, p.r.count = daily, n
	case word == "hour" && n > 0 && 60%n == 0:
		p.r.every = time.Duration(60/n) * minute
	case n == 1 && (word == "week" || word == "weekly"):
		p.r.rhythm = weekly
	case n == 1 && (word == "month" || word == "monthly"):
		p.r.rhythm = monthly
	case n == 1 && (word == "year" || word == "yearly"):
		p.r.rhythm = yearly
	default:
		p.at--
		return false
	}
	p.once(before, "how often")
	return true
}

var adverbs = map[string]rhythm{"daily": daily, "weekly": weekly, "monthly": monthly, "yearly": yearly, "annually": yearly}

// readOften reads an interval or a rhythm: "every 5 minutes", "hourly", "every day", "quarterly".
func readOften(p *reader) bool {
	switch found, ok := adverbs[p.peek(0)]; {
	case ok:
		p.at++
		return noteRhythm(p, found)
	case p.take("hourly"):
		return noteInterval(p, time.Hour)
	case p.take("fortnightly"):
		return noteInterval(p, 2*week)
	case p.take("quarterly"):
		return noteQuarterly(p)
	}
	p.take("once")
	if !p.take("every", "each") {
		return false
	}
	switch {
	case p.seq("half hour", "half an hour"):
		return noteInterval(p, 30*minute)
	case p.seq("quarter of an hour", "quarter hour", "quarter-hour"):
		return noteInterval(p, 15*minute)
	case p.seq("hour and a half"):
		return noteInterval(p, 90*minute)
	case p.seq("few", "couple of", "couple", "several", "some"):
		return askFew(p, often)
	case p.take("other", "second", "third", "fourth", "2nd", "3rd", "4th", "alternate"):
		return askOther(p)
	}
	return readCounted(p)
}

// readCounted reads the measure of an interval behind "every".
func readCounted(p *reader) bool {
	d, months, plain, ok := readLength(p)
	switch {
	case !ok:
		return false
	case months > 0 && plain && months == 3:
		return noteQuarterly(p)
	case months == 1, months == 12, months > 0 && plain:
		return noteRhythm(p, map[int]rhythm{1: monthly, 12: yearly}[months])
	case months > 0:
		p.once(p.r.months != 0 || p.r.rhythm != noRhythm, "how often")
		p.r.months = months
		return true
	case plain && d == day:
		return noteRhythm(p, daily)
	case plain && d == week:
		return noteRhythm(p, weekly)
	}
	return noteInterval(p, d)
}

func noteRhythm(p *reader, found rhythm) bool {
	p.once(p.r.rhythm != noRhythm && p.r.rhythm != found, "how often")
	p.r.rhythm = found
	return true
}

// noteInterval notes an interval, if it may be one.
func noteInterval(p *reader, d time.Duration) bool {
	p.once(p.r.every != 0, "the interval")
	p.err = cmp.Or(p.err, inBounds(Schedule{Every: d}))
	p.r.every = d
	return true
}

// noteQuarterly is once each quarter of the year.
func noteQuarterly(p *reader) bool {
	p.once(p.r.inMonths != 0, "the months")
	p.r.quarter = true
	return noteRhythm(p, monthly)
}

// askFew asks how many a few are.
func askFew(p *reader, what func(d time.Duration) func(r *reading)) bool {
	d, months, ok := unit(p.peek(0))
	if !ok || months > 0 {
		return false
	}
	p.at++
	return doubtful(p, "How many?", what(2*d), what(3*d), what(5*d))
}

// askOther asks about "every other day" and "every second Monday", which begin somewhere.
func askOther(p *reader) bool {
	how := p.words[p.at-1].text
	n := 2
	if k, ok := ordinal(how); ok {
		n = k
	}
	if w, _, ok := weekday(p.peek(0)); ok {
		p.at++
		return doubtful(p, "Which ones of these days of the week? A schedule does not know with which week to begin.",
			func(r *reading) { r.nths, r.rhythm = []nth{{min(n, 4), w}}, monthly },
			func(r *reading) { r.nths, r.rhythm = []nth{{1, w}, {3, w}}, monthly },
			func(r *reading) { r.each(w) })
	}
	d, months, ok := unit(p.peek(0))
	if !ok && how == "second" { // which is a unit itself: "every second"
		return noteInterval(p, time.Second)
	}
	if !ok {
		return false
	}
	p.at++
	switch {
	case months > 0:
		p.r.months = n * months
		return true
	case d >= day && d < week:
		return doubtful(p, "From which day on? A schedule does not know with which day to begin.", everyOther(time.Duration(n)*d), odd, even)
	}
	return noteInterval(p, time.Duration(n)*d)
}

const (
	oddDays  = 0xAAAAAAAA // as a set: bit d is day d
	evenDays = 0x55555554
)

// odd and even are the days of the month that come close to every other day.
func odd(r *reading) {
	r.rhythm, r.every, r.monthDays = monthly, 0, oddDays
}

func even(r *reading) {
	r.rhythm, r.every, r.monthDays = monthly, 0, evenDays
}

// readLength reads how long something is: "5 minutes", "1 hour and 30 minutes", "1h30m", "hour". It is plain if it has no number.
func readLength(p *reader) (d time.Duration, months int, plain, ok bool) {
	if d, months, ok = unit(p.peek(0)); ok {
		p.at++
		return d, months, true, true
	}
	switch {
	case p.seq("half an hour", "half hour"):
		return 30 * minute, 0, false, true
	case p.seq("an hour and a half", "one hour and a half"):
		return 90 * minute, 0, false, true
	}
	for {
		at := p.at
		if d > 0 {
			p.take("and")
		}
		more, further, found := readMeasure(p)
		if !found || further > 0 && (d > 0 || months > 0) {
			p.at = at
			return d, months, false, d > 0 || months > 0
		}
		d, months = d+more, months+further
		if d > longest || months > 0 {
			return d, months, false, true
		}
	}
}

// readMeasure reads a number and its unit.
func readMeasure(p *reader) (d time.Duration, months int, ok bool) {
	text := p.peek(0)
	if m := joined().FindStringSubmatch(text); m != nil {
		p.at++
		n, _ := strconv.Atoi(m[1])
		d, _, _ = unit(m[2])
		return multiple(n, d), 0, true
	}
	if compact().MatchString(text) || strings.HasPrefix(text, "pt") || strings.HasPrefix(text, "p1") {
		d, err := schedule.ParseDuration(strings.ToUpper(text[:1]) + text[1:])
		if strings.HasPrefix(text, "p") {
			d, err = schedule.ParseDuration(strings.ToUpper(text))
		}
		if err != nil || d <= 0 {
			return 0, 0, false
		}
		p.at++
		return d, 0, true
	}
	if m := decimal().FindStringSubmatch(text); m != nil {
		d, months, ok = unit(p.peek(1))
		f, err := strconv.ParseFloat(text, 64)
		if !ok || months > 0 || err != nil {
			return 0, 0, false
		}
		p.at += 2
		return time.Duration(f * float64(d)).Round(time.Millisecond), 0, true
	}
	n, ok := number(text)
	if !ok {
		return 0, 0, false
	}
	if d, months, ok = unit(p.peek(1)); !ok {
		return 0, 0, false
	}
	p.at += 2
	if n == 0 {
		p.err = refused("%q has no length", text+" "+p.words[p.at-1].raw)
		return 0, 0, false
	}
	return multiple(n, d), min(n, 10000) * months, true
}

// multiple is n times a duration, without overflow: what is longer than the longest interval stays so.
func multiple(n int, d time.Duration) time.Duration {
	if d > 0 && n > int(2*longest/d) {
		return 2 * longest
	}
	return time.Duration(n) * d
}

// readDelay reads how long something waits: "in 2 hours", "10 minutes from now".
func readDelay(p *reader) bool {
	in := p.take("in", "after")
	if in && p.seq("a few", "a couple of", "several", "some", "a couple", "few") {
		return askFew(p, func(d time.Duration) func(r *reading) { return func(r *reading) { r.wait = d } })
	}
	d, months, plain, ok := readLength(p)
	if !ok || plain {
		return false
	}
	if d%day == 0 && p.seq("from today") {
		return noteDates(p, []date{dateOf(p.now).plus(int(d / day))})
	}
	from := p.seq("from now", "later", "hence")
	if !in && !from {
		return false
	}
	p.seq(", and then", ", then", "and then", "then")
	p.once(p.r.wait != 0 || p.r.dates != nil, "the delay")
	switch {
	case months > 0:
		return askMonths(p, months)
	case d > longest:
		p.err = refused("a delay must be at most 10 years")
	}
	p.r.wait = d
	return true
}

// askMonths asks about a delay in months, which have no fixed length.
func askMonths(p *reader, months int) bool {
	if months > 120 {
		p.err = refused("a delay must be at most 10 years")
		return true
	}
	on := dateOf(p.now)
	to := date{on.year, on.month + time.Month(months), on.day}
	if to = (date{to.utc().Year(), to.utc().Month(), to.utc().Day()}); to.day != on.day {
		to = to.plus(-to.day) // the last day of a shorter month
	}
	now := clock{hour: p.now.Hour(), minute: p.now.Minute()}
	return doubtful(p, "Months have no fixed length. On which day?",
		func(r *reading) {
			if r.dates = []date{to}; r.times == nil {
				r.times = []clock{now}
			}
		},
		func(r *reading) { r.wait = time.Duration(months/12*365+months%12*30) * day })
}

// readDuration reads one without a word that says what it is.
func readDuration(p *reader) bool {
	d, months, plain, ok := readLength(p)
	if !ok || plain || months > 0 || p.peek(0) == "to" || p.peek(0) == "past" {
		return false
	}
	p.once(p.r.bare != 0, "a duration")
	p.r.bare = d
	return true
}
