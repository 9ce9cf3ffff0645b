package schedule

// Cron expressions: reading them, and the next time that one matches, in bounded time for any input.

import (
	"errors"
	"math/bits"
	"strings"
	"sync"
	"time"

	"github.com/adhocore/gronx"
)

// DayMatch says how the two day fields of a cron expression go together.
type DayMatch string

// The ways.
const (
	// DayMatchAny is crontab's rule: if both day fields are restricted, a day that matches either is a match. A field
	// that begins with * is not a restriction.
	DayMatchAny DayMatch = "any"
	// DayMatchAll wants a day to match both fields.
	DayMatchAll DayMatch = "all"
)

// Gap says what becomes of a local time that does not exist, because the clocks go forward over it.
type Gap string

// The choices.
const (
	GapRun  Gap = "run"  // it fires once, at the end of the gap
	GapSkip Gap = "skip" // it does not fire
)

// Cron is a parsed cron expression in a zone. Its times are worked out on the calendar of the zone and then turned into
// instants: a fixed local time that occurs twice fires once, at the first. An hour field with * or a step follows real
// time, so it fires in both, and so does a minute field that begins with *: "*/20 2" is every 20 minutes of an hour that the
// clocks make longer. A Cron is safe for concurrent use.
// It is made once for a task's expression and zone, and keeps what it has worked out about months.
type Cron struct {
	expr     string
	location *time.Location
	gap      Gap
	all      bool // both day fields must match
	elapsed  bool // the hour field has * or a step
	repeats  bool // the minute field begins with *

	// Bit v of each is set if the value v matches.
	second, minute uint64
	hour, month    uint64
	day, weekday   string // of the expression, for gronx

	// mu guards months, which Next fills in.
	mu     sync.Mutex
	months [32 * 7]monthDays // by length and weekday of the first
}

// monthDays are the matching days of a kind of month, as bits; known once they have been worked out.
// There are 28 kinds of month: four lengths, and seven days to begin on.
type monthDays struct {
	days  uint32
	known bool
}

// ParseCron parses an expression of 5 or 6 fields (seconds first) or a nickname such as @daily, for an IANA zone; the
// empty zone is UTC. It refuses what is malformed, a zone that it does not know, and what can never fire. Empty
// DayMatch and Gap are DayMatchAny and GapRun. The error is a *[ParseError].
func ParseCron(expr, zone string, match DayMatch, gap Gap) (*Cron, error) {
	c := &Cron{expr: expr, gap: gap}
	switch match {
	case "", DayMatchAny:
	case DayMatchAll:
		c.all = true
	default:
		return nil, refused("day_match", "must be %q or %q, not %q", DayMatchAny, DayMatchAll, match)
	}
	switch gap {
	case "":
		c.gap = GapRun
	case GapRun, GapSkip:
	default:
		return nil, refused("gap", "must be %q or %q, not %q", GapRun, GapSkip, gap)
	}
	var err error
	if c.location, err = LoadZone(zone); err != nil {
		return nil, err
	}
	fields, err := split(expr)
	if err != nil {
		return nil, err
	}
	// The expression may be valid and still have no day, such as 30 February.
	if err := c.fill(fields); err != nil {
		return nil, err
	}
	if !c.possible() {
		return nil, refused("cron", "%q can never fire: no such day exists (%w)", expr, ErrNever)
	}
	return c, nil
}

// fill works out which values of each field match. gronx decides what an element means; what it would accept although it
// makes no sense was refused by split.
// The date is any in a leap year: only the part that the field is about changes.
func (c *Cron) fill(fields []string) error {
	checker := &gronx.SegmentChecker{}
	values := func(pos, from, to int, at func(v int) time.Time) (uint64, error) {
		var set uint64
		for v := from; v <= to; v++ {
			checker.SetRef(at(v))
			due, err := checker.CheckDue(fields[pos], pos)
			if err != nil {
				return 0, refused("cron", "%q: the %s field %q: %w", c.expr, fieldNames[pos], fields[pos], err)
			}
			if due {
				set |= 1 << v
			}
		}
		return set, nil
	}
	clock := func(month, hour, minute, second int) time.Time {
		return time.Date(2024, time.Month(month), 1, hour, minute, second, 0, time.UTC)
	}
	var err error
	if c.second, err = values(0, 0, 59, func(v int) time.Time { return clock(1, 0, 0, v) }); err != nil {
		return err
	}
	if c.minute, err = values(1, 0, 59, func(v int) time.Time { return clock(1, 0, v, 0) }); err != nil {
		return err
	}
	if c.hour, err = values(2, 0, 23, func(v int) time.Time { return clock(1, v, 0, 0) }); err != nil {
		return err
	}
	if c.month, err = values(4, 1, 12, func(v int) time.Time { return clock(v, 0, 0, 0) }); err != nil {
		return err
	}
	c.elapsed, c.repeats = strings.ContainsAny(fields[2], "*/"), fields[1][0] == '*'
	c.day, c.weekday = fields[3], fields[5]
	return nil
}

