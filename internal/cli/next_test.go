package cli_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSubmitCron(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ok(t, "submit", "--agent", "ada", "--kind", "note", "--id", "n", "--cron", "30 2 * * 1-5", "--zone", "Europe/Berlin")
	info := parse[map[string]any](t, w.ok(t, "status", "ada", "n", "--json"))
	assert.Equal(t, "30 2 * * 1-5", info["cron"])
	assert.Equal(t, "Europe/Berlin", info["zone"])
	due, ok := info["due_at"].(string)
	require.True(t, ok)
	expected := parse[struct{ Times []string }](t, w.ok(t, "next", "30 2 * * 1-5", "--zone", "Europe/Berlin", "-n", "1", "--json"))
	at, err := time.Parse(time.RFC3339, expected.Times[0])
	require.NoError(t, err)
	assert.Equal(t, at.UTC().Format("2006-01-02T15:04:05.000Z"), due)
	assert.Contains(t, w.ok(t, "status", "ada", "n"), "30 2 * * 1-5 Europe/Berlin")
	oneLine(t, w.duly(t, "submit", "--agent", "ada", "--kind", "note", "--cron", "30 25 * * *"), 2, `the hour field "25"`)
}

func TestNext(t *testing.T) {
	t.Parallel()
	w := noRedis()
	out := w.ok(t, "next", "30 2 * * *", "--zone", "America/New_York", "--from", "2026-03-07T12:00:00Z", "-n", "2")
	assert.Equal(t, "2026-03-08T03:00:00-04:00  clocks changed by +1h0m0s\n2026-03-09T02:30:00-04:00\n", out)
	skipped := parse[map[string]any](t, w.ok(t, "next", "30 2 * * *", "--zone", "America/New_York",
		"--from", "2026-03-07T12:00:00Z", "-n", "1", "--gap", "skip", "--json"))
	assert.Equal(t, map[string]any{
		"times": []any{"2026-03-09T02:30:00-04:00"}, "changes": []any{map[string]any{"before": "2026-03-09T02:30:00-04:00", "shift": "1h0m0s"}},
	}, skipped)
	assert.Equal(t, "2026-01-02T12:00:00Z\n2026-01-04T00:00:00Z\n", w.ok(t, "next", "--every", "36h", "--from", "2026-01-01T00:00:00Z", "-n", "2"))
	assert.Equal(t, "2026-01-02T12:00:00Z\n", w.ok(t, "next", "--at", "2026-01-02T12:00:00Z", "--from", "2026-01-01T00:00:00Z"))
	all := w.ok(t, "next", "0 0 13 * 5", "--from", "2026-01-31T00:00:00Z", "-n", "1", "--day-match", "all")
	assert.Equal(t, "2026-02-13T00:00:00Z\n", all)
	assert.NotEmpty(t, w.ok(t, "next", "@daily"))
	assert.Equal(t, "9999-12-31T00:00:00Z\n", w.ok(t, "next", "@daily", "--from", "9999-12-30T00:00:00Z"), "the end of time")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"next", "61 * * * *"}, `duly: next: cron "61 * * * *": the minute field "61": "61" must be from 0 to 59; see duly next --help`},
		{[]string{"next", "0 0 30 2 *"}, "can never fire"},
		{[]string{"next", "* * * * *", "--zone", "Mars/Base"}, `--zone "Mars/Base" is not known`},
		{[]string{"next", "* * * * *", "--from", "tomorrow"}, "--from must be a time"},
		{[]string{"next", "* * * * *", "-n", "0"}, "--count must be from 1"},
		{[]string{"next", "* * * * *", "--gap", "jump"}, "--gap must be"},
		{[]string{"next", "* * * * *", "--from", "9999-12-31T23:59:59Z"}, "does not fire after 9999-12-31T23:59:59Z: never"},
		{[]string{"next", "CRON_TZ=Europe/Berlin 0 9 * * *"}, `write "0 9 * * *" as cron and "Europe/Berlin" as zone`},
		{[]string{"next", "0 0 LW * *"}, "write L for the last day of the month"},
		{[]string{"next"}, "cron is required, or every, or at"},
		{[]string{"next", "@daily", "--every", "1h"}, "cron excludes delay and every"},
		{[]string{"next", "--every", "1ms"}, "--every must be between 1s"},
		{[]string{"next", "--every", "1h", "--zone", "UTC"}, "--zone needs cron"},
		{[]string{"next", "@daily", "--from", "1969-01-01T00:00:00Z"}, "--from must be a time of the years 1970 to 9999"},
	} {
		oneLine(t, w.duly(t, c.args...), 2, c.want)
	}
}

