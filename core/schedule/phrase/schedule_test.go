package phrase_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/schedule/phrase"
)

func TestReadBack(t *testing.T) {
	t.Parallel()
	berlin := zoneOf(t, "Europe/Berlin")
	for text, want := range map[string]string{
		"every weekday at 9am": "every weekday at 09:00 in Europe/Berlin; next: Fri 2026-11-27 09:00 CET, Mon 2026-11-30 09:00 CET, Tue 2026-12-01 09:00 CET, " +
			"Wed 2026-12-02 09:00 CET, Thu 2026-12-03 09:00 CET",
		"every day at 9am in America/New_York": "every day at 09:00 in America/New_York; next: Thu 2026-11-26 09:00 EST, Fri 2026-11-27 09:00 EST, " +
			"Sat 2026-11-28 09:00 EST, Sun 2026-11-29 09:00 EST, Mon 2026-11-30 09:00 EST",
		"every 90 seconds": "every 1 minute 30 seconds; next: Thu 2026-11-26 10:01:30 CET, Thu 2026-11-26 10:03 CET, Thu 2026-11-26 10:04:30 CET, " +
			"Thu 2026-11-26 10:06 CET, Thu 2026-11-26 10:07:30 CET",
		"in 2 hours":      "in 2 hours; next: Thu 2026-11-26 12:00 CET",
		"tomorrow at 8am": "2026-11-27 08:00 in Europe/Berlin; next: Fri 2026-11-27 08:00 CET",
		"by hand":         "by hand",
	} {
		s, err := phrase.Parse(text, then, berlin)
		require.NoError(t, err)
		got, err := phrase.ReadBack(s, then, berlin)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := phrase.ReadBack(phrase.Schedule{Cron: "0 9 * *"}, then, berlin)
	require.Error(t, err)
	_, err = phrase.ReadBack(phrase.Schedule{Cron: "0 9 * * *", Zone: "Mars/Phobos"}, then, berlin)
	require.Error(t, err)
}

func TestNextEnds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    phrase.Schedule
		n    int
		want int
	}{
		{phrase.Schedule{At: then}, 5, 0},
		{phrase.Schedule{At: then.Add(1)}, 5, 1},
		{phrase.Schedule{}, 5, 1},
		{phrase.Schedule{Every: time.Hour, Delay: time.Minute}, 3, 3},
		{phrase.Schedule{Every: 250 * 365 * 24 * time.Hour}, 50, 31},
		{phrase.Schedule{Cron: "0 9 * * *"}, 0, 0},
		{phrase.Schedule{Cron: "0 9 * * *"}, -1, 0},
		{phrase.Schedule{Cron: "0 9 29 2 *"}, 3, 3},
	} {
		times, err := phrase.Next(c.s, then, nil, c.n)
		require.NoError(t, err)
		assert.Len(t, times, c.want, "%+v", c.s)
	}
}

// Without a zone, what depends on one is asked for it, and nothing else is.
func TestZoneIsAskedFor(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"every 5 minutes", "in 2 hours", "now", "by hand", "every day at 9am in Asia/Tokyo", "tomorrow at 9am UTC", "0 9 * * * in the agent's zone"} {
		_, err := phrase.Parse(text, then, nil)
		require.NoError(t, err, text)
	}
	for _, text := range []string{"every day at 9am", "tomorrow at 8am", "every weekday at 9", "0 9 * * *", "every 5 minutes on weekdays"} {
		_, err := phrase.Parse(text, then, nil)
		ambiguous, ok := errors.AsType[*phrase.AmbiguousError](err)
		require.True(t, ok, text)
		want := "In which time zone?"
		if text == "every weekday at 9" { // it is asked first, and the answers name a zone
			want = "9 in the morning or in the evening?"
		}
		assert.Equal(t, want, ambiguous.Question)
		for _, answer := range ambiguous.Answers {
			_, err := phrase.Parse(answer, then, nil)
			require.NoError(t, err, answer)
		}
	}
	_, err := phrase.Parse("every flurb", then, nil)
	require.ErrorContains(t, err, `"flurb" is not understood here; understood are phrases such as "every 5 minutes"`)
}

func TestErrors(t *testing.T) {
	t.Parallel()
	berlin := zoneOf(t, "Europe/Berlin")
	for text, want := range map[string]string{
		"every weekday at 9":         `9 in the morning or in the evening? Say "every weekday at 09:00" or "every weekday at 21:00"`,
		"every":                      "the phrase is not complete; understood are",
		"every 5 minutes\xff":        "the phrase is not valid UTF-8",
		strings.Repeat("every ", 90): "the phrase is 540 bytes long: the limit is 512",
		"":                           "the phrase is not complete",
	} {
		_, err := phrase.Parse(text, then, berlin)
		require.ErrorContains(t, err, want)
	}
}
