package schedule_test

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/schedule"
)

// hours reads "22:00-07:00 mon-fri,sun; 12:00-13:00".
func hours(text string) []schedule.QuietHours {
	var out []schedule.QuietHours
	for part := range strings.SplitSeq(text, ";") {
		span, days, some := strings.Cut(strings.TrimSpace(part), " ")
		from, to, _ := strings.Cut(span, "-")
		h := schedule.QuietHours{From: from, To: to}
		if some {
			h.Days = strings.Split(days, ",")
		}
		out = append(out, h)
	}
	return out
}

func TestQuietUntil(t *testing.T) {
	t.Parallel()
	const ny = "America/New_York"
	for _, c := range []struct{ name, hours, zone, at, until string }{
		{"not quiet", "22:00-07:00", "", "2026-01-01T12:00:00Z", "2026-01-01T12:00:00Z"},
		{"its first moment", "22:00-07:00", "", "2026-01-01T22:00:00Z", "2026-01-02T07:00:00Z"},
		{"just before", "22:00-07:00", "", "2026-01-01T21:59:59.999Z", "2026-01-01T21:59:59.999Z"},
		{"its last moment", "22:00-07:00", "", "2026-01-01T06:59:59.999Z", "2026-01-01T07:00:00Z"},
		{"its end", "22:00-07:00", "", "2026-01-01T07:00:00Z", "2026-01-01T07:00:00Z"},
		{"over the end of the week", "22:00-07:00 sun", "", "2026-01-04T23:00:00Z", "2026-01-05T07:00:00Z"},
		{"the night belongs to the day on which it begins", "22:00-07:00 sun", "", "2026-01-04T06:00:00Z", "2026-01-04T06:00:00Z"},
		{"several that touch", "22:00-24:00; 00:00-07:00", "", "2026-01-01T23:00:00Z", "2026-01-02T07:00:00Z"},
		{"several that overlap", "20:00-23:00; 22:00-01:00", "", "2026-01-01T20:00:00Z", "2026-01-02T01:00:00Z"},
		{"one within another", "20:00-08:00; 22:00-23:00", "", "2026-01-01T22:30:00Z", "2026-01-02T08:00:00Z"},
		{"whole days", "00:00-24:00 sat-sun", "", "2026-01-03T12:00:00Z", "2026-01-05T00:00:00Z"},
		{"a day by two equal times", "09:00-09:00 sat", "", "2026-01-04T08:59:00Z", "2026-01-04T09:00:00Z"},
		{"a range of days over the week's end", "00:00-24:00 fri-mon", "", "2026-01-02T00:00:00Z", "2026-01-06T00:00:00Z"},
		{"one minute of the week is left", "00:00-24:00 mon-sat; 00:01-24:00 sun", "", "2026-01-05T00:00:00Z", "2026-01-11T00:00:00Z"},
		{"a zone", "22:00-07:00", ny, "2026-01-01T23:30:00-05:00", "2026-01-02T07:00:00-05:00"},
		{"a gap inside", "22:00-07:00", ny, "2026-03-07T23:00:00-05:00", "2026-03-08T07:00:00-04:00"},
		{"an end in a gap", "22:00-02:30", ny, "2026-03-07T23:00:00-05:00", "2026-03-08T03:00:00-04:00"},
		{"a begin in a gap", "02:30-05:00", ny, "2026-03-08T03:00:00-04:00", "2026-03-08T05:00:00-04:00"},
		{"all of it in a gap", "02:10-02:50", ny, "2026-03-08T01:59:59-05:00", "2026-03-08T01:59:59-05:00"},
		{"an end where a gap begins", "22:00-02:00", ny, "2026-03-08T01:30:00-05:00", "2026-03-08T03:00:00-04:00"},
		{"a begin where a gap ends", "03:00-04:00", ny, "2026-03-08T03:00:00-04:00", "2026-03-08T04:00:00-04:00"},
		{"an overlap inside", "22:00-07:00", ny, "2026-10-31T23:00:00-04:00", "2026-11-01T07:00:00-05:00"},
		{"an end in an overlap, first time", "22:00-01:30", ny, "2026-11-01T01:00:00-04:00", "2026-11-01T01:30:00-04:00"},
		{"an end in an overlap, second time", "22:00-01:30", ny, "2026-11-01T01:00:00-05:00", "2026-11-01T01:30:00-05:00"},
		{"an end where an overlap ends", "22:00-02:00", ny, "2026-11-01T01:30:00-04:00", "2026-11-01T02:00:00-05:00"},
		{"a day that does not exist", "00:00-24:00 thu,sat", "Pacific/Apia", "2011-12-29T12:00:00-10:00", "2012-01-01T00:00:00+14:00"},
	} {
		q, err := schedule.ParseQuiet(hours(c.hours), c.zone)
		require.NoError(t, err, c.name)
		at, err := time.Parse(time.RFC3339, c.at)
		require.NoError(t, err)
		until, err := time.Parse(time.RFC3339, c.until)
		require.NoError(t, err)
		assert.True(t, until.Equal(q.Until(at)), "%s: %s until %s", c.name, q.Until(at).Format(time.RFC3339Nano), c.until)
	}
	var none *schedule.Quiet
	now := time.Now()
	assert.Equal(t, now, none.Until(now), "no quiet hours")
}