// possible reports whether any month that the calendar can have holds a matching day.
// A cron that never fires is refused when it is submitted, and not found out by its silence.
func (c *Cron) possible() bool {
	for month := 1; month <= 12; month++ {
		if c.month>>month&1 == 0 {
			continue
		}
		for _, year := range []int{2023, 2024} { // a common year and a leap year
			length := daysIn(year, month)
			for first := range 7 { // every weekday can be the first of any month
				if c.days(length, time.Weekday(first)) != 0 {
					return true
				}
			}
		}
	}
	return false
}

// daysIn is how many days a month has: day 0 of the next month is the last of this one.
func daysIn(year, month int) int {
	return time.Date(year, time.Month(month)+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// days are the matching days of a month with a length whose first is a weekday, day d as bit d. They depend on nothing
// else, so a representative month stands for all of its kind.
func (c *Cron) days(length int, first time.Weekday) uint32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := &c.months[length*7+int(first)-7]
	if !m.known {
		m.days, m.known = c.match(length, first), true
	}
	return m.days
}

// match asks gronx for each day of a month of that kind.
func (c *Cron) match(length int, first time.Weekday) uint32 {
	start := representative(length, first)
	checker := &gronx.SegmentChecker{}
	var byDay, byWeekday uint32
	for d := 1; d <= length; d++ {
		checker.SetRef(start.AddDate(0, 0, d-1))
		if due, err := checker.CheckDue(c.day, 3); err == nil && due {
			byDay |= 1 << d
		}
		if due, err := checker.CheckDue(c.weekday, 5); err == nil && due {
			byWeekday |= 1 << d
		}
	}
	// Crontab's rule: two restrictions are joined by "or", and a star is none.
	if c.all || open(c.day) || open(c.weekday) {
		return byDay & byWeekday
	}
	return byDay | byWeekday
}

// open reports whether a day field is no restriction, by crontab's rule.
func open(field string) bool { return field[0] == '*' || field[0] == '?' }

// representative is a first of a month that has a length and a weekday.
func representative(length int, first time.Weekday) time.Time {
	for month := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC); ; month = month.AddDate(0, 1, 0) {
		if month.Weekday() == first && daysIn(month.Year(), int(month.Month())) == length {
			return month
		}
	}
}

// civil is a local time as seconds since 1970-01-01 00:00:00 of the local calendar.
// It has no gaps and repeats nothing, so that it can be computed with.
type civil int64

// civilOf is what a clock on the wall shows at a time.
func civilOf(t time.Time) civil {
	_, offset := t.Zone()
	return civil(t.Unix() + int64(offset))
}

// nextCivil is the first matching local time at or after from, whether it exists in the zone or not; false if the
// calendar has none in the next 400 years, after which it repeats.
func (c *Cron) nextCivil(from civil) (civil, bool) {
	t := time.Unix(int64(from), 0).UTC()
	year, month, day := t.Year(), int(t.Month()), t.Day()
	clock := t.Hour()*3600 + t.Minute()*60 + t.Second()
	// 400 years have the same days as the next 400.
	for range 12*400 + 2 {
		if found, ok := c.inMonth(year, month, day, clock); ok {
			return found, true
		}
		day, clock = 1, 0
		if month++; month > 12 {
			year, month = year+1, 1
		}
	}
	return 0, false
}

// inMonth is the first matching local time of a month at or after a second of a day of it.
func (c *Cron) inMonth(year, month, day, clock int) (civil, bool) {
	if c.month>>month&1 == 0 {
		return 0, false
	}
	first := time.Date(year, time.Month(month), 1, 0, 0, 0, 0, time.UTC)
	days := c.days(daysIn(year, month), first.Weekday()) &^ (1<<day - 1)
	// The lowest bit that is set is the next matching day.
	for ; days != 0; days &= days - 1 {
		d := bits.TrailingZeros32(days)
		if d != day {
			clock = 0
		}
		if s, ok := c.nextClock(clock); ok {
			return civil(first.Unix()) + civil(d-1)*86400 + civil(s), true
		}
	}
	return 0, false
}

