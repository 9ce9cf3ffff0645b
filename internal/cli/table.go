package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/seed-6f6f2c11/duly/core"
)

// print writes an answer: as JSON if that is wanted, otherwise for people.
func (o *options) print(w io.Writer, answer any, people func(w *page)) error {
	b := page{colours: terminal(w)}
	if o.json {
		if err := json.NewEncoder(&b.Buffer).Encode(answer); err != nil {
			return fmt.Errorf("encode answer: %w", err)
		}
	} else {
		people(&b)
	}
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

// page is an answer for people.
type page struct {
	bytes.Buffer

	colours bool // it goes to a terminal
}

// table writes rows in columns. On a terminal, statuses and outcomes have colours.
type table struct {
	*tabwriter.Writer

	colours bool
}

func newTable(w *page, header ...string) *table {
	t := &table{Writer: tabwriter.NewWriter(&w.Buffer, 0, 0, 2, ' ', 0), colours: w.colours}
	if len(header) > 0 {
		t.row(header...)
	}
	return t
}

// row writes one row; what a terminal could take for more than a text is escaped.
func (t *table) row(cells ...string) {
	for i, cell := range cells {
		cells[i] = t.paint(plain(cell))
	}
	_, _ = fmt.Fprintln(t.Writer, strings.Join(cells, "\t"))
}

func (t *table) end() { _ = t.Flush() }

// defaultColour is that of all other texts.
const defaultColour = "39"

// colours of what a task or run has come to; their codes are all as long as that of the default.
var colours = map[string]string{
	string(core.StatusCompleted): "32", string(core.OutcomeSuccess): "32", string(core.StatusInProgress): "36",
	string(core.StatusFailed): "31", string(core.OutcomeCrashed): "31", string(core.StatusCancelled): "33",
	statusPaused: "33", statusParked: "33", statusCooling: "33", statusEnding: "33", jobPaused: "33", jobRunning: "36",
}

// paint colours a cell. The tabwriter takes the codes for text, so every cell gets some of the same length.
func (t *table) paint(cell string) string {
	if !t.colours {
		return cell
	}
	return "\x1b[" + cmp.Or(colours[cell], defaultColour) + "m" + cell + "\x1b[0m"
}

// terminal reports whether w is one that shows colours.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// instant is a time as JSON, the log and core's own sentences have it: RFC 3339 in UTC, with milliseconds.
const instant = "2006-01-02T15:04:05.000Z07:00"

// clock is a time of the store; a dash for none.
func clock(m core.Millis) string {
	if m == 0 {
		return "-"
	}
	return m.Time().Format(instant)
}
