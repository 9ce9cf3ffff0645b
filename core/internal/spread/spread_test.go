package spread_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core/internal/spread"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Occurrences are spread evenly, also where they differ little.
func TestOccurrencesAreSpreadEvenly(t *testing.T) {
	t.Parallel()
	const parts, each = 10, 1000
	for name, of := range map[string]func(i int) int64{
		"agents":      func(i int) int64 { return spread.Among(parts, fmt.Sprint("agent", i), "daily", 0) },
		"tasks":       func(i int) int64 { return spread.Among(parts, "agent", fmt.Sprint(i), 0) },
		"occurrences": func(i int) int64 { return spread.Among(parts, "agent", "daily", moment.Millis(1764000000000+60_000*i)) },
	} {
		counts := map[int64]int{}
		for i := range parts * each {
			counts[of(i)]++
		}
		assert.Len(t, counts, parts, name)
		for part, n := range counts {
			assert.InDelta(t, each, n, each/5, "%s in part %d", name, part)
		}
	}
	assert.Zero(t, spread.Among(0, "a", "1", 0))
	assert.Zero(t, spread.Jitter(0, "a", "1", 0))
	assert.Less(t, spread.Jitter(time.Minute, "a", "1", 0), time.Minute)
	assert.NotEqual(t, spread.Among(1<<40, "a", "b", 0), spread.Among(1<<40, "ab", "", 0), "ids of any length")
}
