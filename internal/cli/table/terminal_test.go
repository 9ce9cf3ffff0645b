package table_test

// What fits into a terminal, and how.

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

const (
	longID   = "tenant-000042/customer-771/nightly-summary-of-everything"
	cjk      = "東京都の朝の要約を毎日作る仕事"
	accented = "re\u0301sume\u0301-du-soir-et-du-matin-toute-la-journe\u0301e"
)

// A table is as wide as the terminal at most: names lose their middle, texts their end, and short columns nothing.
func TestTablesFit(t *testing.T) {
	t.Parallel()
	write := func(width int) string {
		w := &table.Page{Width: width}
		tab := table.New(w, "AGENT", "ID", "STATUS", "RUNS", "LAST ERROR")
		tab.Row("ada", longID, "waiting", "12", strings.Repeat("broken ", 30))
		tab.Row(cjk, accented, "in_progress", "1", cjk+cjk+cjk)
		tab.Row(cjk+cjk, "x", "completed", "1234567", "")
		tab.End()
		return w.String()
	}
	for _, width := range []int{60, 80, 81, 120, 200} {
		for line := range strings.Lines(write(width)) {
			line = strings.TrimSuffix(line, "\n")
			assert.LessOrEqual(t, table.Width(line), width, line)
		}
	}
	narrow := write(80)
	assert.Contains(t, narrow, "in_progress")
	assert.Contains(t, narrow, "…")
	assert.Contains(t, narrow, "thing ", "the end of an id is kept")
	whole := write(0)
	assert.NotContains(t, whole, "…")
	for _, text := range []string{longID, cjk + cjk + cjk, accented, strings.Repeat("broken ", 30)} {
		assert.Contains(t, whole, text)
	}
	// A column begins at the same place in each line, by what a terminal shows.
	var at []int
	for line := range strings.Lines(whole) {
		for _, status := range []string{"STATUS", "waiting", "in_progress", "completed"} {
			if before, _, ok := strings.Cut(line, status); ok {
				at = append(at, table.Width(before))
			}
		}
	}
	assert.Equal(t, []int{at[0], at[0], at[0], at[0]}, at)
}

func TestCutsKeepWholeCharacters(t *testing.T) {
	t.Parallel()
	for _, text := range []string{longID, cjk, accented, "a", "", "🇩🇪🇫🇷🇯🇵👩‍🚀", strings.Repeat("é", 50)} {
		for width := range 30 {
			for _, cut := range []string{table.Cut(text, width), table.Middle(text, width)} {
				assert.LessOrEqual(t, table.Width(cut), max(width, 1), "%q to %d", text, width)
				assert.NotContains(t, cut, "\ufffd")
				if table.Width(text) <= width {
					assert.Equal(t, text, cut)
				}
			}
		}
	}
	assert.Equal(t, "tenan…hing", table.Middle(longID, 10))
	assert.Equal(t, "tenant-00…", table.Cut(longID, 10))
}

// A person reads distances; a pipe, and a cell that is no time of the store, keep what is written.
func TestTimesAreDistances(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for after, want := range map[time.Duration]string{
		0: "now", 42 * time.Second: "in 42s", -90 * time.Second: "1m30s ago", 3*time.Hour + 5*time.Minute: "in 3h5m", 52 * time.Hour: "in 2d4h", -400 * 24 * time.Hour: "400d ago",
	} {
		assert.Equal(t, want, table.Distance(now.Add(after), now))
	}
	const at = "2026-01-02T04:04:05.000Z"
	for _, page := range []*table.Page{{}, {Now: now}} {
		tab := table.New(page, "ID", "DUE")
		tab.Row(at, at)
		tab.End()
		pairs := table.New(page)
		pairs.Row("id", at)
		pairs.Row("due", at)
		pairs.End()
		if page.Now.IsZero() {
			assert.NotContains(t, page.String(), "in 1h")
			continue
		}
		assert.Contains(t, page.String(), at+"  in 1h0m\n")
		assert.Contains(t, page.String(), "id   "+at+"\n")
		assert.Contains(t, page.String(), "due  "+at+" (in 1h0m)\n")
	}
}

func TestARedrawnPageIsNoLongerThanTheTerminal(t *testing.T) {
	t.Parallel()
	page := strings.Repeat("line\n", 50)
	for _, lines := range []int{0, 2, 10, 100} {
		drawn := table.Redraw(page, lines)
		assert.True(t, strings.HasPrefix(drawn, "\x1b[H") && strings.HasSuffix(drawn, "\x1b[J"))
		if lines > 0 {
			assert.Less(t, strings.Count(drawn, "\n"), max(lines, 2))
		}
	}
	assert.Equal(t, "\x1b[Ha\x1b[K\n\x1b[J", table.Redraw("a\n", 24))
}
