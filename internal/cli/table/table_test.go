package table_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// Colours change nothing about the columns, and are not there but on a terminal.
func TestColoursKeepTheColumns(t *testing.T) {
	t.Parallel()
	write := func(colours bool) string {
		w := &table.Page{}
		if colours {
			w.Colours = map[string]string{"completed": "32", "failed": "31"}
		}
		tab := table.New(w, "ID", "STATUS", "RUNS")
		tab.Row("a", "completed", "1")
		tab.Row("bb", "failed", "2")
		tab.Row("\xff\x1b[0m", "waiting", "3")
		tab.End()
		return w.String()
	}
	bare, painted := write(false), write(true)
	assert.NotContains(t, bare, "\x1b")
	assert.Contains(t, painted, "\x1b[32mcompleted\x1b[0m")
	assert.Equal(t, bare, regexp.MustCompile("\x1b\\[[0-9]+m").ReplaceAllString(painted, ""))
	assert.Equal(t, 4, strings.Count(bare, "\n"))
}

// A narrow terminal does without the columns that are wanted least, says which, and cuts no command.
func TestANarrowTableGivesUpColumns(t *testing.T) {
	t.Parallel()
	write := func(width int) string {
		w := &table.Page{Width: width}
		tab := table.New(w, "AGENT", "ID", "KIND", "SCHEDULE", "STATUS", "LAST RUN", "RESULT", "NEXT RUN", "RUNS", "ERRORS", "SKIPS")
		tab.Row("ada", "nightly-summary", "digest", "0 1 * * * Europe/Berlin", "IDLE", "3h5m ago", "success", "in 20h55m", "123", "4", "0")
		tab.End()
		return w.String()
	}
	assert.NotContains(t, write(0), "left out")
	assert.NotContains(t, write(150), "left out")
	assert.Contains(t, write(110), "left out: SKIPS; --wide shows all\n")
	narrow := write(80)
	assert.Contains(t, narrow, "left out: SKIPS, ERRORS, RUNS, RESULT")
	for _, kept := range []string{"AGENT", "nightly-summary", "digest", "IDLE", "in 20h55m"} {
		assert.Contains(t, narrow, kept)
	}
	for _, width := range []int{60, 80, 110} {
		for line := range strings.Lines(write(width)) {
			assert.LessOrEqual(t, table.Width(strings.TrimSuffix(line, "\n")), width, line)
		}
	}
}

// A command to be typed is whole at any width: behind its row, or below it.
func TestCommandsAreNeverCut(t *testing.T) {
	t.Parallel()
	const command = "duly resume 'tenant-000042/customer-771' nightly-summary-of-everything-that-was-said"
	for _, width := range []int{0, 30, 60, 80, 100, 140, 200} {
		w := &table.Page{Width: width}
		tab := table.New(w, "PAUSED", "SINCE", "UNTIL", "BY", "REASON", "TO RESUME")
		tab.Row("task nightly-summary-of-everything-that-was-said", "3h5m ago", "-", "ops", strings.Repeat("a move ", 20), command)
		tab.Row("kind note", "3h5m ago", "-", "ops", "", "duly resume --kind note")
		tab.End()
		assert.Contains(t, w.String(), command, width)
		assert.Contains(t, w.String(), "duly resume --kind note\n", width)
		for line := range strings.Lines(w.String()) {
			if line = strings.TrimSuffix(line, "\n"); width > 0 && !strings.Contains(line, command) {
				assert.LessOrEqual(t, table.Width(line), width, line)
			}
		}
	}
}
