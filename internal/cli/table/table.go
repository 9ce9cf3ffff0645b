// Package table writes answers for people: lines and columns, with colours on a terminal, and nothing in them that a terminal could
// take for more than text.
package table

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
)

// Page is an answer for people.
// A zero Page has no colours.
type Page struct {
	bytes.Buffer

	// Colours are the codes of cells that have a colour, by their text, if the answer goes to a terminal. They have to be as long as
	// that of all other cells, which is 39.
	Colours map[string]string
}

// Line writes a line; what a terminal could take for more than a text is escaped.
func (w *Page) Line(format string, args ...any) {
	_, _ = w.WriteString(Plain(fmt.Sprintf(format, args...)) + "\n")
}

// Table writes rows in columns. Make it with [New].
// The rows are kept until End, as the width of a column depends on all of them.
type Table struct {
	*tabwriter.Writer

	colours map[string]string
}

// New begins a table on a page, with a header if there is one.
func New(w *Page, header ...string) *Table {
	t := &Table{Writer: tabwriter.NewWriter(&w.Buffer, 0, 0, 2, ' ', 0), colours: w.Colours}
	if len(header) > 0 {
		t.Row(header...)
	}
	return t
}

// Row writes one row; what a terminal could take for more than a text is escaped.
// Ids, errors and payloads come from tasks, and a task may try to drive
// the terminal of whoever lists it.
func (t *Table) Row(cells ...string) {
	for i, cell := range cells {
		cells[i] = t.paint(Plain(cell))
	}
	_, _ = fmt.Fprintln(t.Writer, strings.Join(cells, "\t"))
}

// End writes the rows to the page: only now is the width of each column known.
func (t *Table) End() { _ = t.Flush() }

// defaultColour is that of all other cells.
const defaultColour = "39"

// paint colours a cell. The tabwriter takes the codes for text, so every cell gets some of the same length.
// Codes of different lengths would shift the columns behind them.
func (t *Table) paint(cell string) string {
	if t.colours == nil {
		return cell
	}
	return "\x1b[" + cmp.Or(t.colours[cell], defaultColour) + "m" + cell + "\x1b[0m"
}

// Terminal reports whether w is one that shows colours.
// NO_COLOR and TERM=dumb are the two customs by which a user turns colours off.
func Terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
