package schedule_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/schedule"
)

// longest is what no input may take, parsed and computed once.
const longest = 20 * time.Millisecond

// The expressions that make the search longest: those that fire once in decades, or never, with every rule.
func TestNoInputTakesLong(t *testing.T) {
	t.Parallel()
	for _, expr := range []string{
		"0 0 29 2 *", "0 0 29 2 1#5", "59 59 23 29 2 7#5", "59 59 23 31 12 7", "0 0 31 2,4,6,9,11 *", "0 0 30 2 *", "0 0 29W 2 6#5",
		"0 0 L 2 0L", "0 30 2 29 2 0", "1,3,5,7,9,11,13,15,17,19,21,23,25,27,29 1-59/2 2 29 2 1-5", "@yearly",
		"*/7 2 29 2 *", "* 1 29 2 1#5", "* * 1 29 2 *",
	} {
		for _, zone := range []string{"", "Pacific/Apia", "Africa/Casablanca", "America/New_York", "Antarctica/Troll"} {
			for _, match := range []schedule.DayMatch{schedule.DayMatchAny, schedule.DayMatchAll} {
				for _, gap := range []schedule.Gap{schedule.GapRun, schedule.GapSkip} {
					best := time.Hour // of a few: other programs use the processor too
					for range 5 {
						begun := time.Now()
						if c, err := schedule.ParseCron(expr, zone, match, gap); err == nil {
							next, err := c.Next(time.Date(2096, 3, 1, 0, 0, 0, 0, time.UTC)) // the next leap year is 2104
							require.True(t, err != nil || next.Year() > 2095)
						}
						best = min(best, time.Since(begun))
					}
					assert.Less(t, best, longest, "%s in %q, %s, %s", expr, zone, match, gap)
				}
			}
		}
	}
}
