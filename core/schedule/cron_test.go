package schedule_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/schedule"
)

// next are the next n times after a time, as RFC 3339 in the zone.
func next(t *testing.T, expr, zone, after string, n int, match schedule.DayMatch, gap schedule.Gap) []string {
	t.Helper()
	c, err := schedule.ParseCron(expr, zone, match, gap)
	require.NoError(t, err)
	at, err := time.Parse(time.RFC3339, after)
	require.NoError(t, err)
	out := make([]string, 0, n)
	for range n {
		at, err = c.Next(at)
		require.NoError(t, err)
		out = append(out, at.Format(time.RFC3339))
	}
	return out
}

func TestCronNext(t *testing.T) {
	t.Parallel()
	const ny = "America/New_York"
	for _, c := range []struct {
		name, expr, zone, after string
		match                   schedule.DayMatch
		gap                     schedule.Gap
		want                    []string
	}{
		{"five fields", "30 9 * * *", "", "2026-01-01T09:30:00Z", "", "", []string{"2026-01-02T09:30:00Z", "2026-01-03T09:30:00Z"}},
		{"six fields", "15 30 9 * * *", "", "2026-01-01T00:00:00Z", "", "", []string{"2026-01-01T09:30:15Z"}},
		{"strictly after", "* * * * * *", "", "2026-01-01T00:00:00.5Z", "", "", []string{"2026-01-01T00:00:01Z", "2026-01-01T00:00:02Z"}},
		{"step from a number", "5/20 * * * *", "", "2026-01-01T00:00:00Z", "", "", []string{"2026-01-01T00:05:00Z", "2026-01-01T00:25:00Z", "2026-01-01T00:45:00Z", "2026-01-01T01:05:00Z"}},
		{"names", "0 0 * feb-mar mon,WED", "", "2026-02-20T00:00:00Z", "", "", []string{"2026-02-23T00:00:00Z", "2026-02-25T00:00:00Z", "2026-03-02T00:00:00Z"}},
		{"either day field", "0 0 13 * 5", "", "2026-01-31T00:00:00Z", "", "", []string{"2026-02-06T00:00:00Z", "2026-02-13T00:00:00Z", "2026-02-20T00:00:00Z"}},
		{"both day fields", "0 0 13 * 5", "", "2026-01-31T00:00:00Z", schedule.DayMatchAll, "", []string{"2026-02-13T00:00:00Z", "2026-03-13T00:00:00Z", "2026-11-13T00:00:00Z"}},
		{"a star with a step is no restriction", "0 0 */2 * 1", "", "2026-01-01T00:00:00Z", "", "", []string{"2026-01-05T00:00:00Z", "2026-01-19T00:00:00Z"}},
		{"last day", "0 0 L * *", "", "2024-01-31T00:00:00Z", "", "", []string{"2024-02-29T00:00:00Z", "2024-03-31T00:00:00Z"}},
		{"nearest weekday", "0 0 15W * *", "", "2026-02-01T00:00:00Z", "", "", []string{"2026-02-16T00:00:00Z", "2026-03-16T00:00:00Z", "2026-04-15T00:00:00Z"}},
		{"last friday", "0 0 * * 5L", "", "2026-01-01T00:00:00Z", "", "", []string{"2026-01-30T00:00:00Z", "2026-02-27T00:00:00Z"}},
		{"third friday", "0 0 * * FRI#3", "", "2026-01-01T00:00:00Z", "", "", []string{"2026-01-16T00:00:00Z", "2026-02-20T00:00:00Z"}},
		{"sunday is 7", "0 0 * * 7", "", "2026-01-01T00:00:00Z", "", "", []string{"2026-01-04T00:00:00Z"}},
		{"leap day", "0 0 29 2 *", "", "2026-01-01T00:00:00Z", "", "", []string{"2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"}},
		{"rare leap day", "0 0 29 2 1", "", "2026-01-01T00:00:00Z", schedule.DayMatchAll, "", []string{"2044-02-29T00:00:00Z", "2072-02-29T00:00:00Z"}},
		{"nickname", "@Weekly", "", "2026-01-01T00:00:00Z", "", "", []string{"2026-01-04T00:00:00Z"}},
		{"gap runs at its end", "30 2 * * *", ny, "2026-03-07T12:00:00-05:00", "", "", []string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:30:00-04:00"}},
		{"gap is skipped", "30 2 * * *", ny, "2026-03-07T12:00:00-05:00", "", schedule.GapSkip, []string{"2026-03-09T02:30:00-04:00"}},
		{"many times in a gap run once", "*/10 2 * * *", ny, "2026-03-08T00:00:00-05:00", "", "", []string{"2026-03-08T03:00:00-04:00", "2026-03-09T02:00:00-04:00"}},
		{"each second of a skipped gap", "* * 2 * * *", ny, "2026-03-08T00:00:00-05:00", "", schedule.GapSkip, []string{"2026-03-09T02:00:00-04:00"}},
		{"hourly through a gap", "0 * * * *", ny, "2026-03-08T00:30:00-05:00", "", "", []string{"2026-03-08T01:00:00-05:00", "2026-03-08T03:00:00-04:00"}},
		{"repeated once, first", "30 1 * * *", ny, "2026-10-31T12:00:00-04:00", "", "", []string{"2026-11-01T01:30:00-04:00", "2026-11-02T01:30:00-05:00"}},
		{"minutes with a star in both passes", "*/20 1 * * *", ny, "2026-11-01T01:30:00-04:00", "", "", []string{"2026-11-01T01:40:00-04:00", "2026-11-01T01:00:00-05:00", "2026-11-01T01:20:00-05:00", "2026-11-01T01:40:00-05:00", "2026-11-02T01:00:00-05:00"}},
		{"minutes with a star, in an hour that is not repeated", "*/30 2 * * *", ny, "2026-11-01T00:00:00-04:00", "", "", []string{"2026-11-01T02:00:00-05:00", "2026-11-01T02:30:00-05:00", "2026-11-02T02:00:00-05:00"}},
		{"in Berlin it is the hour from two on", "*/20 2 * * *", "Europe/Berlin", "2026-10-25T02:40:00+02:00", "", "", []string{"2026-10-25T02:00:00+01:00", "2026-10-25T02:20:00+01:00", "2026-10-25T02:40:00+01:00", "2026-10-26T02:00:00+01:00"}},
		{"a list that does not begin with a star is fixed", "0,*/20 1 * * *", ny, "2026-11-01T01:30:00-04:00", "", "", []string{"2026-11-01T01:40:00-04:00", "2026-11-02T01:00:00-05:00"}},
		{"from the second pass", "* 1 * * *", ny, "2026-11-01T01:10:00-05:00", "", "", []string{"2026-11-01T01:11:00-05:00"}},
		{"the end of the second pass", "* 1 * * *", ny, "2026-11-01T01:59:00-05:00", "", "", []string{"2026-11-02T01:00:00-05:00"}},
		{"fixed minutes, from the second pass", "10,50 1 * * *", ny, "2026-11-01T01:10:00-05:00", "", "", []string{"2026-11-02T01:10:00-05:00"}},
		{"each second, from the second pass", "* * 1 * * *", ny, "2026-11-01T01:10:00-05:00", "", "", []string{"2026-11-01T01:10:01-05:00"}},
		{"each second of a fixed minute", "* 30 1 * * *", ny, "2026-11-01T01:30:59-04:00", "", "", []string{"2026-11-02T01:30:00-05:00"}},
		{"hourly in both passes", "30 */1 * * *", ny, "2026-11-01T00:00:00-04:00", "", "", []string{"2026-11-01T00:30:00-04:00", "2026-11-01T01:30:00-04:00", "2026-11-01T01:30:00-05:00", "2026-11-01T02:30:00-05:00"}},
		{"the last day of a leap year after 2037", "0 */12 * * *", ny, "2096-12-30T12:00:00-05:00", "", "", []string{"2096-12-31T00:00:00-05:00", "2096-12-31T12:00:00-05:00", "2097-01-01T00:00:00-05:00"}},
		{"midnight gap", "0 0 * * *", "America/Santiago", "2026-09-05T12:00:00-04:00", "", "", []string{"2026-09-06T01:00:00-03:00", "2026-09-07T00:00:00-03:00"}},
		{"a day that does not exist", "0 9 30 12 *", "Pacific/Apia", "2011-12-01T00:00:00-10:00", "", "", []string{"2011-12-31T00:00:00+14:00", "2012-12-30T09:00:00+14:00"}},
		{"half an hour", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T12:00:00+10:30", "", "", []string{"2026-10-04T02:30:00+11:00", "2026-10-05T02:15:00+11:00"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.want, next(t, c.expr, c.zone, c.after, len(c.want), c.match, c.gap))
		})
	}
}

func TestParseCronRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ expr, zone, want string }{
		{"", "", `cron "" has 0 fields`},
		{"* * * *", "", "has 4 fields"},
		{"* * * * * * *", "", "has 7 fields"},
		{strings.Repeat("*", 300), "", "cron is 300 bytes long"},
		{"@sometimes", "", "is unknown: use @yearly"},
		{"@every 1h", "", `is no cron expression: leave it out, and write "1h" as every`},
		{"60 * * * *", "", `the minute field "60": "60" must be from 0 to 59`},
		{"* 24 * * *", "", `the hour field "24"`},
		{"* * 0 * *", "", `the day of month field "0": "0" must be from 1 to 31`},
		{"* * * 13 *", "", "the month field"},
		{"* * * * 8", "", "the day of week field"},
		{"* * * * FOO", "", `"FOO" must be from 0 to 7`},
		{"*/0 * * * *", "", `the step "0" must be a number from 1 to 59`},
		{"*/60 * * * *", "", "the step"},
		{"1/ * * * *", "", `the step ""`},
		{"1,,2 * * * *", "", "an element of the list is empty"},
		{"5-1 * * * *", "", `the range "5-1" ends before it begins`},
		{"-1 * * * *", "", `must be from 0 to 59`},
		{"+1 * * * *", "", `must be from 0 to 59`},
		{"1-2-3 * * * *", "", `"2-3" must be from 0 to 59`},
		{"? * * * *", "", "the minute field"},
		{"L * * * *", "", "the minute field"},
		{"* * W * *", "", "the day of month field"},
		{"* * 32W * *", "", "the day of month field"},
		{"* * * * 5#6", "", "from 1 to 5 behind the #"},
		{"* * * * #1", "", "the day of week field"},
		{"0 0 30 2 *", "", "can never fire"},
		{"0 0 31 4,6,9,11 *", "", "can never fire"},
		{"0 0 31 2 1", "", ""},
		{"* * * * *", "Mars/Base", `zone "Mars/Base" is not known`},
		{"* * * * *", "../etc/passwd", "is not known"},
		{"* * * * *", "Local", "another one on each machine"},
		{"TZ=UTC * * * *", "", `cron "TZ=UTC * * * *" names its zone: write "* * * *" as cron and "UTC" as zone`},
		{"CRON_TZ=Asia/Tokyo 0 9 * * *", "", `write "0 9 * * *" as cron and "Asia/Tokyo" as zone`},
		{"CRON_TZ=UTC", "", `as zone`},
		{"0 0 LW * *", "", `the day of month field "LW": "LW" is unknown: write L for the last day of the month, or L after a weekday`},
		{"0 0 L-3 * *", "", `"L-3" is unknown`},
		{"\xff * * * *", "", "the minute field"},
	} {
		_, err := schedule.ParseCron(c.expr, c.zone, "", "")
		if c.want == "" {
			require.NoError(t, err, c.expr)
			continue
		}
		require.ErrorContains(t, err, c.want, "%q", c.expr)
		field := "cron"
		if c.zone != "" {
			field = "zone"
		}
		assert.Equal(t, field, fieldOf(t, err), "%q", c.expr)
	}
	_, err := schedule.ParseCron("* * * * *", "", "most", "")
	assert.Equal(t, "day_match", fieldOf(t, err))
	require.EqualError(t, err, `day_match must be "any" or "all", not "most"`)
	_, err = schedule.ParseCron("* * * * *", "", "", "jump")
	assert.Equal(t, "gap", fieldOf(t, err))
	require.EqualError(t, err, `gap must be "run" or "skip", not "jump"`)
	_, err = schedule.ParseCron("0 0 31 2 1", "", schedule.DayMatchAll, "")
	assert.Equal(t, "cron", fieldOf(t, err))
	require.ErrorContains(t, err, "can never fire")
	require.ErrorIs(t, err, schedule.ErrNever)
}

