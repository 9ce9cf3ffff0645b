package phrase

// Doubts about intervals by the clock, about months that are too short, and about what cannot be one schedule.

import (
	"errors"
	"time"
)

func isDoubt(err error) bool { return errors.Is(err, errDoubt) }

// byClock reports whether an interval is one of the clock, which a cron expression keeps.
func (r *reading) byClock() bool {
	return r.every != 0 && (r.grid || r.past != nil || r.window != nil || r.calendar())
}

// hoursOfWindow asks about bare hours of a window. No window that is meant by them is longer than half a day.
func hoursOfWindow(_ time.Time, r *reading) *doubt {
	if r.window == nil || !r.window.from.bare && !r.window.to.bare {
		return nil
	}
	d := &doubt{question: "From which hour to which?", sole: true}
	for _, from := range halves(r.window.from) {
		for _, to := range halves(r.window.to) {
			if length := (to.seconds() - from.seconds() + 86400) % 86400; length == 0 || length > 43200 {
				continue
			}
			d.options = append(d.options, r.with(func(r *reading) { r.window = &window{from, to, r.window.through} }))
		}
	}
	return d
}

// halves are the two times that a bare one can be.
func halves(c clock) []clock {
	if !c.bare {
		return []clock{c}
	}
	return []clock{{hour: c.hour % 12, minute: c.minute}, {hour: c.hour%12 + 12, minute: c.minute}}
}

// intervalAndTime asks which is meant of "every 2 hours at 9am".
func intervalAndTime(_ time.Time, r *reading) *doubt {
	if r.every == 0 || r.times == nil {
		return nil
	}
	alone := func(r *reading) { r.times = nil }
	days := func(r *reading) {
		if r.every = 0; !r.calendar() {
			r.rhythm = daily
		}
	}
	switch {
	case r.every%week == 0 && r.every > 0:
		if r.weekdays == 0 {
			return r.choose("On which day of the week?", func(r *reading) { r.weekdays = only(time.Monday) }, func(r *reading) { r.weekdays = only(time.Friday) }, alone)
		}
		return r.whichWeek()
	case r.every%day == 0:
		return r.choose("A schedule does not know with which day to begin. Which one?", alone, odd, even)
	}
	return r.choose("Every so often, or at that time?", alone, days)
}

// stepDivides asks for another interval, if cron cannot keep this one by the clock.
func stepDivides(_ time.Time, r *reading) *doubt {
	if !r.byClock() {
		return nil
	}
	if r.every%week == 0 && r.weekdays != 0 && !r.onMonthDays() {
		return r.whichWeek()
	}
	if divides(r) {
		return nil
	}
	d := r.choose("By the clock only intervals can be kept that divide the hour or the day. Which one?", near(r.every, false), near(r.every, true))
	return withInterval(d, r)
}

// whichWeek asks what is meant by a day every other week.
func (r *reading) whichWeek() *doubt {
	return r.choose("A schedule does not know with which week to begin. Which one?",
		func(r *reading) { r.every, r.rhythm = 0, weekly },
		func(r *reading) {
			r.every, r.rhythm = 0, monthly
			for _, w := range bits(r.weekdays) {
				r.nths = append(r.nths, nth{1, time.Weekday(w)}, nth{3, time.Weekday(w)})
			}
			r.weekdays = 0
		}, func(r *reading) { r.weekdays, r.rhythm, r.loose, r.times = 0, noRhythm, false, nil })
}

// withInterval adds the plain interval to the answers, if nothing else depends on the clock but the zone.
func withInterval(d *doubt, r *reading) *doubt {
	d.options = append(d.options, r.with(func(r *reading) {
		r.grid, r.past, r.window, r.rhythm, r.zone = false, nil, nil, noRhythm, ""
		r.weekdays, r.inMonths, r.monthDays, r.lastDay, r.nearest, r.nths, r.loose = 0, 0, 0, false, 0, nil, false
	}))
	return d
}

// divides reports whether an interval divides the minute, the hour or the day; within some hours, it need not divide the day.
func divides(r *reading) bool {
	switch every := r.every; {
	case every < minute:
		return every%time.Second == 0 && minute%every == 0
	case every < time.Hour:
		return every%minute == 0 && time.Hour%every == 0
	case every < day:
		return every%time.Hour == 0 && (day%every == 0 || r.window != nil)
	}
	return false
}

// near is the next interval that divides, below or above one.
func near(every time.Duration, above bool) func(r *reading) {
	steps := []time.Duration{
		time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second, minute, 2 * minute, 5 * minute, 10 * minute, 15 * minute, 20 * minute,
		30 * minute, time.Hour, 2 * time.Hour, 3 * time.Hour, 4 * time.Hour, 6 * time.Hour, 8 * time.Hour, 12 * time.Hour,
	}
	i := 0
	for i < len(steps)-1 && steps[i+1] < every {
		i++
	}
	if above && i < len(steps)-1 {
		i++
	}
	return often(steps[i])
}

