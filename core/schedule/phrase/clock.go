package phrase

// Times of the day.

import (
	"slices"
	"strconv"
)

// A part of the day.
type part string

const (
	morning   part = "morning"
	afternoon part = "afternoon"
	evening   part = "evening"
	night     part = "night"
)

var parts = map[string]part{
	"morning": morning, "mornings": morning, "afternoon": afternoon, "afternoons": afternoon, "evening": evening, "evenings": evening, "night": night,
	"nights": night,
}

var (
	digital  = pattern(`^(\d{1,2})(?::(\d\d))?(?::(\d\d))?(am|pm|a|p)?$`)
	spoken   = pattern(`^(\d{1,2})\.(\d\d)(am|pm)$`)
	military = pattern(`^([01]\d|2[0-3])([0-5]\d)(?:h|hrs)?$`)
)

// readClock reads a time of the day: "9am", "09:00", "noon", "half past nine in the evening".
func readClock(p *reader) (c clock, ok bool) {
	switch {
	case p.seq("noon", "midday", "12 noon"):
		return clock{hour: 12}, true
	case p.seq("midnight", "12 midnight"):
		return clock{midnight: true}, true
	}
	if c, ok = readPast(p); !ok {
		if c, ok = readFigures(p); !ok {
			return c, false
		}
	}
	p.seq("o'clock")
	return readHalf(p, c)
}

// readPast reads a time such as "half past nine" and "ten minutes to 5".
func readPast(p *reader) (c clock, ok bool) {
	n := 0
	switch {
	case p.seq("half past"):
		n = 30
	case p.seq("a quarter past", "quarter past"):
		n = 15
	case p.seq("a quarter to", "quarter to"):
		n = -15
	default:
		minutes, ok := number(p.peek(0))
		at := p.at
		p.at++
		// "9 to 5" are hours.
		if counted := p.take("minutes", "minute"); !ok || minutes >= 60 || !counted && minutes%5 != 0 {
			p.at = at
			return c, false
		}
		switch {
		case p.take("past", "after"):
			n = minutes
		case p.take("to", "before"):
			n = -minutes
		default:
			p.at = at
			return c, false
		}
	}
	if p.take("noon", "midday") {
		return minutesOf(12*60 + n), true
	}
	if p.take("midnight") {
		return minutesOf(24*60 + n), true
	}
	if c, ok = readFigures(p); !ok || c.minute != 0 {
		return c, false
	}
	if !c.bare {
		return minutesOf(c.hour*60 + n + 24*60), true
	}
	// Twelve is zero on a clock of 12 hours: "half past twelve" is half an hour into either half of the day.
	c = minutesOf((c.hour*60 + n + 12*60) % (12 * 60))
	c.hour, c.bare = (c.hour+11)%12+1, true
	return c, true
}

func minutesOf(n int) clock { return clock{hour: n / 60 % 24, minute: n % 60} }

// readFigures reads hours and minutes in figures, or an hour as a word.
func readFigures(p *reader) (c clock, ok bool) {
	text := p.peek(0)
	if m := digital().FindStringSubmatch(text); m != nil {
		p.at++
		return onClock(p, m[1], m[2], m[3], m[4])
	}
	if m := spoken().FindStringSubmatch(text); m != nil {
		p.at++
		return onClock(p, m[1], m[2], "", m[3])
	}
	if m := military().FindStringSubmatch(text); m != nil {
		p.at++
		c, ok = onClock(p, m[1], m[2], "", "")
		c.h24 = true
		return c, ok
	}
	n, ok := numbers[text]
	if !ok || n > 12 || text == "a" || text == "an" {
		return c, false
	}
	p.at++
	return clock{hour: n, bare: true}, true
}

// onClock is the time of some figures, and of the half of the day behind them.
func onClock(p *reader, hours, minutes, seconds, half string) (c clock, ok bool) {
	c.hour, _ = strconv.Atoi(hours)
	c.minute, _ = strconv.Atoi(minutes)
	c.second, _ = strconv.Atoi(seconds)
	switch {
	case c.hour > 23 && minutes == "" && half == "":
		p.at--
		return c, false
	case c.hour > 23 || c.minute > 59 || c.second > 59:
		p.err = refused("%q is no time of the day: hours are 0 to 23, and midnight is 00:00", p.words[p.at-1].raw)
		return c, false
	}
	c.bare = minutes == "" && c.hour >= 1 && c.hour <= 12 && hours[0] != '0'
	c.h24 = c.hour > 12 || hours[0] == '0'
	c.figures = !c.h24 && minutes != ""
	switch {
	case half != "":
		return inHalf(p, c, half[:1] == "p")
	case p.take("am"):
		return inHalf(p, c, false)
	case p.take("pm"):
		return inHalf(p, c, true)
	}
	return c, true
}