// fieldOf is the parameter that an error is about. Its text is that and the reason.
func fieldOf(t *testing.T, err error) string {
	t.Helper()
	var wrong *schedule.ParseError
	require.ErrorAs(t, err, &wrong)
	assert.Equal(t, wrong.Field+" "+wrong.Reason, err.Error())
	return wrong.Field
}

// The search ends with the year 9999, beyond which no time can be written: never is an error, and no time.
func TestCronEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ expr, zone, after, want string }{
		{"0 0 31 12 *", "", "9998-12-31T00:00:00Z", "9999-12-31T00:00:00Z"},
		{"0 0 31 12 *", "", "9999-12-31T00:00:00Z", ""},
		{"0 0 29 2 *", "", "9996-02-29T00:00:00Z", ""},
		{"* * * * *", "", "9999-12-31T23:59:00Z", ""},
		{"0 */2 * * *", "America/New_York", "9999-12-31T18:00:00-05:00", ""}, // there it is not yet that year, in UTC it is
		{"59 23 31 12 *", "Pacific/Auckland", "9999-12-30T00:00:00Z", "9999-12-31T23:59:00+13:00"},
	} {
		cron, err := schedule.ParseCron(c.expr, c.zone, "", "")
		require.NoError(t, err)
		after, err := time.Parse(time.RFC3339, c.after)
		require.NoError(t, err)
		got, err := cron.Next(after)
		if c.want == "" {
			require.ErrorIs(t, err, schedule.ErrNever, c.expr)
			assert.Zero(t, got)
			continue
		}
		require.NoError(t, err, c.expr)
		assert.Equal(t, c.want, got.Format(time.RFC3339))
	}
	_, err := schedule.ParseCron("0 0 30 2 *", "", "", "")
	require.ErrorIs(t, err, schedule.ErrNever)
}

// Whatever comes in is refused or answered soon, with a later time.
func FuzzCron(f *testing.F) {
	for _, expr := range []string{"* * * * *", "0 0 29 2 1#5", "1-59/7 */3 L,15W jan-dec 5L,1#2", "@yearly", "0 9 30 12 *", "59 59 23 31 12 7"} {
		f.Add(expr, "Pacific/Apia", int64(1322697600), true, true)
		f.Add(expr, "", int64(0), false, false)
	}
	f.Fuzz(func(t *testing.T, expr, zone string, unix int64, all, skip bool) {
		if unix < 0 || unix > 4e9 {
			return
		}
		match, gap := schedule.DayMatchAny, schedule.GapRun
		if all {
			match = schedule.DayMatchAll
		}
		if skip {
			gap = schedule.GapSkip
		}
		begun := time.Now()
		c, err := schedule.ParseCron(expr, zone, match, gap)
		if err != nil {
			return
		}
		after := time.Unix(unix, 0)
		got, err := c.Next(after)
		require.Less(t, time.Since(begun), time.Second)
		if err != nil {
			require.ErrorIs(t, err, schedule.ErrNever)
			return
		}
		require.True(t, got.After(after))
	})
}
