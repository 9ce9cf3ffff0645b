package phrase

// Settling a reading: what follows from its clauses together, then the doubts, then the schedule.

import (
	"errors"
	"slices"
	"time"
)

// errDoubt is that a phrase has a doubt, where the question is not wanted.
var errDoubt = errors.New("ambiguous")

// mostAnswers is how many answers a question has, at most.
const mostAnswers = 7

// An effort is how many more answers to doubts are tried: each may leave further doubts, and their number must not grow with the phrase.
type effort struct{ left int }

func mostEffort() *effort { return &effort{200} }

// noQuestions in place of an effort: any doubt is errDoubt.
var noQuestions *effort

// settle makes a schedule of a reading, or the question that it leaves open.
func settle(now time.Time, r reading, left *effort) (Schedule, error) {
	if err := r.complete(now); err != nil {
		return Schedule{}, err
	}
	for _, find := range doubts() {
		d := find(now, &r)
		switch {
		case d == nil:
			continue
		case left == nil || left.left <= 0:
			return Schedule{}, errDoubt
		}
		return d.ask(now, left)
	}
	return r.schedule(now)
}

// ask tries all answers to a doubt. Those that cannot be are left out; an answer that leaves a doubt has further ones.
func (d *doubt) ask(now time.Time, left *effort) (Schedule, error) {
	question := &AmbiguousError{Question: d.question}
	var answers [][]string
	var only Schedule
	var refusal, next error
	for _, option := range d.options {
		left.left--
		s, err := settle(now, option, left)
		further := (*AmbiguousError)(nil)
		switch {
		case err == nil:
			answers = append(answers, []string{Print(s)})
			only = s
		case errors.As(err, &further):
			answers, next = append(answers, further.Answers), err
		default:
			refusal = err
		}
	}
	question.Answers = inTurn(answers)
	switch {
	case len(question.Answers) == 0 && isDoubt(refusal):
		return Schedule{}, refused("the phrase leaves too much open: name the days and the times")
	case len(question.Answers) == 0 && refusal == nil:
		return Schedule{}, refused("%s", d.question)
	case len(question.Answers) == 0:
		return Schedule{}, refusal
	case d.sole && len(answers) == 1 && next != nil:
		return Schedule{}, next
	case d.sole && len(answers) == 1:
		return only, nil
	}
	return Schedule{}, question
}

// inTurn are the first answers, one of each option after the other, each once.
func inTurn(options [][]string) []string {
	var out []string
	for i := range mostAnswers {
		for _, answers := range options {
			if i < len(answers) && len(out) < mostAnswers && !slices.Contains(out, answers[i]) {
				out = append(out, answers[i])
			}
		}
	}
	return out
}

// complete works out what follows from the clauses together.
func (r *reading) complete(now time.Time) error {
	if len(r.unsure) > 0 {
		return nil // nothing follows yet
	}
	if r.except != 0 {
		if r.weekdays == 0 {
			r.weekdays = allDays
		}
		r.weekdays, r.except = r.weekdays&^r.except, 0
		if r.weekdays == 0 {
			return refused("no day is left")
		}
		if r.rhythm == noRhythm || r.rhythm == daily {
			r.rhythm, r.loose = weekly, false
		}
	}
	if r.past != nil && r.every == 0 {
		r.every = time.Hour
	}
	r.quarterMonths()
	if err := r.placeTimes(); err != nil {
		return err
	}
	r.completeDays(now)
	return r.narrow(now)
}

// completeDays works out how often days recur.
func (r *reading) completeDays(now time.Time) {
	switch {
	case r.every == day && (r.times != nil || r.onDays()):
		r.every, r.rhythm = 0, daily
	case r.every == week && r.weekdays != 0:
		r.every, r.rhythm = 0, weekly
	case r.wait > 0 && r.wait%day == 0 && r.times != nil && r.dates == nil:
		r.dates, r.wait = []date{dateOf(now).plus(int(r.wait / day))}, 0
	}
	if r.rhythm != noRhythm || r.months != 0 || r.every != 0 && r.onDays() {
		r.loose = false
	}
	// A weekday with a day of the month is that day if it is one: friday the 13th.
	_, one := r.weekdays.single()
	if one && len(bits(r.monthDays)) == 1 {
		r.both = true
	}
}

