package phrase_test

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/schedule/phrase"
)

// then is the time at which the printed schedules are read.
var then = time.Date(2026, 11, 26, 9, 0, 0, 0, time.UTC)

// Any schedule is printed as a phrase that is read as the same schedule, and fires at the same times.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	berlin := zoneOf(t, "Europe/Berlin")
	literally := 0
	const most = 800
	for seed := range uint64(most) {
		s := random(rand.New(rand.NewPCG(seed, 31)))
		if s.Cron != "" {
			if _, err := schedule.ParseCron(s.Cron, "", s.DayMatch, s.Gap); err != nil {
				continue // it never fires
			}
		}
		text := phrase.Print(s)
		back, err := phrase.Parse(text, then, berlin)
		require.NoError(t, err, "seed %d: %q of %+v", seed, text, s)
		require.True(t, s.Equal(back), "seed %d: %q of %+v is %+v", seed, text, s, back)
		sameTimes(t, s, back, fmt.Sprintf("seed %d: %q of %+v", seed, text, s))
		require.Equal(t, text, phrase.Print(back), "seed %d", seed)
		if strings.HasPrefix(text, "cron ") {
			literally++
		}
	}
	assert.Less(t, literally, most/2, "most schedules have words")
}

// sameTimes compares the next times of two schedules, by core's own evaluation, across changes of the clocks.
func sameTimes(t *testing.T, s, o phrase.Schedule, what string) {
	t.Helper()
	berlin := zoneOf(t, "Europe/Berlin")
	for _, after := range []time.Time{then, time.Date(2027, 3, 27, 12, 0, 0, 0, time.UTC), time.Date(2027, 10, 30, 12, 0, 0, 0, time.UTC)} {
		one, err := phrase.Next(s, after, berlin, 40)
		require.NoError(t, err, what)
		other, err := phrase.Next(o, after, berlin, 40)
		require.NoError(t, err, what)
		require.Len(t, other, len(one), what)
		for i := range one {
			require.True(t, one[i].Equal(other[i]), "%s: %s and %s", what, one[i], other[i])
		}
	}
}

// random is a schedule of any sort.
func random(r *rand.Rand) phrase.Schedule {
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	switch r.IntN(8) {
	case 0:
		return phrase.Schedule{
			Every: time.Duration(1+r.IntN(10000)) * []time.Duration{time.Second, time.Minute, time.Hour, 1500 * time.Millisecond}[r.IntN(4)], FromStart: r.IntN(2) == 0,
			Delay: time.Duration(r.IntN(2)*r.IntN(5000)) * time.Second,
		}
	case 1:
		return phrase.Schedule{Delay: time.Duration(r.IntN(1e6)) * []time.Duration{time.Millisecond, time.Second, time.Minute}[r.IntN(3)]}
	case 2:
		at := then.Add(time.Duration(1+r.IntN(1e6)) * []time.Duration{time.Minute, time.Second, time.Millisecond}[r.IntN(3)])
		zone, err := schedule.LoadZone(pick("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"))
		if err != nil || r.IntN(5) == 0 {
			zone = time.FixedZone("", 3600)
		}
		return phrase.Schedule{At: at.In(zone)}
	case 3:
		return phrase.Schedule{Manual: r.IntN(2) == 0}
	}
	s := phrase.Schedule{
		Zone: pick("", "", "UTC", "Europe/Berlin", "America/New_York", phrase.ZoneOfAgent), DayMatch: schedule.DayMatch(pick("", "any", "all")),
		Gap: schedule.Gap(pick("", "run", "skip")),
	}
	field := func(low, high int, special ...string) string {
		n := func() int { return low + r.IntN(high-low+1) }
		a, b := n(), n()
		common := []string{
			"*", "*", strconv.Itoa(n()), strconv.Itoa(n()), fmt.Sprintf("%d,%d", n(), n()), fmt.Sprintf("%d-%d", min(a, b), max(a, b)), "*/" + strconv.Itoa(1+r.IntN(20)),
			fmt.Sprintf("%d-%d/%d", min(a, b), max(a, b), 1+r.IntN(5)), fmt.Sprintf("%d/%d", a, 1+r.IntN(9)),
		}
		return pick(append(common, special...)...)
	}
	if high := r.IntN(3); high > 0 { // most real expressions have plain times
		s.Cron = pick("0", "30", "*/15", "15,45", strconv.Itoa(r.IntN(60))) + " " + pick("9", "*", "9-17", "0", "9,17", "*/2", "8-20/4", "22-23,0-5") + " " + pick("*", "*", "1", "1,15", "L", "31", "15W") + " " +
			pick("*", "*", "1", "1,4,7,10", "JAN-MAR") + " " + pick("*", "*", "1-5", "MON", "0,6", "7", "1#1", "5L", "2#2,2#4", "1-6")
		return s
	}
	s.Cron = field(0, 59) + " " + field(0, 23) + " " + field(1, 31, "L", "15W", "1W", "1-31/2", "?") + " " + field(1, 12, "JAN", "mar-may") + " " + field(0, 6, "MON-FRI", "5#3", "0L", "5-7", "7", "?")
	if r.IntN(6) == 0 {
		s.Cron = field(0, 59) + " " + s.Cron
	}
	return s
}