// inHalf puts a time of the 12-hour clock into a half of the day.
func inHalf(p *reader, c clock, pm bool) (clock, bool) {
	if c.hour < 1 || c.hour > 12 {
		p.err = refused("%q is no time of the 12-hour clock", p.words[p.at-1].raw)
		return c, false
	}
	c.bare, c.h24, c.figures = false, false, false
	if c.hour %= 12; pm {
		c.hour += 12
	}
	return c, true
}

// readHalf reads the half or the part of the day behind a time.
func readHalf(p *reader, c clock) (clock, bool) {
	switch {
	case c.bare && p.take("am"):
		return inHalf(p, c, false)
	case c.bare && p.take("pm"):
		return inHalf(p, c, true)
	case p.seq("in the morning"):
		return inPart(p, c, morning)
	case p.seq("in the afternoon"):
		return inPart(p, c, afternoon)
	case p.seq("in the evening"):
		return inPart(p, c, evening)
	case p.seq("at night"):
		return inPart(p, c, night)
	}
	return c, true
}

// inPart puts a time into a part of the day.
func inPart(p *reader, c clock, of part) (clock, bool) {
	out, ok := of.place(c)
	if !ok {
		p.err = refused("%s is not in the %s", c.text(), of)
		return c, false
	}
	return out, true
}

// place is when a time is, if it is in a part of the day.
func (d part) place(c clock) (clock, bool) {
	if c.bare || c.figures {
		c.bare, c.figures = false, false
		switch h := c.hour % 12; {
		case d == morning && c.hour == 12:
			return c, false
		case d == morning, d == night && h < 5:
			c.hour = h
		default:
			c.hour = h + 12
		}
	}
	h := c.hour
	switch d {
	case morning:
		return c, h < 12
	case afternoon:
		return c, h >= 12 && h < 18
	case evening:
		return c, h >= 16
	case night:
		return c, h >= 18 || h < 5
	}
	return c, true
}

// vagueTimes are words for times of the day that are different ones for different people.
var vagueTimes = map[string][]int{
	"dawn": {5, 6, 7}, "sunrise": {5, 6, 7}, "breakfast": {7, 8}, "lunch": {12, 13}, "lunchtime": {12, 13}, "teatime": {16, 17}, "dusk": {18, 19, 20},
	"sunset": {18, 19, 20}, "dinner": {18, 19, 20}, "bedtime": {21, 22, 23}, "eod": {17, 18, 23}, "cob": {17, 18},
}

// readTimesOfDay reads the times at which something happens: "at 9am, noon and 17:30".
func readTimesOfDay(p *reader) bool {
	at := p.take("at", "by", "around")
	if at && p.words[p.at-1].text != "at" {
		p.err = refused("%q is no exact time: say at", p.words[p.at-1].raw)
		return false
	}
	if hours := vagueTimes[p.peek(0)]; hours != nil {
		p.at++
		return askTime(p, p.words[p.at-1].raw, hours)
	}
	if p.seq("the end of the day", "end of day", "the end of day", "close of business", "the close of business") {
		return askTime(p, "the end of the day", vagueTimes["eod"])
	}
	c, ok := readClock(p)
	if !ok {
		return false
	}
	p.once(p.r.times != nil, "the time of day")
	p.r.times = []clock{c}
	for p.try(func() bool { return readAnother(p) }) {
		continue
	}
	return true
}

// readAnother reads a further time of a list.
func readAnother(p *reader) bool {
	comma := p.take(",")
	if !p.take("and") && !comma {
		return false
	}
	p.take("at")
	c, ok := readClock(p)
	if _, _, measured := unit(p.peek(0)); !ok || measured {
		return false
	}
	p.r.times = append(slices.Clip(p.r.times), c)
	return true
}

// askTime asks which time a word means.
func askTime(p *reader, word string, hours []int) bool {
	p.once(p.r.times != nil, "the time of day")
	var options []func(r *reading)
	for _, h := range hours {
		options = append(options, func(r *reading) { r.times = []clock{{hour: h}} })
	}
	return doubtful(p, "When is "+quote(word)+"?", options...)
}

// readPartOfDay reads a part of the day, and of which day: "in the morning", "every evening", "tonight".
func readPartOfDay(p *reader) bool {
	switch {
	case p.take("tonight"):
		p.r.dates, p.r.part = todays(p, 0), night
		return true
	case p.take("nightly"):
		p.r.rhythm, p.r.part = daily, night
		return true
	}
	this, every := p.take("this"), p.take("every", "each")
	p.seq("in the", "at", "on", "the")
	of, ok := parts[p.peek(0)]
	if !ok {
		return false
	}
	p.at++
	p.once(p.r.part != "", "the part of the day")
	p.r.part = of
	switch {
	case this:
		p.once(p.r.dates != nil, "the day")
		p.r.dates = todays(p, 0)
	case every || p.words[p.at-1].text != string(of):
		p.once(every && p.r.rhythm != noRhythm, "how often")
		if p.r.rhythm == noRhythm {
			p.r.rhythm = daily
		}
	}
	return true
}
