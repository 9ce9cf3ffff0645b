package bounding

// The rate of a limit as people write it: in files, flags and JSON.

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// longestPer is the longest time within which starts are counted.
const longestPer = 31 * 24 * time.Hour

// ParseRate reads what [bound.Limit].RateText writes: a number of starts, a slash, and a duration as Go writes it. SetLimits checks that there
// are not too many starts. The error is an *[store.InvalidError] about the rate.
func ParseRate(text string) (rate int, per time.Duration, err error) {
	n, duration, _ := strings.Cut(text, "/")
	rate, notNumber := strconv.Atoi(n)
	per, notDuration := time.ParseDuration(duration)
	// Zero and less are refused here: to a limit they mean that any number may start, or that no time was given.
	if notNumber != nil || notDuration != nil || rate < 1 || per <= 0 {
		return 0, 0, &store.InvalidError{Field: "rate", Reason: fmt.Sprintf("must be a number of starts and a duration, such as 60/1m, not %q", cut(text))}
	}
	if per%time.Millisecond != 0 || per > longestPer {
		return 0, 0, &store.InvalidError{Field: "rate", Reason: fmt.Sprintf("must be for whole milliseconds between 1ms and %s, not %s", moment.ShortDuration(longestPer), per)}
	}
	return rate, per, nil
}

// mostShown is how much of a rate an error shows, in bytes: the sender chooses it, and may send any length.
const mostShown = 40

// cut bounds a text in an error.
func cut(text string) string {
	if len(text) <= mostShown {
		return text
	}
	return strings.ToValidUTF8(text[:mostShown], "") + "..."
}
