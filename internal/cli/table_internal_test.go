package cli

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Colours change nothing about the columns, and are not there but on a terminal.
func TestColoursKeepTheColumns(t *testing.T) {
	t.Parallel()
	write := func(colours bool) string {
		w := &page{colours: colours}
		table := newTable(w, "ID", "STATUS", "RUNS")
		table.row("a", "completed", "1")
		table.row("bb", "failed", "2")
		table.row("\xff\x1b[0m", "waiting", "3")
		table.end()
		return w.String()
	}
	bare, painted := write(false), write(true)
	assert.NotContains(t, bare, "\x1b")
	assert.Contains(t, painted, "\x1b[32mcompleted\x1b[0m")
	assert.Equal(t, bare, regexp.MustCompile("\x1b\\[[0-9]+m").ReplaceAllString(painted, ""))
	assert.Equal(t, 4, strings.Count(bare, "\n"))
}
