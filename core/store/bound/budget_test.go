package bound_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// The end of each period is that of the clocks on the wall: found by going on minute by minute until they show another hour, day or month,
// later than any before.
func TestPeriodsEndWhereClocksSay(t *testing.T) {
	t.Parallel()
	shows := map[bound.Period]string{bound.PerHour: "2006-01-02 15", bound.PerDay: "2006-01-02", bound.PerMonth: "2006-01"}
	for _, name := range []string{
		"UTC", "Europe/Berlin", "America/New_York", "America/St_Johns", "Asia/Kathmandu", "Australia/Lord_Howe", "Africa/Cairo",
		"Asia/Beirut", "America/Havana", "America/Santiago", "America/Sao_Paulo", "Pacific/Apia", "Africa/Casablanca", "Asia/Tehran",
	} {
		zone, err := time.LoadLocation(name)
		require.NoError(t, err)
		for _, year := range []int{2011, 2018, 2027} {
			from := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
			clock := bound.ClockOf(zone, from)
			parsed, err := bound.ParseClock(clock.String())
			require.NoError(t, err)
			require.Equal(t, clock, parsed)
			for per, layout := range shows {
				step := map[bound.Period]time.Duration{bound.PerHour: 83 * time.Minute, bound.PerDay: 7 * time.Hour, bound.PerMonth: 5 * 24 * time.Hour}[per]
				for at := from; at.Year() == year; at = at.Add(step) {
					shown := at.In(zone).Format(layout)
					end := clock.End(per, moment.Of(at)).Time()
					require.True(t, end.After(at), "%s: an %s from %s ends before", name, per, at)
					require.Greater(t, end.In(zone).Format(layout), shown, "%s: the %s of %s", name, per, at)
					// Clocks that go back may show the next period for a moment before: what counts is that none was shown for good.
					before := end.Add(-time.Minute).In(zone).Format(layout)
					again := end.Add(-61 * time.Minute).In(zone).Format(layout)
					require.True(t, before == shown || again == shown, "%s: the %s of %s has ended before %s", name, per, at, end)
				}
			}
		}
	}
}

// Amounts are written as people write them.
func TestAmounts(t *testing.T) {
	t.Parallel()
	for amount, text := range map[float64]string{0: "0", 1200: "1200", 0.02: "0.02", 2.5: "2.5", 0.000001: "0.000001", 9_000_000_000: "9000000000"} {
		assert.Equal(t, text, bound.AmountOf(amount).String())
	}
	assert.Equal(t, "tokens a day of each agent", bound.BudgetTarget{LimitTarget: bound.LimitTarget{Each: bound.EachAgent}, Unit: "tokens", Per: bound.PerDay}.String())
	assert.Equal(t, `runs an hour of each task of kind "k"`, bound.BudgetTarget{LimitTarget: bound.LimitTarget{Kind: "k", Each: bound.EachTask}, Unit: "runs", Per: bound.PerHour}.String())
	_, err := bound.ParseClock("1,2")
	require.Error(t, err)
	_, err = bound.ParseClock("x")
	require.Error(t, err)
}
