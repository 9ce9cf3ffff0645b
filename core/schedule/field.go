package schedule

// The fields of a cron expression: what is accepted, and what each element becomes for gronx.

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxCronLen is the longest cron expression, in bytes.
// A longer one would take longer to parse than any schedule needs.
const MaxCronLen = 256

// The fields of a cron expression, in gronx's positions.
var fieldNames = []string{"second", "minute", "hour", "day of month", "month", "day of week"}

var fieldBounds = [][2]int{{0, 59}, {0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 7}}

// @reboot has no meaning here, as nothing boots.
var nicknames = map[string]string{
	"@yearly": "0 0 0 1 1 *", "@annually": "0 0 0 1 1 *", "@monthly": "0 0 0 1 * *", "@weekly": "0 0 0 * * 0",
	"@daily": "0 0 0 * * *", "@midnight": "0 0 0 * * *", "@hourly": "0 0 * * * *",
}

var monthNames = []string{"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"}

var weekdayNames = []string{"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"}

// split checks an expression and returns its six fields with names turned into numbers. Its errors say which field is
// wrong, and why.
// gronx accepts more than makes sense; what it would misread is refused here, with the reason.
func split(expr string) ([]string, error) {
	if len(expr) > MaxCronLen {
		return nil, refused("cron", "is %d bytes long: the limit is %d", len(expr), MaxCronLen)
	}
	text := strings.TrimSpace(expr)
	if strings.HasPrefix(text, "@") {
		full, ok := nicknames[strings.ToLower(text)]
		if !ok {
			if every, ok := strings.CutPrefix(expr, "@every "); ok {
				return nil, refused("cron", "%q is no cron expression: leave it out, and write %q as every", expr, strings.TrimSpace(every))
			}
			return nil, refused("cron", "%q is unknown: use @yearly, @monthly, @weekly, @daily or @hourly", expr)
		}
		text = full
	}
	// Other parsers take the zone from the expression, some of them with a panic on an empty one.
	if name, zone, _ := strings.Cut(text, "="); name == "TZ" || name == "CRON_TZ" {
		zone, rest, _ := strings.Cut(zone, " ")
		return nil, refused("cron", "%q names its zone: write %q as cron and %q as zone", expr, strings.TrimSpace(rest), zone)
	}
	fields := strings.Fields(text)
	switch len(fields) {
	case 5:
		// Five fields are crontab's, and begin at second zero.
		fields = append([]string{"0"}, fields...)
	case 6:
	default:
		return nil, refused("cron", "%q has %d fields: there must be 5 (minute hour day month weekday), or 6 with the second first",
			expr, len(fields))
	}
	for pos, field := range fields {
		clean, err := cleanField(strings.ToUpper(field), pos)
		if err != nil {
			return nil, refused("cron", "%q: the %s field %q: %w", expr, fieldNames[pos], field, err)
		}
		fields[pos] = clean
	}
	return fields, nil
}

// cleanField checks one field: a list of elements.
func cleanField(field string, pos int) (string, error) {
	elements := strings.Split(field, ",")
	for i, e := range elements {
		clean, err := cleanElement(e, pos)
		if err != nil {
			return "", err
		}
		elements[i] = clean
	}
	return strings.Join(elements, ","), nil
}

// cleanElement checks one element of a list: a star, a value, a range, any
// of them with a step, or a special.
func cleanElement(e string, pos int) (string, error) {
	if e == "" {
		return "", fmt.Errorf("an element of the list is empty")
	}
	if e == "*" || e == "?" && (pos == 3 || pos == 5) {
		return e, nil
	}
	if clean, ok, err := special(e, pos); ok || err != nil {
		return clean, err
	}
	span, step, stepped := strings.Cut(e, "/")
	if stepped {
		n, err := number(step)
		if err != nil || n < 1 || n > fieldBounds[pos][1] {
			return "", fmt.Errorf("the step %q must be a number from 1 to %d", step, fieldBounds[pos][1])
		}
		step = "/" + strconv.Itoa(n)
	}
	span, err := cleanSpan(span, pos)
	return span + step, err
}

// cleanSpan checks what stands before a step: a star, a value or a range.
// A range that wraps, such as 22-4, means different things to different parsers, so it is refused.
func cleanSpan(span string, pos int) (string, error) {
	if span == "*" {
		return span, nil
	}
	low, high, ranged := strings.Cut(span, "-")
	first, err := value(low, pos)
	if err != nil {
		return "", err
	}
	if !ranged {
		return strconv.Itoa(first), nil
	}
	last, err := value(high, pos)
	if err != nil {
		return "", err
	}
	if last < first {
		return "", fmt.Errorf("the range %q ends before it begins", span)
	}
	return strconv.Itoa(first) + "-" + strconv.Itoa(last), nil
}

// special checks L (last day), 15W (weekday nearest the 15th), 5L (last Friday) and 5#3 (third Friday).
func special(e string, pos int) (clean string, ok bool, err error) {
	switch {
	case pos == 3 && e == "L":
		return e, true, nil
	case pos == 3 && (e == "LW" || e == "WL" || strings.HasPrefix(e, "L-")):
		return "", false, fmt.Errorf("%q is unknown: write L for the last day of the month, or L after a weekday "+
			"in the day of week field for its last one, as in 5L for the last Friday", e)
	case pos == 3 && strings.HasSuffix(e, "W"):
		n, err := value(strings.TrimSuffix(e, "W"), pos)
		return strconv.Itoa(n) + "W", true, err
	case pos == 5 && strings.HasSuffix(e, "L"):
		n, err := value(strings.TrimSuffix(e, "L"), pos)
		return strconv.Itoa(n%7) + "L", true, err
	case pos == 5 && strings.Contains(e, "#"):
		day, nth, _ := strings.Cut(e, "#")
		n, err := value(day, pos)
		if err != nil {
			return "", false, err
		}
		k, err := number(nth)
		if err != nil || k < 1 || k > 5 {
			return "", false, fmt.Errorf("%q must have a number from 1 to 5 behind the #", e)
		}
		return strconv.Itoa(n%7) + "#" + strconv.Itoa(k), true, nil
	}
	return "", false, nil
}

// value reads a number or a name, and checks its bounds.
// Names are the English ones, in capitals by now.
func value(s string, pos int) (int, error) {
	names, base := []string(nil), 0
	switch pos {
	case 4:
		names, base = monthNames, 1
	case 5:
		names = weekdayNames
	}
	for i, name := range names {
		if s == name {
			return i + base, nil
		}
	}
	n, err := number(s)
	bounds := fieldBounds[pos]
	if err != nil || n < bounds[0] || n > bounds[1] {
		return 0, fmt.Errorf("%q must be from %d to %d", s, bounds[0], bounds[1])
	}
	return n, nil
}

// number reads digits only: no sign, and not many.
// A sign or a long number would be accepted by Atoi.
func number(s string) (int, error) {
	if len(s) == 0 || len(s) > 4 || strings.Trim(s, "0123456789") != "" {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return strconv.Atoi(s)
}

// Fields returns the six fields of an expression (second, minute, hour, day, month and weekday last), with nicknames written out, names turned
// into numbers and letters in capitals. The error is a *[ParseError]; an expression that can never fire is no error here.
func Fields(expr string) ([]string, error) { return split(expr) }
