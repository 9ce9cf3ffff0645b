package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/schedule"
)

func TestParseDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"0": 0, "90s": 90 * time.Second, "1h30m": 90 * time.Minute, "-5m": -5 * time.Minute, "+1d": 24 * time.Hour, "1.5h": 90 * time.Minute,
		"1d": 24 * time.Hour, "2w": 14 * 24 * time.Hour, "2w3d12h": 17*24*time.Hour + 12*time.Hour, "-1d12h": -36 * time.Hour, "1d500ms": 24*time.Hour + 500*time.Millisecond,
		"PT10M": 10 * time.Minute, "P1D": 24 * time.Hour, "P1W": 7 * 24 * time.Hour, "P1DT12H": 36 * time.Hour, "PT0.5S": 500 * time.Millisecond,
		"PT1,5S": 1500 * time.Millisecond, "PT1H2M3S": time.Hour + 2*time.Minute + 3*time.Second, "106751d": 106751 * 24 * time.Hour,
	} {
		got, err := schedule.ParseDuration(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{
		"", "d", "1", "1D", "1 d", "1d2w", "1d-1h", "1d+1h", "d1", "1.5d", "1y", "1M1", "P", "PT", "P1DT", "P1Y", "P1M", "PT1H1D", "p1d", "-P1D",
		"106752d", "999999w", "999999d999999h", "1d1", strings.Repeat("9", 1000) + "d", "\x00",
	} {
		_, err := schedule.ParseDuration(text)
		require.ErrorContains(t, err, `is not a duration such as "90s", "1h30m", "1d" or "PT10M"`, text)
		assert.Less(t, len(err.Error()), 200)
	}
}

// What Go reads means the same here.
func FuzzParseDuration(f *testing.F) {
	for _, text := range []string{"1h30m", "1d", "2w3d12h", "PT10M", "P1DT1.5S", "-1d1h"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := schedule.ParseDuration(text)
		if want, plain := time.ParseDuration(text); plain == nil {
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		if err == nil {
			again, err := schedule.ParseDuration(got.String())
			require.NoError(t, err)
			require.Equal(t, got, again)
		}
	})
}
