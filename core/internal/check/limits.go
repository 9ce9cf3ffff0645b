package check

// Bounds of input, and the name of duly in what it orders by itself.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// How long activity tasks cool down at least, and rest at most.
const (
	LeastCoolDown = 24 * time.Hour
	// RestFor is how long a task is kept after its last run, waiting for activity: then it is finished and its record kept
	// as long as others. Its MinInterval and its cooling down are over by then.
	RestFor = 7 * 24 * time.Hour
)

// ByDuly is the By of what duly does by itself, such as pausing what keeps failing.
const ByDuly = "duly"

// MostDepth and MostSpawned bound the settings.
const (
	MostDepth   = 1000
	MostSpawned = 1_000_000
)

// Bounds of tasks.
const (
	MaxErrorLen   = 1 << 10
	MaxTags       = 32
	MaxJitter     = 24 * time.Hour
	MaxPauseAfter = 1000
	MaxKeyLen     = MaxIDLen
	MaxAttempts   = 1000
	MaxDelay      = 10 * 365 * 24 * time.Hour
	MaxYear       = 2285 // after it a time in milliseconds has more than 13 digits
	MinLease      = 100 * time.Millisecond
	MaxLease      = time.Hour
)

// TooShort refuses an expectation that a task cannot meet, as its schedule leaves that much between two runs.
func TooShort(gap time.Duration) error {
	return Invalid("expect_success", "must be longer than the %s that the schedule may leave between two runs", moment.ShortDuration(gap))
}
