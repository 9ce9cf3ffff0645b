package schedule

// Intervals: their bounds, and how far failures stretch them.

import "time"

// Bounds of an interval.
// A shorter interval is a loop, and not a schedule.
const (
	// MinInterval is the shortest interval of a recurring task.
	MinInterval = time.Second
	// MaxStretch is how far failures stretch an interval that is not longer by itself.
	MaxStretch = 5 * time.Minute
)

// Stretch is an interval after a number of failures in a row: interval*2^failures, at most the longer of interval and
// MaxStretch. Zero failures leave it unchanged.
// It lets a failing service rest without a separate setting; one success brings the interval back.
func Stretch(interval time.Duration, failures int) time.Duration {
	most := max(interval, MaxStretch)
	for range failures {
		// Half of the most, so that doubling cannot overflow.
		if interval >= most/2 {
			return most
		}
		interval *= 2
	}
	return interval
}

// Slot is the first of the fixed times nominal + k*interval, k >= 1, that is after now: no drift, and slots that were
// missed are passed over. All in milliseconds.
// It computes in whole numbers, however long ago nominal was.
func Slot(nominal, now int64, interval time.Duration) int64 {
	step := interval.Milliseconds()
	if now < nominal {
		return nominal + step
	}
	return nominal + ((now-nominal)/step+1)*step
}