// nextClock is the first matching second of a day at or after one.
func (c *Cron) nextClock(from int) (int, bool) {
	h, m, s := from/3600, from/60%60, from%60
	// Clearing the bits below the start leaves the values that are still to come.
	for hours := c.hour &^ (1<<h - 1); hours != 0; hours &= hours - 1 {
		if hour := bits.TrailingZeros64(hours); hour != h {
			h, m, s = hour, 0, 0
		}
		for minutes := c.minute &^ (1<<m - 1); minutes != 0; minutes &= minutes - 1 {
			if minute := bits.TrailingZeros64(minutes); minute != m {
				m, s = minute, 0
			}
			if seconds := c.second &^ (1<<s - 1); seconds != 0 {
				return h*3600 + m*60 + bits.TrailingZeros64(seconds), true
			}
		}
	}
	return 0, false
}

// ErrNever says that an expression does not fire: never at all, or not again before the end of the year 9999, after which
// times cannot be written as RFC 3339 has them.
// It is the end of a recurring task: there is no next run to wait for.
var ErrNever = errors.New("never")

// lastYear is the last one that a time may have.
const lastYear = 9999

// Next is the first time after a time at which the expression fires. It fails with ErrNever if there is none. Any input is
// answered within milliseconds.
func (c *Cron) Next(after time.Time) (time.Time, error) {
	// A schedule has whole seconds, so the next one is strictly after.
	after = after.In(c.location).Truncate(time.Second)
	if after.Year() > lastYear {
		return time.Time{}, ErrNever
	}
	next := time.Time{}
	// An expression of fixed hours fires once for each local time, however the clocks are set.
	switch {
	case c.elapsed:
		next = c.nextElapsed(after)
	default:
		next = c.nextFixed(after)
		if again := c.nextRepeated(after, next); !again.IsZero() {
			next = again
		}
	}
	if next.IsZero() || next.Year() > lastYear || next.UTC().Year() > lastYear {
		return time.Time{}, ErrNever
	}
	return next, nil
}

// nextElapsed walks along real time: through the stretches between changes of the zone's offset, in each of which local
// time goes by as everywhere.
func (c *Cron) nextElapsed(after time.Time) time.Time {
	at := after.Add(time.Second)
	// A zone has two changes a year at most, over the 400 years of the calendar.
	for range mostChanges {
		local := civilOf(at)
		found, ok := c.nextCivil(local)
		if !ok {
			return time.Time{}
		}
		t := at.Add(time.Duration(found-local) * time.Second)
		_, end := stretch(at)
		if end.IsZero() || t.Before(end) {
			return t
		}
		at = end
	}
	return time.Time{}
}

// mostChanges bounds how many changes of offset are passed over in search of a match.
const mostChanges = 2 * 401

// nextFixed walks along the calendar and looks when each local time really is.
func (c *Cron) nextFixed(after time.Time) time.Time {
	local := civilOf(after) + 1
	if start, _ := after.ZoneBounds(); !start.IsZero() {
		// In the second pass of hours that are repeated all of them have fired.
		if before := civilOf(start.Add(-time.Second)) + 1; local < before {
			local = before
		}
	}
	// Local times that do not exist, or that lie before, are passed over one by one.
	for range mostChanges {
		found, ok := c.nextCivil(local)
		if !ok {
			return time.Time{}
		}
		t, exists := c.resolve(found)
		if t.After(after) && (exists || c.gap == GapRun) {
			return t
		}
		local = found + 1
		if !exists {
			local = max(local, civilOf(t))
		}
	}
	return time.Time{}
}

// resolve is when a local time is: the first time if it is repeated, the end of the gap if it does not exist.
// Go chooses one of two answers where the zone changes, and promises neither: both are worked out here.
func (c *Cron) resolve(local civil) (t time.Time, exists bool) {
	u := time.Unix(int64(local), 0).UTC()
	t = time.Date(u.Year(), u.Month(), u.Day(), u.Hour(), u.Minute(), u.Second(), 0, c.location)
	start, end := t.ZoneBounds()
	switch got := civilOf(t); {
	case got > local: // by the offset before the gap: t lies behind it
		return start, false
	case got < local:
		return end, false
	}
	// A change of offset backwards makes local times behind it occur twice.
	if !start.IsZero() {
		_, offset := start.Add(-time.Second).Zone()
		if first := time.Unix(int64(local)-int64(offset), 0).In(c.location); first.Before(start) {
			return first, true
		}
	}
	return t, true
}
