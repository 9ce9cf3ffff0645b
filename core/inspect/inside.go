package inspect

// What a list looks for inside tasks: in their ids and errors, and whom they wait for.

import (
	"cmp"
	"strings"
	"time"
	"unicode"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/outcome"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// looksInside reports whether a list selects by more than what stores keep in order.
func (l *List) looksInside() bool {
	return l.Session != "" || l.Text != "" || l.Cause != "" || !l.DueBy.IsZero() || l.Asking
}

// holds reports whether a task has what the list looks for inside it.
func (l *List) holds(t *model.TaskInfo) bool {
	return (l.Session == "" || t.SessionID == l.Session) && (l.Cause == "" || CauseOf(t) == l.Cause) && (!l.Asking || Asks(t)) &&
		(l.Text == "" || contains(t.ID, l.Text) || contains(t.LastError, l.Text) || contains(t.Reason, l.Text)) && l.falls(t)
}

// falls reports whether a task is due by the time that the list has, if any.
func (l *List) falls(t *model.TaskInfo) bool {
	return l.DueBy.IsZero() || t.Status == store.StatusWaiting && !t.NextRun.IsZero() && !t.NextRun.After(l.DueBy)
}

// contains reports whether a text has a part, in any case.
func contains(text, part string) bool {
	return text != "" && strings.Contains(strings.ToLower(text), strings.ToLower(part))
}

// checkInside refuses what no task has.
func (l *List) checkInside() error {
	switch {
	case l.Asking && (l.Overdue || l.Held || l.Late || l.Jobs || l.Status != nil && !l.only(store.StatusWaiting)):
		return check.Invalid("asking", "is about tasks that wait for a person: leave the status, overdue, held, late and jobs out")
	case l.Reads < 0 || l.Reads == 1:
		return check.Invalid("reads", "must be 2 or more")
	}
	return cmp.Or(check.ValidText("session", l.Session, check.MaxTextLen), check.ValidText("text", l.Text, check.MaxTextLen), check.ValidText("cause", l.Cause, check.MaxErrorLen))
}

// Asks reports whether a task waits for a person: for an approval, or for the answer to a question.
func Asks(t *model.TaskInfo) bool {
	return t.Awaiting != nil && (t.Awaiting.From == outcome.FromApproval || t.Awaiting.Question != "")
}

// Bounds of causes and of groups.
const (
	causeLen   = 200 // bytes of an error that count
	groupShown = 5   // tasks, and kinds, that a group names
)

// CauseOf is what went wrong with a task, without what differs between errors of the same cause: numbers, and words that have one, such as ids and
// addresses.
func CauseOf(t *model.TaskInfo) string {
	words := strings.Fields(errorOf(t))
	for i, word := range words {
		if strings.ContainsFunc(word, unicode.IsDigit) {
			words[i] = "#"
		}
	}
	return strings.Join(words, " ")
}

// errorOf is the beginning of a task's error.
func errorOf(t *model.TaskInfo) string {
	text := cmp.Or(t.LastError, t.Reason, "no error is kept")
	if len(text) > causeLen {
		text = strings.ToValidUTF8(text[:causeLen], "")
	}
	return text
}

// DeadGroup are dead tasks whose errors are of one cause.
type DeadGroup struct {
	Cause  string // as in [List.Cause]
	Error  string // that of the last one
	Tasks  int
	Kinds  map[string]int // how many are of a kind
	Agents map[string]int
	First  time.Time        // when the first of them ended
	Last   time.Time        // when the last did
	Ended  []time.Time      // when each did, the last one first
	Latest []model.TaskInfo // the last ones, a few
}

// GroupDead adds dead tasks to groups, by cause. The tasks come as a list has them, the last ones first.
func GroupDead(groups map[string]*DeadGroup, tasks []model.TaskInfo) {
	for i := range tasks {
		t := &tasks[i]
		cause := CauseOf(t)
		g := groups[cause]
		if g == nil {
			g = &DeadGroup{Cause: cause, Error: errorOf(t), Last: t.Finished, Kinds: map[string]int{}, Agents: map[string]int{}}
			groups[cause] = g
		}
		g.Tasks++
		g.Kinds[t.Kind]++
		g.Agents[t.Agent]++
		g.First = t.Finished
		g.Ended = append(g.Ended, t.Finished)
		if len(g.Latest) < groupShown {
			g.Latest = append(g.Latest, model.TaskInfo{Agent: t.Agent, ID: t.ID, Kind: t.Kind, Finished: t.Finished, TaskHistory: model.TaskHistory{RunCount: t.RunCount}})
		}
	}
}
