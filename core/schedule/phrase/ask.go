package phrase

// Doubts about days and times: each is found by a function, with the readings that answer it.

import (
	"slices"
	"strconv"
	"time"
)

// doubts are the functions that look for one, in this order: the first is asked.
func doubts() []func(now time.Time, r *reading) *doubt {
	return []func(now time.Time, r *reading) *doubt{
		unsureClause, bareDuration, timeAlone, whichDate, onceOrAgain, whichDays, everyMonths, howOften, whichTime, howMany, morningOrEvening, hoursOfWindow,
		whichMidnight, intervalAndTime, stepDivides, wholeHours, windowEnds, shortMonths, twoSchedules, clocksChange,
	}
}

// with is a copy of a reading with a change.
func (r *reading) with(change func(r *reading)) reading {
	out := *r
	change(&out)
	return out
}

// unsureClause asks what a clause left open.
func unsureClause(_ time.Time, r *reading) *doubt {
	if len(r.unsure) == 0 {
		return nil
	}
	first := r.unsure[0]
	d := &doubt{question: first.question}
	for _, change := range first.options {
		d.options = append(d.options, r.with(func(r *reading) { r.unsure = r.unsure[1:]; change(r) }))
	}
	return d
}

// bareDuration asks what is meant by "30m".
func bareDuration(_ time.Time, r *reading) *doubt {
	if r.bare == 0 {
		return nil
	}
	return &doubt{question: "Once, or again and again?", options: []reading{
		r.with(func(r *reading) { r.wait, r.bare = r.bare, 0 }),
		r.with(func(r *reading) { r.every, r.bare = r.bare, 0 }),
	}}
}

// timeAlone asks what is meant by "9am" or "in the morning".
func timeAlone(now time.Time, r *reading) *doubt {
	if r.times == nil && r.part == "" || r.calendar() || r.dates != nil || r.every != 0 || r.wait != 0 || r.window != nil || r.months != 0 || r.cron != "" || r.now || r.manual || !r.at.IsZero() {
		return nil
	}
	once := r.with(func(r *reading) { r.dates = []date{dateOf(now)} })
	if _, err := settle(now, once, noQuestions); err != nil && !isDoubt(err) {
		once.dates = []date{dateOf(now).plus(1)}
	}
	if r.single {
		return &doubt{question: "Once: when?", options: []reading{once}, sole: true}
	}
	return &doubt{question: "Once, or every day?", options: []reading{r.with(func(r *reading) { r.rhythm = daily }), once}}
}

// whichDate asks which of several dates is meant.
func whichDate(_ time.Time, r *reading) *doubt {
	if len(r.dates) < 2 {
		return nil
	}
	d := &doubt{question: "On which day?", sole: true}
	chosen := r.dates
	if len(chosen) == mostAnswers+1 { // a week, and the Sunday before it
		chosen = chosen[1:]
	}
	if len(chosen) > mostAnswers { // the days of a month
		chosen = []date{chosen[0], chosen[len(chosen)/2], chosen[len(chosen)-1]}
	}
	for _, on := range chosen {
		d.options = append(d.options, r.with(func(r *reading) { r.dates = []date{on} }))
	}
	return d
}

// onceOrAgain asks whether a day that is named alone is meant once.
func onceOrAgain(now time.Time, r *reading) *doubt {
	if !r.loose || r.dates != nil {
		return nil
	}
	again := "Once, or every week?"
	rhythm := weekly
	switch {
	case r.inMonths != 0:
		again, rhythm = "Once, or every year?", yearly
	case r.onMonthDays():
		again, rhythm = "Once, or every month?", monthly
	}
	d := &doubt{question: again, sole: r.single}
	if !r.single {
		d.options = append(d.options, r.with(func(r *reading) { r.loose, r.rhythm = false, rhythm }))
	}
	coming := r.coming(now, 2)
	for i, on := range coming {
		if i == 0 || coming[0] == dateOf(now) { // today's time may have passed
			d.options = append(d.options, r.with(func(r *reading) { r.dates = []date{on} }))
		}
	}
	return d
}

