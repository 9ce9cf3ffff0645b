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
