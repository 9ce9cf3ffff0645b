package command

// Answers: JSON for programs, pages for people.

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// Print writes an answer: as JSON if that is wanted, otherwise for people.
// An answer is made in memory and written at once: a failure halfway leaves no partial answer.
func (o *Options) Print(answer any, people func(w *table.Page)) error {
	w := o.Stdout
	b := o.page()
	if o.JSON {
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
	if o.Watch > 0 && !o.JSON && table.Terminal(w) {
		_, lines := table.Size(w)
		text = []byte(table.Redraw(b.String(), lines))
	}
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("write answer: %w", err)
	}
	return nil
}

// page is an empty answer for the output's reader: only a terminal gets colours and cut columns; a pipe gets plain text.
func (o *Options) page() table.Page {
	b, w := table.Page{}, o.Stdout
	if table.Colourful(w) {
		b.Colours = colours
	}
	if columns, _ := table.Size(w); columns > 0 && !o.Wide {
		b.Width, b.Now = columns, time.Now()
	}
	return b
}
