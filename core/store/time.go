package store

// Times as stores have them.

import "time"

// Millis is a time in milliseconds since the Unix epoch, by the store's clock. Zero is no time.
type Millis int64

// Time is m as a time.Time in UTC; the zero time for no time.
func (m Millis) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(m)).UTC()
}

// Add is m later by d, cut to milliseconds.
func (m Millis) Add(d time.Duration) Millis { return m + Millis(d.Milliseconds()) }

// Sub is the duration from o to m.
func (m Millis) Sub(o Millis) time.Duration { return time.Duration(m-o) * time.Millisecond }

// MillisOf is t in milliseconds, rounded up, so that nothing is early.
func MillisOf(t time.Time) Millis {
	if t.IsZero() {
		return 0
	}
	return Millis(t.Add(time.Millisecond - 1).UnixMilli())
}

// When is a time that the store works out: At, or After from the moment of the store's step if At is zero. A submission
// whose At has passed is due now.
type When struct {
	At    Millis
	After time.Duration
}
