package console

// What a run has printed, at the foot of the page of its task.

import (
	"regexp"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
)

// outputShown is how much of the output of a run a page shows, in bytes: the end of it.
const outputShown = 10 << 10

// printed is the output of a run as a page shows it.
type printed struct {
	inspect.Printed

	Name  string // of the part of the page
	Shown string // the end of the text
	Cut   bool   // there is more before
	Now   bool   // the run is under way, and may print more
}

// colours are what programs write for terminals: they change the colour of what follows.
var colours = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

// outputOf is what the last run of a task has printed, and the one before; none if nothing is kept.
func outputOf(v *visit, t *core.TaskInfo) ([]printed, error) {
	found, err := v.scheduler.Output(v.r.Context(), t.Agent, t.ID, inspect.OutputFrom{})
	if err = unlessAbsent(err); err != nil || found.Run == 0 {
		return nil, err
	}
	out := []printed{tailOf("Output", found.Printed, t.Status == core.StatusInProgress && !found.Ended)}
	if found.Before != nil && found.Before.Text != "" {
		out = append(out, tailOf("Output of the run before", *found.Before, false))
	}
	return out, nil
}

// tailOf is the end of an output, from the beginning of a line.
func tailOf(name string, p inspect.Printed, now bool) printed {
	text := colours.ReplaceAllString(p.Text, "")
	out := printed{Printed: p, Name: name, Now: now, Cut: len(text) > outputShown}
	if out.Cut {
		text = text[len(text)-outputShown:]
		if _, after, found := strings.Cut(text, "\n"); found {
			text = after
		}
	}
	out.Shown, out.Text = strings.ToValidUTF8(strings.TrimRight(text, "\n"), "\uFFFD"), ""
	return out
}