func TestQuietRefuses(t *testing.T) {
	t.Parallel()
	many := make([]schedule.QuietHours, schedule.MostQuiet+1)
	for _, c := range []struct {
		hours []schedule.QuietHours
		zone  string
		says  string
	}{
		{hours("22:00-07:00"), "Mars/Olympus", `zone "Mars/Olympus" is not known`},
		{hours("22:00-07:00"), "Local", `zone "Local" is another one on each machine`},
		{hours("22-07:00"), "", `quiet[0].from must be a time of day from 00:00 to 23:59, such as 07:00, not "22"`},
		{hours("12:00-13:00; 24:00-07:00"), "", `quiet[1].from must be a time of day`},
		{hours("22:00-24:01"), "", `quiet[0].to must be a time of day from 00:00 to 24:00`},
		{hours("22:00-7:00"), "", `quiet[0].to`},
		{hours("22:60-07:00"), "", `quiet[0].from`},
		{hours("+2:00-07:00"), "", `quiet[0].from`},
		{hours("22:00-07:00 monday"), "", `quiet[0].days must have days such as "mon" or "sat-sun", not "monday"`},
		{hours("22:00-07:00 mon-"), "", `quiet[0].days`},
		{hours("22:00-07:00 mon,mon,mon,mon,mon,mon,mon,mon"), "", `quiet[0].days has 8 entries`},
		{hours("00:00-24:00"), "", "quiet leaves no time at which tasks may start"},
		{hours("07:00-07:00"), "", "quiet leaves no time"},
		{hours("00:00-12:00; 12:00-24:00"), "", "quiet leaves no time"},
		{many, "", "quiet has 51 entries: the limit is 50"},
	} {
		_, err := schedule.ParseQuiet(c.hours, c.zone)
		var parse *schedule.ParseError
		require.ErrorAs(t, err, &parse, "%v", c.hours)
		assert.Contains(t, err.Error(), c.says)
	}
}

// quietOracle has for each minute of each weekday whether it is quiet, by looking at each of the hours alone.
func quietOracle(all []schedule.QuietHours) (quiet [7][24 * 60]bool) {
	names := [7]string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
	for _, h := range all {
		var from, to [2]int
		_, _ = fmt.Sscanf(h.From, "%d:%d", &from[0], &from[1])
		_, _ = fmt.Sscanf(h.To, "%d:%d", &to[0], &to[1])
		for day := range 7 {
			begins := len(h.Days) == 0
			for _, d := range h.Days {
				first, last, ranged := strings.Cut(d, "-")
				for k, within := slices.Index(names[:], first), true; within; k++ {
					begins = begins || k%7 == day
					within = ranged && names[k%7] != last
				}
			}
			if !begins {
				continue
			}
			// Minute by minute, as a clock on the wall goes: until it shows the end.
			at, on := 60*from[0]+from[1], day
			for range 24 * 60 {
				quiet[on][at] = true
				if at++; at == 24*60 {
					at, on = 0, (on+1)%7
				}
				if at == (60*to[0]+to[1])%(24*60) {
					break
				}
			}
		}
	}
	return quiet
}

var quietSets = []string{
	"22:00-07:00", "00:00-24:00 sat-sun; 20:00-08:00", "02:30-03:30", "01:15-01:45; 02:00-02:01", "23:00-01:30 fri-mon; 12:00-13:00 wed",
	"00:00-24:00 mon-sat; 00:01-24:00 sun", "09:00-09:00 tue; 03:00-05:00",
}

