// Package logs prints the output of runs for the command logs, once or while the run goes on.
package logs

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
	"unicode"

	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// Source is what has the output.
type Source interface {
	Output(ctx context.Context, agent, id string, from inspect.OutputFrom) (inspect.Output, error)
}

// Between two questions, and how long the end of an output is waited for once its run is over: the outcome does not wait for it.
const (
	every   = 500 * time.Millisecond
	patient = 5 * time.Second
)

// Follower prints what a task prints.
type Follower struct {
	Source    Source
	Agent, ID string
	// Print gets each answer that has news, and Begun each run that has begun while another one was followed.
	Print func(o *inspect.Output) error
	Begun func(o *inspect.Output)
	// Retry reports whether an error may pass.
	Retry func(err error) bool

	run    store.Fence // that is followed; zero before the first
	since  time.Time   // when nothing more was to be expected; zero while it is
	failed time.Time   // when the store was away for the first time in a row
	showed bool
}

// Follow prints until the run has ended, or ctx has.
func (f *Follower) Follow(ctx context.Context) error {
	var from inspect.OutputFrom
	for {
		o, err := f.Source.Output(ctx, f.Agent, f.ID, from)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the user has asked for the end
		}
		switch {
		case err == nil:
			f.failed = time.Time{}
			from = inspect.OutputFrom{Run: o.Run, After: o.End}
			if over, err := f.took(&o); over || err != nil {
				return err
			}
		case !f.showed || !f.Retry(err) || f.isAway():
			return err
		}
		select {
		case <-time.After(every):
		case <-ctx.Done():
		}
	}
}

// isAway reports whether the store has been away for too long.
func (f *Follower) isAway() bool {
	if f.failed.IsZero() {
		f.failed = time.Now()
	}
	return time.Since(f.failed) > time.Minute
}

// took prints the news of an answer. It reports whether the run is over.
func (f *Follower) took(o *inspect.Output) (over bool, err error) {
	first := !f.showed
	if o.Run != f.run && f.run != 0 {
		f.Begun(o)
	}
	if first || o.Text != "" || o.Run != f.run {
		err = f.Print(o)
	}
	f.run, f.showed = o.Run, true
	switch running := o.Status == store.StatusInProgress; {
	case err != nil:
		return true, err
	case o.Ended && !running: // while one runs that has not printed yet, the output is of the run before
		return true, nil
	case running, o.Run == 0 && !o.Status.Finished(): // its first run is still to come
		f.since = time.Time{}
		return false, nil
	case f.since.IsZero():
		f.since = time.Now()
	}
	return time.Since(f.since) > patient, nil
}

// colour is how a program sets the colour of what follows.
var colour = regexp.MustCompile(`\x1b\[[0-9;:]*m`)

// Write writes a text: to a terminal without what it could take for more than a text, but for colours, and unchanged to a program.
func Write(w io.Writer, text string) error {
	if table.Terminal(w) {
		text = visible(text)
	}
	if _, err := io.WriteString(w, text); err != nil {
		return fmt.Errorf("write output: %w", err)
	}
	return nil
}

// visible is a text as a terminal may show it.
func visible(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n") // a bar that moves becomes lines
	var b strings.Builder
	for len(text) > 0 {
		end, next := len(text), len(text)
		if at := colour.FindStringIndex(text); at != nil {
			end, next = at[0], at[1]
		}
		for _, r := range text[:end] {
			if r == '\n' || r == '\t' || unicode.IsPrint(r) {
				b.WriteRune(r)
			} else {
				b.WriteString(table.Plain(string(r)))
			}
		}
		b.WriteString(text[end:next])
		text = text[next:]
	}
	return b.String()
}
