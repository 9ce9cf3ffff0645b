package cli

// Answers: JSON for programs, pages for people.

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// print writes an answer: as JSON if that is wanted, otherwise for people.
// An answer is made in memory and written at once: a failure halfway leaves no partial answer.
func (o *options) print(answer any, people func(w *table.Page)) error {
	w := o.stdout
	b := o.page()
	if o.json {
		if err := json.NewEncoder(&b.Buffer).Encode(answer); err != nil {
			return fmt.Errorf("encode answer: %w", err)
		}
		text := table.JSON(b.String())
		b.Reset()
		_, _ = b.WriteString(text)
	} else {
		people(&b)
	}
	text := b.Bytes()
	if o.watch > 0 && !o.json && table.Terminal(w) {
		_, lines := table.Size(w)
		text = []byte(table.Redraw(b.String(), lines))
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

// page is an empty answer for the output's reader: only a terminal gets colours and cut columns; a pipe gets plain text.
func (o *options) page() table.Page {
	b, w := table.Page{}, o.stdout
	if table.Colourful(w) {
		b.Colours = colours
	}
	if columns, _ := table.Size(w); columns > 0 && !o.wide {
		b.Width, b.Now = columns, time.Now()
	}
	return b
}

// colours of the status of a task or run.
// Words that are missing here have the default colour.
var colours = map[string]string{
	string(core.StatusCompleted): "32", string(model.OutcomeSuccess): "32", string(core.StatusInProgress): "36",
	string(core.StatusFailed): "31", string(model.OutcomeCrashed): "31", string(core.StatusCancelled): "33",
	statusPaused: "33", statusParked: "33", statusCooling: "33", statusEnding: "33", jobPaused: "33", jobRunning: "36",
}

// instant is a time as JSON, the log and core's own sentences have it: RFC 3339 in UTC, with milliseconds.
// Milliseconds and UTC make times of several machines comparable by eye.
const instant = "2006-01-02T15:04:05.000Z07:00"

// clock is a time of the store; a dash for none.
func clock(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(instant)
}