// quarterMonths works out the months of a day of the quarter: its first or its last. Of any other day it is not clear.
func (r *reading) quarterMonths() {
	if !r.quarter || !r.onMonthDays() {
		return
	}
	first, last := r.monthDays == 1<<1 && !r.lastDay || r.nearest == 1, r.lastDay && r.monthDays == 0
	if len(r.nths) == 1 {
		first, last = r.nths[0].k == 1, r.nths[0].k == -1
	}
	switch r.quarter = false; {
	case first:
		r.inMonths = 1<<1 | 1<<4 | 1<<7 | 1<<10
	case last:
		r.inMonths = 1<<3 | 1<<6 | 1<<9 | 1<<12
	default:
		r.months = 3
	}
}

// placeTimes puts times into the part of the day that the phrase names, and bare hours beside those of the 24-hour clock onto that.
func (r *reading) placeTimes() error {
	r.times = slices.Clone(r.times)
	surely := slices.ContainsFunc(r.times, func(c clock) bool { return c.h24 })
	for i, c := range r.times {
		if surely && r.part == "" {
			c.bare = false
		}
		if r.part != "" && !c.midnight {
			placed, ok := r.part.place(c)
			if !ok {
				return refused("%s is not in the %s", c.text(), r.part)
			}
			placed.midnight = r.part == night && placed.hour < 5 && r.rhythm != daily
			c = placed
		}
		r.times[i] = c
	}
	if len(r.times) == 0 {
		r.times = nil
	} else {
		r.part = ""
	}
	return nil
}

// narrow leaves those dates of several that are on the days that the phrase names.
func (r *reading) narrow(now time.Time) error {
	if r.dates == nil || r.rhythm != noRhythm || !r.onDays() {
		return nil
	}
	left := slices.DeleteFunc(slices.Clone(r.dates), func(on date) bool { return !r.on(on) })
	if len(left) == 0 {
		if len(r.dates) == 1 {
			return refused("%s is a %s: it is not the day that the phrase names", r.dates[0].text(), r.dates[0].utc().Weekday())
		}
		return refused("none of these days is left")
	}
	if len(left) > 1 && len(left) < len(r.dates) { // two Sundays of a week: the past one is none
		left = slices.DeleteFunc(left, func(on date) bool { return on.utc().Before(dateOf(now).utc()) })
	}
	r.dates, r.weekdays, r.monthDays, r.lastDay, r.loose, r.both, r.nths, r.nearest = left, 0, 0, false, false, false, nil, 0
	r.inMonths = 0
	return nil
}

// on reports whether a date is one of the days of the reading.
func (r *reading) on(d date) bool {
	weekday := d.utc().Weekday()
	byWeek := r.weekdays == 0 || r.weekdays&only(weekday) != 0
	byMonth := r.inMonths == 0 || r.inMonths>>d.month&1 == 1
	if !byWeek || !byMonth {
		return false
	}
	if !r.onMonthDays() {
		return true
	}
	last := d.plus(1).day == 1
	for _, n := range r.nths {
		if n.day == weekday && (n.k == (d.day+6)/7 || n.k == -1 && d.plus(7).month != d.month) {
			return true
		}
	}
	return r.monthDays>>d.day&1 == 1 || r.lastDay && last
}

// coming are the next days of the reading from today on.
func (r *reading) coming(now time.Time, n int) []date {
	var out []date
	on := dateOf(now)
	for range 366 * 9 {
		if r.on(on) {
			if out = append(out, on); len(out) == n {
				break
			}
		}
		on = on.plus(1)
	}
	return out
}
