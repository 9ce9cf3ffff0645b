package phrase

// Words: how a phrase is cut into them, and what numbers, days and months are called.

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxLen is the longest phrase, in bytes. A longer one is neither a sentence that a person says, nor the longest cron expression with its zone.
const maxLen = 512

// pattern is a regular expression that is compiled when it is first used: most programs that import the package read no phrase.
func pattern(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}

// A word of a phrase: in lower case for comparing, and as it was written for errors and zones.
type word struct{ text, raw string }

var (
	hyphened = pattern(`^([a-z]{3,9}|\d{1,2}(?::\d\d)?(?:[ap]m)?)[-–—]([a-z]{3,9}|\d{1,2}(?::\d\d)?(?:[ap]m)?)$`)
	dotted   = strings.NewReplacer("a.m.", "am", "p.m.", "pm", "A.M.", "am", "P.M.", "pm", "’", "'", ",", " , ", ";", " , ", "(", " , ", ")", " , ", "&", " and ", "\u00a0", " ")
)

// split cuts a phrase into words. Commas are words; a full stop or an exclamation mark at the end of a word is none.
func split(text string) []word {
	var out []word
	for raw := range strings.FieldsSeq(dotted.Replace(text)) {
		if trimmed := strings.TrimRight(raw, ".!?"); trimmed != "" {
			raw = trimmed
		}
		if rest, ok := strings.CutPrefix(raw, "@"); ok {
			out, raw = append(out, word{"at", "@"}), rest
		}
		if raw != "" {
			out = append(out, joinedDays(raw)...)
		}
	}
	// A comma at the end separates nothing.
	for len(out) > 0 && out[len(out)-1].text == "," {
		out = out[:len(out)-1]
	}
	return out
}

// joinedDays cuts "mon-fri", "tue/thu" and "9am-5pm" apart. Any other word stays whole.
func joinedDays(raw string) []word {
	low := strings.ToLower(raw)
	if one, other, _ := strings.Cut(low, "/"); isDay(one) && isDay(other) {
		return []word{{one, raw}, {"and", raw}, {other, raw}}
	}
	parts := hyphened().FindStringSubmatch(low)
	if parts != nil && (isDay(parts[1]) && isDay(parts[2]) || parts[1][0] <= '9' && parts[2][0] <= '9') {
		return []word{{parts[1], raw}, {"-", raw}, {parts[2], raw}}
	}
	return []word{{low, raw}}
}

var numbers = map[string]int{
	"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10, "eleven": 11,
	"twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40, "forty-five": 45, "fifty": 50, "sixty": 60, "ninety": 90,
}

// number is that of a word: digits or a name.
func number(text string) (int, bool) {
	if n, ok := numbers[text]; ok {
		return n, true
	}
	if len(text) == 0 || len(text) > 9 || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	return n, err == nil
}

var ordinals = []string{
	"first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "eleventh", "twelfth", "thirteenth", "fourteenth",
	"fifteenth",
}

var ordinalDigits = pattern(`^(\d{1,2})(st|nd|rd|th)$`)

// ordinal is the number of a word such as "1st" or "third".
func ordinal(text string) (int, bool) {
	if i := slices.Index(ordinals, text); i >= 0 {
		return i + 1, true
	}
	parts := ordinalDigits().FindStringSubmatch(text)
	if parts == nil {
		return 0, false
	}
	n, _ := strconv.Atoi(parts[1]) // two digits
	return n, parts[2] == suffix(n)
}

// suffix is what an ordinal ends with.
func suffix(n int) string {
	if n%100 >= 11 && n%100 <= 13 {
		return "th"
	}
	switch n % 10 {
	case 1:
		return "st"
	case 2:
		return "nd"
	case 3:
		return "rd"
	}
	return "th"
}

// days is a set of weekdays, Sunday as bit 0.
type days uint8

const (
	workdays days = 0b0111110
	weekend  days = 0b1000001
	allDays  days = 0b1111111
)

func only(d time.Weekday) days { return 1 << d }

// single is the one day of a set.
func (d days) single() (time.Weekday, bool) {
	for w := time.Sunday; w <= time.Saturday; w++ {
		if d == only(w) {
			return w, true
		}
	}
	return 0, false
}

var dayNames = map[string]time.Weekday{
	"sunday": 0, "sun": 0, "monday": 1, "mon": 1, "tuesday": 2, "tue": 2, "tues": 2, "wednesday": 3, "wed": 3, "weds": 3, "thursday": 4, "thu": 4,
	"thur": 4, "thurs": 4, "friday": 5, "fri": 5, "saturday": 6, "sat": 6,
}

// readWeekday is the day that a word names, and whether the word is in the plural.
func weekday(text string) (day time.Weekday, plural, ok bool) {
	if day, ok = dayNames[text]; ok {
		return day, false, true
	}
	if one := strings.TrimSuffix(text, "s"); one != text && strings.HasSuffix(one, "day") {
		day, ok = dayNames[one]
	}
	return day, true, ok
}

func isDay(text string) bool {
	_, _, ok := weekday(text)
	return ok
}

var monthNames = []string{
	"january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
}

// month is the one that a word names: in full, or its first three letters.
func month(text string) (time.Month, bool) {
	if text == "sept" {
		text = "sep"
	}
	for i, name := range monthNames {
		if text == name || text == name[:3] {
			return time.Month(i + 1), true
		}
	}
	return 0, false
}

// units of an interval that have a fixed length.
var units = map[string]time.Duration{
	"s": time.Second, "sec": time.Second, "second": time.Second, "m": time.Minute, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hr": time.Hour, "hour": time.Hour, "d": 24 * time.Hour, "day": 24 * time.Hour,
	"w": week, "wk": week, "week": week, "fortnight": 2 * week,
}

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// unit is what a word measures: a duration, or a number of months.
func unit(text string) (d time.Duration, months int, ok bool) {
	if d, ok = units[text]; ok {
		return d, 0, true
	}
	one := strings.TrimSuffix(text, "s")
	if d, ok = units[one]; ok && len(one) > 1 {
		return d, 0, true
	}
	switch one {
	case "month":
		return 0, 1, true
	case "quarter":
		return 0, 3, true
	case "year", "yr":
		return 0, 12, true
	}
	return 0, 0, false
}
