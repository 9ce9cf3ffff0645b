package main_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNext(t *testing.T) {
	t.Parallel()
	w := noRedis()
	out := w.ok(t, "next", "30 2 * * *", "--zone", "America/New_York", "--from", "2026-03-07T12:00:00Z", "-n", "2")
	assert.Equal(t, "2026-03-08T03:00:00-04:00\n2026-03-09T02:30:00-04:00\n", out)
	skipped := parse[map[string][]string](t, w.ok(t, "next", "30 2 * * *", "--zone", "America/New_York",
		"--from", "2026-03-07T12:00:00Z", "-n", "1", "--gap", "skip", "--json"))
	assert.Equal(t, map[string][]string{"times": {"2026-03-09T02:30:00-04:00"}}, skipped)
	all := w.ok(t, "next", "0 0 13 * 5", "--from", "2026-01-31T00:00:00Z", "-n", "1", "--day-match", "all")
	assert.Equal(t, "2026-02-13T00:00:00Z\n", all)
	assert.NotEmpty(t, w.ok(t, "next", "@daily"))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"next", "61 * * * *"}, `duly: next: cron "61 * * * *": the minute field "61": "61" must be from 0 to 59; see duly next --help`},
		{[]string{"next", "0 0 30 2 *"}, "can never fire"},
		{[]string{"next", "* * * * *", "--zone", "Mars/Base"}, `zone "Mars/Base" is not known`},
		{[]string{"next", "* * * * *", "--from", "tomorrow"}, "--from must be a time"},
		{[]string{"next", "* * * * *", "-n", "0"}, "-n must be from 1"},
		{[]string{"next", "* * * * *", "--gap", "jump"}, "gap must be"},
		{[]string{"next"}, "next"},
	} {
		oneLine(t, w.duly(t, c.args...), 2, c.want)
	}
}