// A phrase becomes a schedule, and is read back with its next times.
func TestSubmitWhen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	submit := func(args ...string) []string {
		return append([]string{"submit", "--agent", "ada", "--kind", "note"}, args...)
	}
	out := w.ok(t, submit("--id", "n", "--when", "every weekday at 9am in Europe/Berlin")...)
	assert.Regexp(t, `every weekday at 09:00 in Europe/Berlin; next: (\w{3} \d{4}-\d\d-\d\d 09:00 CES?T(, )?){5}\n$`, out)
	info := parse[map[string]any](t, w.ok(t, "status", "ada", "n", "--json"))
	assert.Equal(t, "0 9 * * 1-5", info["cron"])
	assert.Equal(t, "Europe/Berlin", info["zone"])
	assert.Contains(t, w.ok(t, submit("--id", "m", "--when", "every 90 minutes")...), "every 90 minutes; next: ")
	assert.Regexp(t, `\d{4}-\d\d-\d\d 08:00 in Asia/Tokyo; next: \w{3} \d{4}-\d\d-\d\d 08:00 JST\n$`, w.ok(t, submit("--id", "o", "--when", "tomorrow at 8am", "--zone", "Asia/Tokyo")...))
	assert.Contains(t, w.ok(t, submit("--id", "p", "--when", "by hand")...), "by hand\n")
	assert.NotContains(t, w.ok(t, submit("--id", "q", "--when", "every hour", "--json")...), "next:")
	oneLine(t, w.duly(t, submit("--when", "every day at 9am")...), 2, "--when is ambiguous: In which time zone?")
	oneLine(t, w.duly(t, submit("--when", "every day at 9 in UTC")...), 2, `Say "every day at 09:00 in UTC" or "every day at 21:00 in UTC"`)
	oneLine(t, w.duly(t, submit("--when", "every day at 9am", "--cron", "0 9 * * *")...), 2, "--when excludes cron")
	oneLine(t, w.duly(t, submit("--when", "every flurb")...), 2, `"flurb" is not understood here`)
	w.ok(t, "edit", "ada", "n", "--set", `{"when": "every monday at noon in UTC"}`)
	assert.Contains(t, w.ok(t, "status", "ada", "n"), "0 12 * * 1 UTC")
}

func TestNextOfAPhrase(t *testing.T) {
	t.Parallel()
	w := noRedis()
	from := []string{"--from", "2026-11-26T09:00:00Z", "-n", "2"}
	for text, want := range map[string]string{
		"every monday and thursday at 18:30 in Europe/Berlin": "2026-11-26T18:30:00+01:00\n2026-11-30T18:30:00+01:00\n",
		"every 36 hours":         "2026-11-27T21:00:00Z\n2026-11-29T09:00:00Z\n",
		"in 2 hours":             "2026-11-26T11:00:00Z\n",
		"tomorrow at 8am in UTC": "2026-11-27T08:00:00Z\n",
		"0 9 1 1 1":              "2027-01-01T09:00:00Z\n2027-01-04T09:00:00Z\n",
	} {
		args := append([]string{"next", text}, from...)
		if text == "0 9 1 1 1" {
			args = append(args, "--zone", "UTC")
		}
		assert.Equal(t, want, w.ok(t, args...), text)
	}
	oneLine(t, w.duly(t, "next", "every monday at 9am"), 2, "In which time zone?")
	oneLine(t, w.duly(t, "next", "by hand"), 2, "has no time")
	oneLine(t, w.duly(t, "next", "every flurb", "--zone", "UTC"), 2, `"flurb" is not understood here`)
}