// whichDays asks on which day of a week, a month or a year.
func whichDays(_ time.Time, r *reading) *doubt {
	if r.dates != nil {
		return nil
	}
	switch {
	case r.quarter && !r.onMonthDays():
		return r.choose("On which day of the quarter?", func(r *reading) { r.monthDays = 1 << 1 }, func(r *reading) { r.lastDay = true })
	case r.rhythm == weekly && r.weekdays == 0 && !r.onMonthDays() && r.every == 0:
		return r.choose("On which day of the week?", func(r *reading) { r.weekdays = only(time.Monday) }, func(r *reading) { r.weekdays = only(time.Friday) },
			func(r *reading) { r.weekdays = only(time.Sunday) })
	case r.rhythm == monthly && r.weekdays != 0 && !r.onMonthDays() && r.inMonths == 0:
		w, ok := r.weekdays.single()
		if !ok {
			return nil
		}
		return r.choose("Which one of the month?", func(r *reading) { r.weekdays, r.nths = 0, []nth{{1, w}} }, func(r *reading) { r.weekdays, r.nths = 0, []nth{{-1, w}} })
	case r.rhythm == monthly && !r.onMonthDays() && r.weekdays == 0:
		return r.choose("On which day of the month?", func(r *reading) { r.monthDays = 1 << 1 }, func(r *reading) { r.monthDays = 1 << 15 }, func(r *reading) { r.lastDay = true })
	case r.rhythm == yearly && !r.onMonthDays() && r.weekdays == 0:
		if r.inMonths == 0 {
			return r.choose("On which day of the year?", func(r *reading) { r.monthDays, r.inMonths = 1<<1, 1<<1 }, func(r *reading) { r.monthDays, r.inMonths = 1<<31, 1<<12 })
		}
		return r.choose("On which day of the month?", func(r *reading) { r.monthDays = 1 << 1 }, func(r *reading) { r.monthDays = 1 << 15 }, func(r *reading) { r.lastDay = true },
			func(r *reading) { r.rhythm = daily })
	case r.rhythm == yearly && r.onMonthDays() && r.inMonths == 0:
		return r.choose("In which month?", func(r *reading) { r.inMonths = 1 << 1 }, func(r *reading) { r.inMonths = 1 << 6 }, func(r *reading) { r.inMonths = 1 << 12 })
	}
	return nil
}

// choose is a doubt about a reading, with changes as its answers.
func (r *reading) choose(question string, changes ...func(r *reading)) *doubt {
	d := &doubt{question: question}
	for _, change := range changes {
		d.options = append(d.options, r.with(change))
	}
	return d
}

// everyMonths asks in which months something happens that recurs after several.
func everyMonths(_ time.Time, r *reading) *doubt {
	n := r.months
	if n == 0 || n > 12 || 12%n != 0 {
		return nil
	}
	if n == 12 {
		return r.choose("On which day of the year?", func(r *reading) { r.months, r.rhythm = 0, yearly })
	}
	d := &doubt{question: "In which months?"}
	for first := 1; first <= min(n, 3); first++ {
		d.options = append(d.options, r.with(func(r *reading) {
			r.months, r.rhythm = 0, monthly
			for m := first; m <= 12; m += n {
				r.inMonths |= 1 << m
			}
		}))
	}
	return d
}

// howOften asks for the interval within some hours.
func howOften(_ time.Time, r *reading) *doubt {
	if r.window == nil || r.every != 0 || r.times != nil {
		return nil
	}
	return r.choose("How often?", often(15*minute), often(30*minute), often(60*minute))
}

// partHours are times that are proposed for a part of the day.
var partHours = map[part][]int{"": {9, 12, 18}, morning: {7, 8, 9}, afternoon: {14, 15, 16}, evening: {18, 19, 20}, night: {21, 22, 23}}