// checkQuiet compares Until with a look at each minute of a time.
func checkQuiet(t *testing.T, zone string, set []schedule.QuietHours, from, to time.Time) (minutes int) {
	t.Helper()
	q, err := schedule.ParseQuiet(set, zone)
	require.NoError(t, err)
	location, err := time.LoadLocation(zone)
	require.NoError(t, err)
	until, oracle := from, quietOracle(set)
	for at := from; at.Before(to); at = at.Add(time.Minute) {
		minutes++
		wall := at.In(location)
		hour, minute, _ := wall.Clock()
		quiet := oracle[wall.Weekday()][60*hour+minute]
		switch {
		case quiet && !at.Before(until): // it begins
			if until = q.Until(at); !until.After(at) {
				require.FailNow(t, "it is quiet", "%v in %s at %s", set, zone, at)
			}
		case quiet != at.Before(until) || !quiet && minutes%5 == 0 && !q.Until(at).Equal(at):
			require.FailNow(t, "it ends at another time", "%v in %s at %s, until %s", set, zone, at, until)
		case quiet && minutes%97 == 0 && !q.Until(at.Add(17*time.Second)).Equal(until):
			require.FailNow(t, "it ends at another time seen from within", "%v in %s at %s, until %s", set, zone, at, until)
		}
	}
	return minutes
}

// TestQuietAgainstTheOracle looks at every minute around changes of offset of some zones; with DULY_CRON_CHECKS, as `make
// cron-nightly` sets it, at every minute from 2000 to 2037 in all zones.
func TestQuietAgainstTheOracle(t *testing.T) {
	t.Parallel()
	if os.Getenv("DULY_CRON_CHECKS") != "" {
		everyMinute(t)
		return
	}
	minutes := 0
	for i, zone := range []string{
		"America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca", "Antarctica/Troll", "Pacific/Apia", "America/Sao_Paulo", "Asia/Gaza",
	} {
		location, err := time.LoadLocation(zone)
		require.NoError(t, err)
		at := time.Date(2008+i, 1, 1, 0, 0, 0, 0, time.UTC)
		for k, set := range quietSets {
			if _, change := at.In(location).ZoneBounds(); !change.IsZero() && k%2 == 0 {
				at = change
			}
			from := at.Add(-36 * time.Hour).Truncate(time.Minute)
			minutes += checkQuiet(t, zone, hours(set), from, from.Add(72*time.Hour))
		}
	}
	t.Logf("%d minutes compared", minutes)
}

// everyMinute is the whole comparison. Zones with the same rules are looked at once, each with quiet hours of its own.
func everyMinute(t *testing.T) {
	t.Helper()
	seen := map[uint64]bool{}
	for i, zone := range zones(t) {
		location, err := time.LoadLocation(zone)
		require.NoError(t, err)
		rules := fnv.New64a()
		for at := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).In(location); at.Year() < 2038; {
			_, offset := at.Zone()
			_, _ = fmt.Fprintln(rules, at.Unix(), offset)
			if _, at = at.ZoneBounds(); at.IsZero() {
				break
			}
		}
		if seen[rules.Sum64()] {
			continue
		}
		seen[rules.Sum64()] = true
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			checkQuiet(t, zone, hours(quietSets[i%len(quietSets)]), time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2038, 1, 1, 0, 0, 0, 0, time.UTC))
		})
	}
	t.Logf("%d sets of rules", len(seen))
}

// FuzzQuiet: whatever is accepted ends, in bounded time, at a time that is not quiet, and nothing between is not.
func FuzzQuiet(f *testing.F) {
	f.Add("22:00", "07:00", "mon", "Europe/Berlin", int64(1_700_000_000), int64(1))
	f.Add("00:00", "24:00", "sat-sun", "Pacific/Apia", int64(1_325_200_000), int64(7))
	f.Fuzz(func(t *testing.T, from, to, days, zone string, at, seed int64) {
		set := []schedule.QuietHours{{From: from, To: to, Days: []string{days}}, hours(quietSets[int(uint64(seed)%uint64(len(quietSets)))])[0]}
		q, err := schedule.ParseQuiet(set, zone)
		if err != nil {
			var parse *schedule.ParseError
			require.ErrorAs(t, err, &parse)
			return
		}
		begin := time.Unix(at%4_000_000_000, 0)
		end := q.Until(begin)
		require.False(t, end.Before(begin))
		require.True(t, q.Until(end).Equal(end))
		require.Less(t, end.Sub(begin), 3*7*24*time.Hour)
		if gap := end.Sub(begin); gap > 0 {
			within := begin.Add(time.Duration(rand.New(rand.NewPCG(uint64(seed), 1)).Int64N(int64(gap))))
			require.True(t, q.Until(within).Equal(end), "%s and %s", within, end)
		}
	})
}
