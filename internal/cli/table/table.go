// Package table writes answers for people: lines and columns that fit a terminal, with colours there, and nothing in them that a terminal could
// take for more than text.
package table

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// Page is an answer for people.
// A zero Page is one for a pipe or a file: it has no colours, and nothing is cut.
type Page struct {
	bytes.Buffer

	// Colours are the codes of cells that have a colour, by their text, if the answer goes to a terminal that shows colours.
	Colours map[string]string
	// Width is how many columns a terminal has, into which tables with a header are made to fit; zero for any number.
	Width int
	// If Now is set, tables show times relative to it; other output appends the relative time.
	Now time.Time
}

// Line writes a line; what a terminal could take for more than a text is escaped.
func (w *Page) Line(format string, args ...any) {
	_, _ = w.WriteString(Plain(fmt.Sprintf(format, args...)) + "\n")
}

// Text writes a sentence as Line does, and wraps it at the width of a terminal.
func (w *Page) Text(format string, args ...any) {
	_, _ = w.WriteString(Wrap(Plain(fmt.Sprintf(format, args...)), w.Width, "") + "\n")
}

// Table writes rows in columns. Make it with [New].
// The rows are kept until End, as the width of a column depends on all of them.
type Table struct {
	page   *Page
	header []string
	rows   [][]string
}

// New begins a table on a page, with a header if there is one.
func New(w *Page, header ...string) *Table {
	t := &Table{page: w, header: header}
	if len(header) == 0 {
		return t
	}
	row := make([]string, len(header))
	for i, cell := range header { // some name what the table is about
		row[i] = Plain(cell)
	}
	t.rows = append(t.rows, row)
	return t
}

// Row writes one row; what a terminal could take for more than a text is escaped.
// Ids, errors and payloads come from tasks, and a task may try to control
// the terminal of the user who lists it.
func (t *Table) Row(cells ...string) {
	row := make([]string, len(cells))
	for i, cell := range cells {
		row[i] = Plain(t.timed(i, cells[0], cell))
	}
	t.rows = append(t.rows, row)
}

// End writes the rows to the page: only now is the width of each column known.
func (t *Table) End() {
	fits := t.page.Width > 0 && len(t.header) > 0
	var left, commands []string
	if fits {
		left, commands = t.drop()
	}
	widths := t.widths()
	if fits {
		t.shrink(widths)
	}
	for n, row := range t.rows {
		t.write(row, widths, fits)
		if n > 0 && n <= len(commands) {
			_, _ = t.page.WriteString(below + commands[n-1] + "\n")
		}
	}
	if len(left) > 0 {
		_, _ = t.page.WriteString(leftOut(left, t.page.Width) + "\n")
	}
}

// write writes a row, whose cells are cut if they are to fit.
func (t *Table) write(row []string, widths []int, fits bool) {
	for i, cell := range row {
		if fits && i < len(widths) {
			cell = t.cut(i, cell, widths[i])
		}
		_, _ = t.page.WriteString(t.paint(cell))
		if i < len(row)-1 {
			_, _ = t.page.WriteString(strings.Repeat(" ", max(widths[i]-Width(cell), 0)+gap))
		}
	}
	_ = t.page.WriteByte('\n')
}

// widths are the natural widths of all columns.
func (t *Table) widths() []int {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(cell))
		}
	}
	return widths
}

// times are the columns and the lines that have a time of the store.
var times = map[string]bool{
	"DUE": true, "ENDED": true, "LEASE UNTIL": true, "STARTED": true, "LAST RUN": true, "NEXT RUN": true, "NEXT DUE": true, "SINCE": true, "UNTIL": true,
	"ENDS": true, "REPORTED AT": true, "FAILED": true,
	"submitted": true, "updated": true, "last activity": true, "due": true, "next run": true, "started": true, "finished": true, "next due": true, "cooling until": true,
}

// timed is a cell with a time in it as a person reads it.
func (t *Table) timed(column int, first, cell string) string {
	if t.page.Now.IsZero() {
		return cell
	}
	inTable := column < len(t.header) && times[t.header[column]]
	if !inTable && (column != 1 || len(t.header) > 0 || !times[strings.TrimSpace(first)]) {
		return cell
	}
	at, err := time.Parse(time.RFC3339, cell)
	switch {
	case err != nil:
		return cell
	case inTable:
		return Distance(at, t.page.Now)
	default:
		return cell + " (" + Distance(at, t.page.Now) + ")"
	}
}

// Distance is how far away a time is, to two parts: "in 3h5m", "2d4h ago".
func Distance(at, now time.Time) string {
	d := at.Sub(now)
	text := short(d.Abs())
	switch {
	case text == "0s":
		return "now"
	case d < 0:
		return text + " ago"
	default:
		return "in " + text
	}
}

// short is a duration to two parts, which is as much as a glance takes in.
func short(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d >= 100*day:
		return fmt.Sprintf("%dd", d/day)
	case d >= day:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	case d >= time.Hour:
		return fmt.Sprintf("%dh%dm", d/time.Hour, d%time.Hour/time.Minute)
	case d >= time.Minute:
		return fmt.Sprintf("%dm%ds", d/time.Minute, d%time.Minute/time.Second)
	default:
		return fmt.Sprintf("%ds", d/time.Second)
	}
}

// paint colours a cell that has a colour.
func (t *Table) paint(cell string) string {
	colour, ok := t.page.Colours[cell]
	if !ok {
		return cell
	}
	return "\x1b[" + colour + "m" + cell + "\x1b[0m"
}
