package phrase

// Parse: clauses in any order, each read by the first reader that understands it.

import (
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// A reader reads a phrase, clause by clause.
type reader struct {
	words []word
	at    int
	far   int       // the furthest word that any clause has come to
	now   time.Time // in the zone of the phrase
	user  time.Time // the same in the zone of the user
	r     reading
	quiet bool  // no questions are worked out
	err   error // why a clause that is understood cannot be
}

// Parse reads a phrase. Times without a zone of their own are in zone, which is an IANA one; if it is nil, what needs a zone is refused with the
// question for it. The error is an *[AmbiguousError], an *[UnknownError] or a *[RefusedError].
func Parse(text string, now time.Time, zone *time.Location) (Schedule, error) {
	if zone == nil {
		return zoneless(text, now)
	}
	return parse(text, now, zone)
}

// zoneless parses a phrase for which no zone is known: it asks for it where that matters.
func zoneless(text string, now time.Time) (Schedule, error) {
	s, err := parse(text, now, time.UTC)
	if _, named, bad := takeZone(split(text)); named != "" || bad != nil {
		return s, err
	}
	if ambiguous := (*AmbiguousError)(nil); err != nil && !errors.As(err, &ambiguous) {
		return s, err
	}
	if err == nil && s.Cron == "" && s.At.IsZero() {
		return s, nil
	}
	ask := &AmbiguousError{Question: "In which time zone?"}
	for _, name := range []string{"UTC", "Europe/Berlin", "America/New_York"} {
		answer := strings.TrimRight(text, " ,.!") + " in " + name
		_, err := parse(answer, now, time.UTC)
		if further := (*AmbiguousError)(nil); errors.As(err, &further) { // one question after the other: that for the zone is easy to see in the answers
			return Schedule{}, &AmbiguousError{Question: further.Question, Answers: further.Answers}
		} else if err == nil {
			ask.Answers = append(ask.Answers, answer)
		}
	}
	if len(ask.Answers) == 0 {
		return s, err
	}
	return Schedule{}, ask
}

// parse reads a phrase, and if it is two that are joined, asks for one of them.
func parse(text string, now time.Time, zone *time.Location) (Schedule, error) {
	switch {
	case len(text) > maxLen:
		return Schedule{}, refused("the phrase is %d bytes long: the limit is %d", len(text), maxLen)
	case !utf8.ValidString(text):
		return Schedule{}, refused("the phrase is not valid UTF-8")
	}
	expr, rest, err := cutCron(text)
	if err != nil {
		return Schedule{}, err
	}
	words, name, err := takeZone(split(rest))
	if err != nil {
		return Schedule{}, err
	}
	home := zone
	if zone, err = (Schedule{Cron: "*", Zone: name}).location(zone); err != nil {
		return Schedule{}, refused("the zone %q is not known: use an IANA name such as Europe/Berlin", name)
	}
	p := &reader{words: words, now: now.In(zone), user: now.In(home), r: reading{zone: name, cron: expr}}
	s, err := p.parse()
	if err == nil {
		return s, nil
	}
	if unclear := (*zoneError)(nil); errors.As(err, &unclear) {
		return Schedule{}, unclear.ask(p.user)
	}
	if ask := p.two(now, zone); ask != nil {
		return Schedule{}, ask
	}
	return Schedule{}, err
}

// parse reads all words, and makes a schedule of them.
func (p *reader) parse() (Schedule, error) {
	if len(p.words) == 0 && p.r.cron == "" {
		return Schedule{}, &UnknownError{}
	}
	p.take(",")
	for p.at < len(p.words) {
		if !p.clause() {
			return Schedule{}, p.unknown()
		}
		if p.err != nil {
			return Schedule{}, p.err
		}
		// A comma separates clauses, and is nothing by itself.
		p.take(",")
	}
	if p.quiet {
		return settle(p.now, p.r, noQuestions)
	}
	return settle(p.now, p.r, mostEffort())
}

// unknown is the error about the word at which no clause goes on.
func (p *reader) unknown() error {
	if p.err != nil {
		return p.err
	}
	if p.far >= len(p.words) {
		return &UnknownError{}
	}
	return &UnknownError{Word: p.words[max(p.at, p.far)].raw}
}

// two asks which one of two phrases is meant that "and" joins, for which no task has room.
func (p *reader) two(now time.Time, zone *time.Location) error {
	const most = 5 // of the words that may join two phrases
	tried := 0
	for i, w := range p.words {
		if w.text != "and" {
			continue
		}
		if tried++; tried > most {
			break
		}
		first, one := p.part(p.words[:i], now, zone)
		second, other := p.part(p.words[i+1:], now, zone)
		if !other { // "every monday at 9am and thursday at 5pm"
			second, other = p.part(append([]word{{"every", "every"}}, p.words[i+1:]...), now, zone)
		}
		if one && other && first != second {
			return &AmbiguousError{Question: "These are two schedules, and a task has one. Which one?", Answers: []string{first, second}}
		}
	}
	return nil
}

// part is a part of the phrase by itself, if it has one meaning.
func (p *reader) part(words []word, now time.Time, zone *time.Location) (string, bool) {
	alone := &reader{words: words, now: now.In(zone), user: p.user, r: reading{zone: p.r.zone}}
	s, err := alone.parse()
	if err != nil {
		return "", false
	}
	s.Zone = p.r.zone
	return Print(s), true
}

// clauses are tried in this order: what begins like another clause and says more comes first.
var clauses = []func(p *reader) bool{
	readVague, (*reader).whole, readPartOfDay, readPastHour, readAlways, readDate, readDelay, readNthDay,
	readMonthDay, readDayOfMonth, readPerDay, readOften, readWeekday, readWithout, readSpan, readInMonth,
	readDuration, readTimesOfDay, (*reader).flag, readCity,
}

// clause reads the next clause.
func (p *reader) clause() bool {
	for _, read := range clauses {
		if p.try(func() bool { return read(p) }) || p.err != nil {
			return true
		}
	}
	return false
}

// try undoes what a clause has read if it does not end well.
func (p *reader) try(read func() bool) bool {
	at, r := p.at, p.r
	ok := read()
	p.far = max(p.far, p.at)
	if ok {
		return true
	}
	p.at, p.r = at, r
	return false
}

// peek is the word that is n words ahead; empty at the end.
func (p *reader) peek(n int) string {
	if p.at+n >= len(p.words) {
		return ""
	}
	return p.words[p.at+n].text
}

// take reads one of some words.
func (p *reader) take(texts ...string) bool {
	for _, text := range texts {
		if p.peek(0) == text && text != "" {
			p.at++
			return true
		}
	}
	return false
}

// seq reads words that follow one another, written with spaces.
func (p *reader) seq(texts ...string) bool {
	for _, text := range texts {
		words := strings.Fields(text)
		n := 0
		for n < len(words) && p.peek(n) == words[n] {
			n++
		}
		if n == len(words) {
			p.at += n
			return true
		}
	}
	return false
}

// once refuses what a phrase says a second time.
func (p *reader) once(before bool, what string) {
	if before && p.err == nil {
		p.err = refused("%s is given twice: a task has one schedule", what)
	}
}

// doubtful notes a question about a clause.
func doubtful(p *reader, question string, options ...func(r *reading)) bool {
	p.r.unsure = append(slices.Clip(p.r.unsure), unsure{question, options})
	return true
}

// whole reads phrases that are a clause by themselves.
func (p *reader) whole() bool {
	switch {
	case p.seq("now", "right now", "right away", "straight away", "immediately", "at once", "asap"):
		p.r.now = true
	case p.seq("by hand", "manually", "on demand"):
		p.r.manual = true
	default:
		return false
	}
	return true
}

// flag reads what changes how a schedule is kept.
func (p *reader) flag() bool {
	switch {
	case p.seq("counted from the start", "counted from its start", "from start to start"):
		p.once(p.r.fromStart, "the origin of the interval")
		p.r.fromStart = true
	case p.seq("just once", "only once", "once"):
		p.once(p.r.single, `"once"`)
		p.r.single = true
	case p.seq("on the clock"):
		p.once(p.r.grid, `"on the clock"`)
		p.r.grid = true
	case p.seq("skipping times that the clocks skip"):
		p.once(p.r.skipGap, "what happens when the clocks change")
		p.r.skipGap = true
	case p.seq("if both day fields match"):
		p.once(p.r.both, "how days match")
		p.r.both = true
	case p.take("until", "till", "starting", "beginning", "ending", "since", "for"):
		p.err = refused("a schedule has no beginning and no end: leave out what follows %q", p.words[p.at-1].raw)
	default:
		return false
	}
	return true
}
