package phrase

// Cron expressions within a phrase.

import (
	"strings"

	"github.com/seed-6f6f2c11/duly/core/schedule"
)

// cutCron cuts the cron expression off with which a phrase begins, with or without the word before it.
func cutCron(text string) (expr, rest string, err error) {
	fields := strings.Fields(text)
	named := len(fields) > 0 && strings.EqualFold(fields[0], "cron")
	if named {
		fields = fields[1:]
	}
	n := cronFields(fields, named)
	if n == 0 && named {
		return "", "", refused("cron must be followed by an expression of 5 or 6 fields, such as cron 0 9 * * 1-5")
	}
	if n == 0 {
		return "", text, nil
	}
	last := strings.TrimSuffix(fields[n-1], ",")
	expr = strings.Join(append(fields[:n-1:n-1], last), " ")
	if _, err := schedule.ParseCron(expr, "", "", ""); err != nil {
		return "", "", refused("%v", err)
	}
	return expr, strings.Join(fields[n:], " "), nil
}

// cronFields is how many words are the fields of an expression: one nickname, or 5 or 6 fields.
func cronFields(words []string, named bool) int {
	if len(words) > 0 && len(words[0]) > 1 && words[0][0] == '@' {
		_, err := schedule.Fields(words[0])
		if err == nil || named {
			return 1
		}
		return 0
	}
	n := 0
	for n < len(words) && n < 6 && cronField(strings.ToLower(words[n]), named || n > 1) {
		n++
	}
	if n < 5 {
		return 0
	}
	return n
}

// cronField reports whether a word can be a field of an expression. Letters make a field only behind the first two, so that a phrase that begins with a
// number is none.
func cronField(text string, letters bool) bool {
	text = strings.TrimSuffix(text, ",")
	if strings.Trim(text, "0123456789*/,-?") == "" {
		return text != ""
	}
	for element := range strings.SplitSeq(text, ",") {
		low, high, _ := strings.Cut(element, "-")
		if !letters || !cronValue(low) || high != "" && !cronValue(high) {
			return false
		}
	}
	return true
}

// cronValue reports whether a text is a value of a field: a number, a name, or one with L, W or #.
func cronValue(text string) bool {
	text, _, _ = strings.Cut(text, "#")
	text, _, _ = strings.Cut(text, "/")
	if name := strings.TrimSuffix(text, "l"); len(name) == 3 && isDay(name) {
		return true
	}
	if _, ok := month(text); ok && len(text) == 3 {
		return true
	}
	return text != "" && strings.Trim(text, "0123456789*?lw") == ""
}
