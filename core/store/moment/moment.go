// Package moment is time as stores have it: milliseconds by the clock of the store, and times that the store works out itself.
package moment

import (
	"strings"
	"time"
)

// Millis is a time in milliseconds since the Unix epoch, by the store's clock. Zero is no time.
type Millis int64

// Never is when tasks are due that only an order makes due: later than any time that users can name, and as long as other times are in
// Redis. A store needs to know nothing of it: it finds them after all others, and never due.
const Never Millis = 9_999_999_999_999

// Time is m as a time.Time in UTC; the zero time for no time, and for Never.
func (m Millis) Time() time.Time {
	if m == 0 || m >= Never {
		return time.Time{}
	}
	return time.UnixMilli(int64(m)).UTC()
}

// Add is m later by d, cut to milliseconds.
func (m Millis) Add(d time.Duration) Millis { return m + Millis(d.Milliseconds()) }

// Sub is the duration from o to m.
func (m Millis) Sub(o Millis) time.Duration { return time.Duration(m-o) * time.Millisecond }

// Of is t in milliseconds, rounded up, so that nothing is early.
func Of(t time.Time) Millis {
	if t.IsZero() {
		return 0
	}
	// guard: due-rounded-up
	return Millis(t.Add(time.Millisecond - 1).UnixMilli())
}

// When is a time that the store works out: At, or After from the moment of the store's step if At is zero. A submission
// whose At has passed is due now.
type When struct {
	At    Millis
	After time.Duration
}

// ShortDuration is a duration as Go writes it, without trailing zero units: 1h, not 1h0m0s.
func ShortDuration(d time.Duration) string {
	text := d.String()
	for _, zeros := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zeros) {
			text = text[:len(text)-2]
		}
	}
	return text
}
