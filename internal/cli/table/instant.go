package table

// Times.

import "time"

// Instant is a time as JSON, the log and core's own sentences have it: RFC 3339 in UTC, with milliseconds.
// Milliseconds and UTC make times of several machines comparable by eye.
const Instant = "2006-01-02T15:04:05.000Z07:00"

// Clock is a time of the store; a dash for none.
func Clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(Instant)
}