// whichTime asks for the time of day.
func whichTime(_ time.Time, r *reading) *doubt {
	if r.times != nil || r.every != 0 || r.count > 1 || r.dates == nil && !r.calendar() {
		return nil
	}
	d := &doubt{question: "At what time?"}
	if r.part != "" {
		d.question = "At what time of the " + string(r.part) + "?"
	}
	for _, h := range partHours[r.part] {
		d.options = append(d.options, r.with(func(r *reading) { r.times, r.part = []clock{{hour: h}}, "" }))
	}
	if r.rhythm == daily && r.part == "" && !r.onDays() && r.zone == "" {
		d.options = append(d.options, r.with(func(r *reading) { r.every, r.rhythm, r.count = day, noRhythm, 0 }))
	}
	return d
}

// usual are times that are proposed for so many a day.
var usual = map[int][]int{2: {9, 17}, 3: {9, 13, 17}, 4: {9, 12, 15, 18}}

// howMany asks for the times of a day, if their number was given without them, or another one.
func howMany(_ time.Time, r *reading) *doubt {
	if r.count < 2 || len(r.times) == r.count {
		return nil
	}
	d := &doubt{question: "At which " + strconv.Itoa(r.count) + " times of the day?"} // without an option it is no question that has answers
	if hours := usual[r.count]; hours != nil && len(r.times) == 0 {
		d.options = append(d.options, r.with(func(r *reading) {
			r.count, r.times = 0, nil
			for _, h := range hours {
				r.times = append(r.times, clock{hour: h})
			}
		}))
	}
	if 24%r.count == 0 && len(r.times) == 0 {
		d.options = append(d.options, r.with(func(r *reading) { r.every, r.rhythm, r.count = day/time.Duration(r.count), noRhythm, 0 }))
	}
	if len(r.times) == 1 && r.count == 2 {
		d.options = append(d.options, r.with(func(r *reading) {
			c := r.times[0]
			c.hour = (c.hour + 12) % 24
			r.count, r.times = 0, []clock{r.times[0], c}
		}))
	}
	if len(r.times) > 0 {
		d.options = append(d.options, r.with(func(r *reading) { r.count = 0 }))
	}
	return d
}

// morningOrEvening asks about the bare hours of a phrase, if both halves of the day can be meant.
func morningOrEvening(_ time.Time, r *reading) *doubt {
	i := slices.IndexFunc(r.times, func(c clock) bool { return c.bare })
	if i < 0 {
		return nil
	}
	c := r.times[i]
	half := func(add int) func(r *reading) {
		return func(r *reading) {
			r.times = slices.Clone(r.times)
			r.times[i] = clock{hour: c.hour%12 + add, minute: c.minute, second: c.second}
		}
	}
	d := r.choose(c.text()+" in the morning or in the evening?", half(0), half(12))
	if c.hour == 12 && c.minute == 0 {
		d = r.choose("12 at noon or at midnight?", half(12), func(r *reading) {
			r.times = slices.Clone(r.times)
			r.times[i] = clock{midnight: true}
		})
	}
	d.sole = true
	return d
}

// whichMidnight asks whether the midnight of a day begins or ends it, and in the same way about the hours after midnight of the night of a day.
func whichMidnight(_ time.Time, r *reading) *doubt {
	i := slices.IndexFunc(r.times, func(c clock) bool { return c.midnight })
	if i < 0 || r.dates == nil && !r.onDays() {
		return nil
	}
	begins := func(r *reading) {
		r.times = slices.Clone(r.times)
		r.times[i].midnight = false
	}
	ends := func(r *reading) {
		begins(r)
		switch {
		case r.dates != nil:
			r.dates = []date{r.dates[0].plus(1)}
		case !r.onMonthDays() && r.inMonths == 0 && len(r.times) == 1:
			r.weekdays = (r.weekdays<<1 | r.weekdays>>6) & allDays
		default:
			r.times[i] = clock{hour: 23, minute: 59}
		}
	}
	d := r.choose("At the beginning of the day, or at its end?", begins, ends)
	d.sole = r.dates != nil
	return d
}