// What is printed for people to read.
func TestPrint(t *testing.T) {
	t.Parallel()
	for want, s := range map[string]phrase.Schedule{
		"every weekday at 09:00 in Europe/Berlin":                 {Cron: "0 9 * * MON-FRI", Zone: "Europe/Berlin"},
		"every day at 00:00":                                      {Cron: "@daily"},
		"every 15 minutes from 09:00 through 16:45 on mondays":    {Cron: "*/15 9-16 * * 1"},
		"every hour on the hour in the agent's zone":              {Cron: "0 * * * *", Zone: phrase.ZoneOfAgent},
		"on the last friday of each month at 17:00":               {Cron: "0 17 * * 5L"},
		"cron 0 9 1-7 * 1":                                        {Cron: "0 9 1-7 * 1"},
		"cron 0 9 31 * *":                                         {Cron: "0 9 31 * *"},
		"on friday the 13th of each month at 09:00":               {Cron: "0 9 13 * 5", DayMatch: schedule.DayMatchAll},
		"every day at 02:30, skipping times that the clocks skip": {Cron: "30 2 * * *", Gap: schedule.GapSkip},
		"every 90 minutes, counted from the start":                {Every: 90 * time.Minute, FromStart: true},
		"in 1 hour, then every 24 hours":                          {Every: 24 * time.Hour, Delay: time.Hour},
		"every 1.5s":                                              {Every: 1500 * time.Millisecond},
		"in 2 weeks":                                              {Delay: 14 * 24 * time.Hour},
		"2026-12-24 18:00 in UTC":                                 {At: time.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC)},
		"2026-12-24T18:00:00+01:00":                               {At: time.Date(2026, 12, 24, 18, 0, 0, 0, time.FixedZone("", 3600))},
		"now":                                                     {},
		"by hand":                                                 {Manual: true},
		"cron not an expression":                                  {Cron: "not an expression"},
	} {
		assert.Equal(t, want, phrase.Print(s))
	}
}

// FuzzParse looks for phrases that are a panic, that are read back as something else, or whose questions have answers with several meanings.
func FuzzParse(f *testing.F) {
	for _, c := range corpus(f) {
		f.Add(c.phrase)
	}
	berlin := zoneOf(f, "Europe/Berlin")
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = phrase.Parse(text, then, nil)
		s, err := phrase.Parse(text, then, berlin)
		if ambiguous, ok := err.(*phrase.AmbiguousError); ok { //nolint:errorlint // nothing wraps it
			require.NotEmpty(t, ambiguous.Answers)
			for _, answer := range ambiguous.Answers {
				_, err := phrase.Parse(answer, then, berlin)
				require.NoError(t, err, answer)
			}
		}
		if err != nil {
			return
		}
		printed := phrase.Print(s)
		back, err := phrase.Parse(printed, then, berlin)
		if !s.At.IsZero() && !s.At.After(then) {
			return // exact times may have passed
		}
		require.NoError(t, err, printed)
		require.True(t, s.Equal(back), "%q: %+v and %+v", printed, s, back)
	})
}
