package schedule

// Durations as people and other systems write them.

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Day and Week are what d and w stand for in a duration. They do not follow daylight saving time: a cron schedule does.
const (
	Day  = 24 * time.Hour
	Week = 7 * Day
)

// daysFirst is a duration of Go that may begin with weeks and days, and isoDuration one as ISO 8601 writes it, without months and years.
var (
	daysFirst = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([+-]?)(?:(\d{1,6})w)?(?:(\d{1,6})d)?(.*)$`)
	})
	isoDuration = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^P(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9}(?:[.,]\d{1,9})?)S)?)?$`)
	})
)

// ParseDuration reads a duration as Go writes it, such as "1h30m", with "d" for days of 24 hours and "w" for weeks in front, as in "1d" or
// "2w3d12h", or as ISO 8601 has it, such as "PT10M" or "P1DT12H". Months and years are refused: they have no fixed length.
func ParseDuration(text string) (time.Duration, error) {
	if strings.HasPrefix(text, "P") {
		return parseISO(text)
	}
	parts := daysFirst().FindStringSubmatch(text)
	if parts == nil || parts[2] == "" && parts[3] == "" {
		return plainDuration(text, text)
	}
	rest := parts[4]
	if rest == "" {
		rest = "0s"
	} else if strings.ContainsAny(rest[:1], "+-") {
		return 0, badDuration(text)
	}
	return plainDuration(parts[1]+hours(parts[2], parts[3])+rest, text)
}

// parseISO reads a duration that begins with P.
func parseISO(text string) (time.Duration, error) {
	parts := isoDuration().FindStringSubmatch(text)
	if parts == nil || strings.HasSuffix(text, "T") || text == "P" {
		return 0, badDuration(text)
	}
	var out strings.Builder
	out.WriteString(hours(parts[1], parts[2]))
	for i, unit := range []string{"h", "m", "s"} {
		if n := parts[3+i]; n != "" {
			out.WriteString(strings.Replace(n, ",", ".", 1) + unit)
		}
	}
	return plainDuration(out.String(), text)
}

// hours are weeks and days as Go writes them.
func hours(weeks, days string) string {
	w, _ := strconv.Atoi(weeks) // at most six digits, or empty
	d, _ := strconv.Atoi(days)
	return strconv.Itoa((7*w+d)*24) + "h"
}

// plainDuration reads what Go writes; the error is about the text that was given.
func plainDuration(plain, text string) (time.Duration, error) {
	d, err := time.ParseDuration(plain)
	if err != nil {
		return 0, badDuration(text)
	}
	return d, nil
}

func badDuration(text string) error {
	const longest = 64
	if len(text) > longest {
		text = text[:longest] + "..."
	}
	return fmt.Errorf(`%q is not a duration such as "90s", "1h30m", "1d" or "PT10M"`, text)
}
