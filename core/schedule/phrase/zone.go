package phrase

// Zones within a phrase.

import (
	"errors"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/seed-6f6f2c11/duly/core/schedule"
)

// slashed is a name such as Europe/Berlin: a continent, and one or two parts.
var slashed = pattern(`^[a-z]{2,}(/[a-z0-9_+-]+){1,2}$`)

// takeZone takes the zone out of a phrase, wherever it is in it, with the words around it: "in Europe/Berlin", "Europe/Berlin time", "UTC".
func takeZone(words []word) (rest []word, name string, err error) {
	for i := 0; i < len(words); i++ {
		found, n := zoneAt(words[i:])
		switch {
		case n == 0:
			rest = append(rest, words[i])
			continue
		case name != "" && name != found:
			return nil, "", refused("two zones are given, %s and %s", name, found)
		}
		name = found
		i += n - 1
		if last := len(rest) - 1; last >= 0 && rest[last].text == "in" {
			rest = rest[:last]
		}
		if i+1 < len(words) && words[i+1].text == "time" {
			i++
		}
	}
	return rest, name, nil
}

// zoneAt is the zone with which some words begin, and how many of them it has.
func zoneAt(words []word) (name string, n int) {
	texts := make([]string, 0, 4)
	for _, w := range words[:min(4, len(words))] {
		texts = append(texts, w.text)
	}
	ahead := strings.Join(texts, " ") + " "
	for _, own := range []string{"the agent's zone", "the agent's time zone", "agent's zone"} {
		if strings.HasPrefix(ahead, own+" ") {
			return ZoneOfAgent, len(strings.Fields(own))
		}
	}
	switch w := words[0]; {
	case w.text == "utc" || w.text == "gmt":
		return "UTC", 1
	case slashed().MatchString(w.text):
		// Names are known in one spelling alone on most machines.
		for _, spelt := range []string{w.raw, capitals(w.text)} {
			if _, err := schedule.LoadZone(spelt); err == nil {
				return spelt, 1
			}
		}
		return w.raw, 1
	}
	return "", 0
}

// capitals writes a zone as the database does: Europe/Berlin, America/New_York.
func capitals(name string) string {
	begins := true
	return strings.Map(func(r rune) rune {
		defer func() { begins = r == '/' || r == '_' || r == '-' }()
		if begins {
			return unicode.ToUpper(r)
		}
		return r
	}, name)
}

// abbreviations are short names of zones, with what they are in use for: each is one of several, or changes within the year.
var abbreviations = map[string][]string{
	"est": {"America/New_York", "America/Panama"}, "edt": {"America/New_York"}, "et": {"America/New_York"}, "eastern": {"America/New_York"},
	"cst": {"America/Chicago", "Asia/Shanghai", "America/Havana"}, "cdt": {"America/Chicago", "America/Havana"}, "ct": {"America/Chicago"},
	"central": {"America/Chicago"}, "mst": {"America/Denver", "America/Phoenix"}, "mdt": {"America/Denver"}, "mt": {"America/Denver"},
	"pst": {"America/Los_Angeles", "Asia/Manila"}, "pdt": {"America/Los_Angeles"}, "pt": {"America/Los_Angeles"}, "pacific": {"America/Los_Angeles"},
	"ist": {"Asia/Kolkata", "Europe/Dublin", "Asia/Jerusalem"}, "bst": {"Europe/London", "Asia/Dhaka"}, "cet": {"Europe/Berlin", "Europe/Paris"},
	"cest": {"Europe/Berlin", "Europe/Paris"}, "eet": {"Europe/Athens", "Europe/Kyiv"}, "jst": {"Asia/Tokyo"}, "aest": {"Australia/Sydney", "Australia/Brisbane"},
	"wet": {"Europe/Lisbon"}, "msk": {"Europe/Moscow"}, "ast": {"America/Halifax", "Asia/Riyadh"},
}

var continents = []string{"Europe", "America", "Asia", "Africa", "Australia", "Pacific", "Atlantic", "Indian"}

// readCity asks for the zone that a city or an abbreviation is in use for: "in Berlin", "Berlin time", "EST".
func readCity(p *reader) bool {
	from := p.at
	within := p.take("in")
	if names := abbreviations[p.peek(0)]; names != nil && p.r.zone == "" {
		asked := p.words[p.at].raw
		p.at++
		p.take("time")
		return askZone(p, from, asked, names)
	}
	for n := 1; n <= 2 && p.peek(n-1) != ""; n++ {
		var parts []string
		for _, w := range p.words[p.at : p.at+n] {
			parts = append(parts, w.text)
		}
		names := cities(strings.Join(parts, "_"))
		if len(names) == 0 || !within && p.peek(n) != "time" || p.r.zone != "" {
			continue
		}
		p.at += n
		p.take("time")
		return askZone(p, from, strings.Join(parts, " "), names)
	}
	return false
}

// askZone asks which zone is meant by a word.
func askZone(p *reader, from int, asked string, names []string) bool {
	p.err = &zoneError{question: "Which time zone is " + quote(asked) + "?", names: names, rest: slices.Concat(p.words[:from], p.words[p.at:])}
	return true
}

// A zoneError says that a word may mean several zones. Days depend on the zone, so that the rest of the phrase is read again in each.
type zoneError struct {
	question string
	names    []string
	rest     []word
}

func (d *zoneError) Error() string { return d.question }

// ask reads the rest of the phrase in each zone.
func (d *zoneError) ask(now time.Time) error {
	var answers [][]string
	var refusal error
	for _, name := range d.names {
		zone, err := schedule.LoadZone(name)
		if err != nil {
			return err
		}
		p := &reader{words: d.rest, now: now.In(zone), user: now, r: reading{zone: name}}
		s, err := p.parse()
		further := (*AmbiguousError)(nil)
		switch {
		case err == nil:
			answers = append(answers, []string{Print(s)})
		case errors.As(err, &further):
			answers = append(answers, further.Answers)
		default:
			refusal = err
		}
	}
	if len(answers) == 0 {
		return refusal
	}
	return &AmbiguousError{Question: d.question, Answers: inTurn(answers)}
}

// cities are the zones that are named after a city.
func cities(city string) (names []string) {
	if r, _ := utf8.DecodeRuneInString(city); !unicode.IsLetter(r) || strings.Contains(city, "/") || len(city) < 3 {
		return nil
	}
	for _, continent := range continents {
		name := continent + "/" + capitals(city)
		if _, err := schedule.LoadZone(name); err == nil {
			names = append(names, name)
		}
	}
	return names
}
