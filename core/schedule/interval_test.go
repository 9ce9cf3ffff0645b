package schedule_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/schedule"
)

func TestStretch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		interval time.Duration
		failures int
		want     time.Duration
	}{
		{time.Second, 0, time.Second},
		{time.Second, 3, 8 * time.Second},
		{time.Second, 9, 5 * time.Minute},
		{time.Second, math.MaxInt32, 5 * time.Minute},
		{4 * time.Minute, 1, 5 * time.Minute},
		{time.Hour, 1, time.Hour},
		{math.MaxInt64, 5, math.MaxInt64},
	} {
		assert.Equal(t, c.want, schedule.Stretch(c.interval, c.failures), "%v", c)
	}
}

func TestSlot(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ nominal, now, want int64 }{
		{1000, 900, 2000},
		{1000, 1000, 2000},
		{1000, 1999, 2000},
		{1000, 2000, 3000},
		{1000, 9_999_500, 10_000_000},
	} {
		assert.Equal(t, c.want, schedule.Slot(c.nominal, c.now, time.Second), "%v", c)
	}
}

func FuzzSlot(f *testing.F) {
	f.Add(int64(1000), int64(5), int64(1000))
	f.Fuzz(func(t *testing.T, nominal, late, step int64) {
		if nominal < 0 || nominal > 1e13 || late < 0 || late > 1e13 || step < 1000 || step > 1e11 {
			return
		}
		now := nominal + late
		got := schedule.Slot(nominal, now, time.Duration(step)*time.Millisecond)
		require.Greater(t, got, now)
		require.LessOrEqual(t, got, now+step)
		require.Zero(t, (got-nominal)%step)
	})
}