// wholeHours asks about hours that begin or end within one, where minutes are counted from the full hour.
func wholeHours(_ time.Time, r *reading) *doubt {
	if r.window == nil || r.every == 0 || r.every >= time.Hour {
		return nil
	}
	from, to := r.window.from, r.window.to
	set := func(from, to int, through bool) func(r *reading) {
		return func(r *reading) {
			r.window = &window{from: clock{hour: from}, to: clock{hour: to % 24}}
			if through {
				r.window.to = clock{hour: to, minute: 60 - int(r.every/minute)}
			}
			r.window.through = through
		}
	}
	last := 60 - int(r.every/minute)
	const question = "Minutes are counted from the full hour. Which hours?"
	switch {
	case from.minute != 0 || from.second != 0:
		return r.choose(question, func(r *reading) { r.window = &window{clock{hour: from.hour}, to, r.window.through} },
			func(r *reading) { r.window = &window{clock{hour: (from.hour + 1) % 24}, to, r.window.through} })
	case !r.window.through && (to.minute != 0 || to.second != 0):
		return r.choose(question, set(from.hour, to.hour, false), set(from.hour, to.hour+1, false))
	case r.window.through && r.every >= minute && to.minute != last:
		return r.choose(question, set(from.hour, (to.hour+23)%24, true), set(from.hour, to.hour, true))
	}
	return nil
}

// windowEnds asks whether the end of some hours is a time too, if the interval leads to it.
func windowEnds(_ time.Time, r *reading) *doubt {
	if r.window == nil || r.window.through || r.every < time.Hour {
		return nil
	}
	length := time.Duration((r.window.to.seconds()-r.window.from.seconds()+86400)%86400) * time.Second
	if length == 0 {
		length = day
	}
	if length < r.every {
		return nil
	}
	whole := length - length%r.every
	through := func(d time.Duration) func(r *reading) {
		return func(r *reading) {
			s := (r.window.from.seconds() + int(d/time.Second)) % 86400
			r.window = &window{r.window.from, clock{hour: s / 3600, minute: s / 60 % 60, second: s % 60}, true}
		}
	}
	if whole < length {
		d := r.choose("", through(whole))
		d.sole = true
		return d
	}
	return r.choose("The last time at the end of these hours, or before it?", through(whole), through(whole-r.every))
}

// shortMonths asks what happens in months that do not have the day.
func shortMonths(_ time.Time, r *reading) *doubt {
	if r.both || r.dates != nil {
		return nil
	}
	set := bits(r.monthDays)
	for _, n := range r.nths {
		if n.k == 5 {
			return r.choose("Not all months have five of these days. Which one?", func(r *reading) { r.nths = []nth{{-1, n.day}} }, asCron)
		}
	}
	if len(set) == 0 || len(set) > 12 || set[len(set)-1] <= shortest(r.inMonths) {
		return nil
	}
	return r.choose("Not all of these months have that day. What about the others?",
		func(r *reading) {
			r.lastDay = true
			for d := shortest(r.inMonths) + 1; d <= 31; d++ {
				r.monthDays &^= 1 << d
			}
		}, asCron)
}

// shortest is how many days the shortest of some months has in a common year.
func shortest(months uint16) int {
	least := 31
	for m := 1; m <= 12; m++ {
		if months == 0 || months>>m&1 == 1 {
			least = min(least, time.Date(2023, time.Month(m)+1, 0, 0, 0, 0, 0, time.UTC).Day())
		}
	}
	return least
}

// asCron turns the reading into its cron expression, which has no doubts.
func asCron(r *reading) {
	s, err := r.byCalendar()
	if err != nil {
		return
	}
	*r = reading{cron: s.Cron, zone: r.zone, skipGap: r.skipGap}
}

// twoSchedules asks for one of several times that no cron expression has together.
func twoSchedules(_ time.Time, r *reading) *doubt {
	if len(r.times) < 2 {
		return nil
	}
	if _, _, _, ok := product(r.times); ok && r.dates == nil {
		return nil
	}
	d := &doubt{question: "These are several schedules, and a task has one. Which one?"}
	for _, c := range r.times {
		d.options = append(d.options, r.with(func(r *reading) { r.times, r.count = []clock{c}, 0 }))
	}
	return d
}

// clocksChange asks which time is meant, if the clocks of the zone show it twice or not at all.
func clocksChange(now time.Time, r *reading) *doubt {
	if len(r.dates) != 1 || len(r.times) != 1 {
		return nil
	}
	at, gap := r.dates[0].at(r.times[0], now.Location())
	if len(at) == 1 {
		return nil
	}
	d := &doubt{question: "The clocks show that time twice on that day. Which one?"}
	if gap {
		d.question = "The clocks skip that time on that day. When instead?"
	}
	for _, t := range at {
		d.options = append(d.options, r.with(func(r *reading) { *r = reading{at: t} }))
	}
	return d
}
