package table

// Which columns a narrow terminal shows, and how wide they are.

import (
	"slices"
	"strings"
)

// typed are the columns with commands to be typed: they are never cut. Where one does not fit it is written below its row.
var typed = map[string]bool{"TO RESUME": true, "TO UNSET": true}

// names are the columns whose cells differ at their ends as much as at their beginnings.
var names = map[string]bool{"ID": true, "AGENT": true, "KIND": true, "PROCESS": true, "NAME": true, "PAUSED": true, "LIMIT ON": true, "BUDGET": true}

// texts are the columns with sentences and lists, of which a part says something.
var texts = map[string]bool{
	"LAST ERROR": true, "ERROR": true, "BECAUSE": true, "REASON": true, "QUESTION": true, "KINDS": true, "FULL": true, "LIMITS": true, "SCHEDULE": true,
	"WHAT IT SAYS": true, "WHAT IT MEANS": true, "WHAT IT DOES": true, "OLDEST RUN": true, "SERVER OR REDIS": true, "QUIET": true, "STATE": true,
}

// unwanted are the columns that a narrow terminal does without, the least wanted first. All others are kept, and so is the first of a table.
var unwanted = []string{
	"SKIPS", "MAX LAG", "MIN", "ABANDONED", "REPORTED AT", "MIN AGE", "JITTER", "PREFIX", "TOKEN FROM", "MOST", "BATCH", "TIMEOUT", "URGENT PASSES", "ERRORS", "RUNS",
	"AVG", "FULL", "OLDEST RUN", "LAG P50", "LEVEL", "RESULT", "RESTING", "MAX", "KEY", "OWNER", "ATTEMPT", "LEASE UNTIL", "PROCESS", "TOOK", "USED UP", "THEN", "BY",
	"LAST RUN", "LIMITS", "LAG", "UNTIL", "PROCESSES", "USED", "TYPE", "ENDS", "REASON", "SINCE",
}

// Widths from which on cells can be read: of a part of a text, and of a name that is known by its ends. Nothing is made narrower than narrowest: a line that is
// longer still wraps.
const (
	readable   = 24
	longName   = 40
	shortText  = 16
	narrowest  = 8
	below      = "  -> " // in front of a command below its row
	leastShown = 2       // columns
)

// gap is how many blanks are between two columns.
const gap = 2

// sum is how many columns of a terminal some widths take.
func sum(widths []int) int {
	all := gap * max(len(widths)-1, 0)
	for _, w := range widths {
		all += w
	}
	return all
}

// wanted are the widths at which all columns can be read.
func (t *Table) wanted() []int {
	widths := t.widths()
	for i, name := range t.header {
		switch {
		case i >= len(widths):
		case texts[name]:
			widths[i] = min(widths[i], readable)
		case names[name]:
			widths[i] = min(widths[i], longName)
		}
	}
	return widths
}

// drop takes columns out, the least wanted first, until the others can be read. It returns which, and the commands that are written below their rows, if there
// is no room for them: one for each row, the header apart.
func (t *Table) drop() (left, commands []string) {
	for _, name := range unwanted {
		if len(t.header) <= leastShown || sum(t.wanted()) <= t.page.Width {
			break
		}
		if at := slices.Index(t.header, name); at > 0 {
			left = append(left, name)
			t.take(at)
		}
	}
	at := slices.IndexFunc(t.header, func(name string) bool { return typed[name] })
	if at > 0 && sum(t.wanted()) > t.page.Width {
		commands = t.take(at)[1:]
	}
	return left, commands
}

// take takes a column out, and returns its cells.
func (t *Table) take(at int) (cells []string) {
	t.header = slices.Delete(slices.Clone(t.header), at, at+1)
	for i, row := range t.rows {
		if at < len(row) {
			cells = append(cells, row[at])
			t.rows[i] = slices.Delete(slices.Clone(row), at, at+1)
		}
	}
	return cells
}

// shrink makes columns as narrow as it takes: texts first, then the widest ones, and never a command.
func (t *Table) shrink(widths []int) {
	for _, may := range []func(i int) bool{
		func(i int) bool { return i < len(t.header) && texts[t.header[i]] && widths[i] > shortText },
		func(i int) bool { return (i >= len(t.header) || !typed[t.header[i]]) && widths[i] > narrowest },
	} {
		for sum(widths) > t.page.Width {
			widest := widestOf(widths, may)
			if widest < 0 {
				break
			}
			widths[widest]--
		}
	}
}

// widestOf is the widest of the columns that may be made narrower; -1 if there is none.
func widestOf(widths []int, may func(i int) bool) int {
	widest := -1
	for i, w := range widths {
		if may(i) && (widest < 0 || w > widths[widest]) {
			widest = i
		}
	}
	return widest
}

// cut makes a cell fit: a name loses its middle, anything else its end, and a command nothing.
func (t *Table) cut(column int, cell string, width int) string {
	switch {
	case column < len(t.header) && typed[t.header[column]]:
		return cell
	case column < len(t.header) && names[t.header[column]]:
		return Middle(cell, width)
	default:
		return Cut(cell, width)
	}
}

// leftOut says which columns are not shown.
func leftOut(columns []string, width int) string {
	return Cut("left out: "+strings.Join(columns, ", ")+"; --wide shows all", width)
}
