package pictures

// Limits and budgets: who waits in line, and who starts when.

import (
	"fmt"
	"strings"
)

// Line is what a bound did: the tasks in the order in which they were submitted, those that started in the order of their starts, and those that
// are still held back, with why.
type Line struct {
	Bound          string // such as "kind digest, concurrency 1"
	Submitted      []string
	Started        []string
	Held           []string
	Because        string // what Explain says of those: its code
	Until          string // when they start; empty for when there is room
	StartedComment string
}

// Lines draws bounds, one below the other.
func Lines(lines []Line) string {
	said := []string{}
	for _, l := range lines {
		text := fmt.Sprintf("%s. Submitted: %s. Started: %s.", l.Bound, strings.Join(l.Submitted, ", "), strings.Join(l.Started, ", "))
		if len(l.Held) > 0 {
			text += fmt.Sprintf(" Held back, because %s: %s %s.", l.Because, strings.Join(l.Held, ", "), l.Until)
		}
		said = append(said, text)
	}
	s := newSheet(800, 190*len(lines)+10, "What a limit and a budget hold back", strings.Join(said, " "))
	for i, l := range lines {
		y := 190*i + 30
		s.text("", "start", 20, y, l.Bound)
		s.row(y+16, "submitted", "b", l.Submitted, "")
		s.row(y+66, "started", "e", l.Started, l.StartedComment)
		if len(l.Held) > 0 {
			s.row(y+116, l.Because, "b", l.Held, l.Until)
		}
	}
	return s.done()
}

// row is a line of tasks behind its name.
func (s *sheet) row(y int, name, class string, tasks []string, comment string) {
	s.texts("start", 20, y+20, name)
	for i, task := range tasks {
		s.box(class, 110+85*i, y, 75, 32, task)
	}
	s.texts("start", 120+85*len(tasks), y+20, comment)
}
