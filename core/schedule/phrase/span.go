package phrase

// Within which hours, and at which minutes of the hour.

import "strconv"

// readSpan reads the hours within which an interval repeats: "between 9am and 5pm", "from 09:00 through 16:45", "9-17".
func readSpan(p *reader) bool {
	between := p.take("between")
	from := !between && p.take("from")
	during := !between && !from && p.seq("during business hours", "during working hours", "during office hours", "during work hours", "in business hours")
	if during {
		return doubtful(p, "Which hours are that?", hours(9, 17), hours(8, 18))
	}
	var first clock
	if !p.try(func() (ok bool) { // hours before minutes: "8 to 18" is no "8 minutes to 18"
		if first, ok = readFigures(p); ok {
			first, ok = readHalf(p, first)
		}
		return ok
	}) {
		var ok bool
		if first, ok = readClock(p); !ok {
			return false
		}
	}
	through := false
	switch {
	case between && p.take("and", "-"):
	case !between && p.take("through", "thru"):
		through = true
	case !between && p.take("to", "until", "till", "-", "–"):
	default:
		return false
	}
	last, ok := readClock(p)
	if !ok {
		return false
	}
	if first.h24 || last.h24 { // both are of the same clock
		first.bare, last.bare = false, false
	}
	p.once(p.r.window != nil, "the hours")
	p.r.window = &window{first, last, through}
	return true
}

func hours(from, to int) func(r *reading) {
	return func(r *reading) { r.window = &window{from: clock{hour: from}, to: clock{hour: to}} }
}

// readPastHour reads the minutes of an hour: "at :15 and :45", "at 15 past every hour", "on the hour".
func readPastHour(p *reader) bool {
	switch {
	case p.seq("on the half hour", "at half past every hour", "at half past each hour", "at half past the hour"):
		return notePast(p, []int{30})
	case p.seq("on the hour", "at the top of the hour", "at the top of every hour", "at the top of each hour", "at the full hour"):
		return notePast(p, []int{0})
	case p.seq("at quarter past every hour", "at quarter past the hour", "at a quarter past every hour"):
		return notePast(p, []int{15})
	case p.seq("at quarter to every hour", "at quarter to the hour", "at a quarter to every hour"):
		return notePast(p, []int{45})
	}
	if n, ok := readQuarters(p); ok {
		return notePast(p, []int{n})
	}
	if !p.take("at") {
		return false
	}
	p.take("minute", "minutes")
	worded := p.words[p.at-1].text != "at"
	var found []int
	for {
		n, colon, ok := readMinuteOf(p)
		if !ok {
			return false
		}
		worded = worded || colon
		found = append(found, n)
		if comma := p.take(","); !p.take("and") && !comma {
			break
		}
	}
	p.take("minutes", "minute")
	if p.seq("past every hour", "past each hour", "past the hour", "after every hour", "after the hour", "after each hour", "of every hour", "of each hour", "of the hour") {
		worded = true
	}
	worded = worded || p.r.every != 0 && p.take("past")
	return worded && notePast(p, found)
}

// readQuarters reads the minute of "every hour at quarter past", behind which no hour follows.
func readQuarters(p *reader) (n int, ok bool) {
	if p.r.every == 0 {
		return 0, false
	}
	at := p.at
	for text, n := range map[string]int{"at quarter past": 15, "at a quarter past": 15, "at half past": 30, "at quarter to": 45, "at a quarter to": 45} {
		if !p.seq(text) {
			continue
		}
		if next := p.peek(0); next == "" || next == "," || next == "on" {
			return n, true
		}
		p.at = at
	}
	return 0, false
}

// readMinuteOf reads a minute: ":15" or "15".
func readMinuteOf(p *reader) (n int, colon, ok bool) {
	text := p.peek(0)
	if len(text) == 3 && text[0] == ':' {
		text, colon = text[1:], true
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > 59 || len(text) > 2 || text[0] == '+' || text[0] == '-' {
		return 0, false, false
	}
	p.at++
	return n, colon, true
}

func notePast(p *reader, found []int) bool {
	p.once(p.r.past != nil, "the minute of the hour")
	p.r.past = found
	return true
}
