package phrase

// A reading: what has been read of a phrase, before it becomes a schedule.

import (
	"cmp"
	"slices"
	"time"
)

// A rhythm is how often something happens by the calendar.
type rhythm int

const (
	noRhythm rhythm = iota
	daily
	weekly
	monthly
	yearly
)

// A clock is a time of the day.
type clock struct {
	hour, minute, second int
	bare                 bool // an hour from 1 to 12 of which it is open whether it is in the morning
	figures              bool // hours up to 12 with minutes, which a part of the day may put into its half
	h24                  bool // surely of the 24-hour clock, so that a bare hour beside it is too
	midnight             bool // the word: of a day it may be the beginning or the end
}

func (c clock) seconds() int { return c.hour*3600 + c.minute*60 + c.second }

func byTime(a, b clock) int { return cmp.Compare(a.seconds(), b.seconds()) }

// A window is the hours within which an interval repeats.
type window struct {
	from, to clock
	through  bool // to is the last time, and not the end
}

// A date is a day of the calendar.
type date struct {
	year  int
	month time.Month
	day   int
}

func dateOf(t time.Time) date {
	y, m, d := t.Date()
	return date{y, m, d}
}

// valid reports whether the calendar has the date.
func (d date) valid() bool { return dateOf(d.utc()) == d }

func (d date) utc() time.Time { return time.Date(d.year, d.month, d.day, 0, 0, 0, 0, time.UTC) }

func (d date) plus(n int) date { return dateOf(d.utc().AddDate(0, 0, n)) }

// An nth is a weekday of a month: the first to fifth, or -1 for the last.
type nth struct {
	k   int
	day time.Weekday
}

// A doubt is a question, and how the reading is changed by each answer.
type doubt struct {
	question string
	options  []reading
	sole     bool // if only one of the options can be, it is meant
}

// An unsure clause has a doubt whose options depend on the rest of the phrase.
type unsure struct {
	question string
	options  []func(r *reading)
}

// A reading is what the clauses of a phrase say. It is copied for each answer to a doubt: slices are replaced and never changed.
type reading struct {
	now, manual bool
	single      bool // the word once
	cron        string
	at          time.Time // exact, with an offset

	every     time.Duration
	months    int // an interval of so many months
	fromStart bool
	grid      bool  // on the clock: at the full minutes and hours
	past      []int // the minutes of each hour
	window    *window
	wait      time.Duration
	bare      time.Duration // a duration without "in" or "every"

	rhythm    rhythm
	quarter   bool // once each quarter of the year
	count     int  // how many times a day were promised
	times     []clock
	part      part // of the day
	weekdays  days
	except    days
	loose     bool // the weekday or the date is named alone: once, or again and again
	nths      []nth
	monthDays uint32 // day d as bit d
	lastDay   bool
	nearest   int // the weekday nearest to this day of the month
	inMonths  uint16
	both      bool // days of the month that are one of the weekdays

	dates []date // alternatives

	zone    string
	skipGap bool
	unsure  []unsure
}

// onDays reports whether the reading names days that recur.
func (r *reading) onDays() bool {
	return r.weekdays != 0 || r.inMonths != 0 || r.onMonthDays()
}

// onMonthDays reports whether the reading names days of the month.
func (r *reading) onMonthDays() bool {
	return len(r.nths) > 0 || r.monthDays != 0 || r.lastDay || r.nearest != 0
}

// calendar reports whether the reading recurs by the calendar.
func (r *reading) calendar() bool { return r.rhythm != noRhythm || r.onDays() }

// only replaces the days by one weekday each week.
func (r *reading) each(w time.Weekday) { r.weekdays, r.loose, r.rhythm = only(w), false, weekly }

// sorted returns times in order, without what is there twice.
func sorted(times []clock) []clock {
	out := slices.Clone(times)
	slices.SortFunc(out, byTime)
	return slices.CompactFunc(out, func(a, b clock) bool { return byTime(a, b) == 0 })
}

// bits are the numbers of a set.
func bits[S ~uint8 | ~uint16 | ~uint32 | ~uint64](set S) []int {
	var out []int
	for i := range 64 {
		if uint64(set)>>i&1 == 1 {
			out = append(out, i)
		}
	}
	return out
}

// setOf is the set of some numbers.
func setOf(numbers []int) (set uint64) {
	for _, n := range numbers {
		set |= 1 << n
	}
	return set
}
