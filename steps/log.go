package steps

// The log of a run: what it looks like in a checkpoint, and its bounds.

import (
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// MaxSteps is how many steps the log of a run has at most.
const MaxSteps = 1000

// Log is what the checkpoint of a run says: the steps that are done, in the order of their ends, and what it waits for.
type Log struct {
	Done  []Step `json:"steps"`
	Waits *Pause `json:"waits,omitempty"`
}

// Step is a step that is done.
type Step struct {
	Name     string          `json:"name"`
	Result   json.RawMessage `json:"result,omitempty"`
	TimedOut bool            `json:"timed_out,omitempty"` // nothing came for it in time
	At       time.Time       `json:"at"`                  // when it was done
	Millis   int64           `json:"ms,omitempty"`        // how long it took
	Used     core.Usage      `json:"used,omitempty"`      // what it has used
}

// Pause is what a run waits for.
type Pause struct {
	Name    string    `json:"name"`
	For     Reason    `json:"for"`
	Since   time.Time `json:"since"`
	Until   time.Time `json:"until,omitzero"`    // zero: for ever
	Attempt int       `json:"attempt,omitempty"` // of the run that has submitted the tasks
	Looks   int       `json:"looks,omitempty"`   // how often it has looked for them
}

// Reason is why a run waits.
type Reason string

// The reasons.
const (
	ForTime   Reason = "time"
	ForSignal Reason = "signal"
	ForTasks  Reason = "tasks"
)

// ReadLog reads the log out of a checkpoint; false for a checkpoint that is none.
func ReadLog(checkpoint []byte) (Log, bool) {
	var l struct {
		Log

		Done *[]Step `json:"steps"`
	}
	if json.Unmarshal(checkpoint, &l) != nil || l.Done == nil {
		return Log{}, false
	}
	return Log{Done: *l.Done, Waits: l.Waits}, true
}

// Row is a step as it is shown.
type Row struct {
	Name  string
	State string // done, timed out, going on, or what it waits for
	At    time.Time
	Until time.Time // zero for a step that does not wait, or waits for ever
	Took  time.Duration
	Used  core.Usage
}

// waitsFor are the words for what a step waits for.
var waitsFor = map[Reason]string{ForTime: "waits for its time", ForSignal: "waits for a signal", ForTasks: "waits for its tasks"}

// underWay is shown for the step that a run is at: its name is stored with its end.
const underWay = "(under way)"

// Rows are the steps of a task, in the order of their ends, and what it waits for, or since when it has been at the next one.
func (l *Log) Rows(t *core.TaskInfo) []Row {
	rows := make([]Row, 0, len(l.Done)+1)
	for i := range l.Done {
		s := &l.Done[i]
		r := Row{Name: s.Name, State: "done", At: s.At, Took: time.Duration(s.Millis) * time.Millisecond, Used: s.Used}
		if s.TimedOut {
			r.State = "timed out"
		}
		rows = append(rows, r)
	}
	p := l.Waits
	switch {
	case t.Status.Finished():
	case p != nil && t.Status == core.StatusInProgress:
		rows = append(rows, Row{Name: p.Name, State: "going on", At: p.Since})
	case p != nil:
		rows = append(rows, Row{Name: p.Name, State: waitsFor[p.For], At: p.Since, Until: p.Until})
	case t.Status == core.StatusInProgress && len(l.Done) > 0:
		rows = append(rows, Row{Name: underWay, State: "going on", At: l.Done[len(l.Done)-1].At})
	}
	return rows
}

// find is a step that is done; nil if it is not.
func (l *Log) find(name string) *Step {
	for i := range l.Done {
		if l.Done[i].Name == name {
			return &l.Done[i]
		}
	}
	return nil
}

// encode is the log as a checkpoint. One that is too large is refused with what to do.
func (l *Log) encode() (json.RawMessage, error) {
	if len(l.Done) > MaxSteps {
		return nil, tooMuch("has %d steps: the limit is %d, so let a step do more than one thing, or submit tasks", len(l.Done), MaxSteps)
	}
	if l.Done == nil {
		l.Done = []Step{}
	}
	data, err := json.Marshal(l)
	if err != nil {
		return nil, core.SkipRetry(fmt.Errorf("steps: %w", err))
	}
	if len(data) > core.MaxCheckpoint {
		largest := &l.Done[0]
		for i := range l.Done {
			if len(l.Done[i].Result) > len(largest.Result) {
				largest = &l.Done[i]
			}
		}
		return nil, tooMuch("has %d bytes: the limit is %d, so keep what step %q returns (%d bytes) elsewhere, and return where it is",
			len(data), core.MaxCheckpoint, largest.Name, len(largest.Result))
	}
	return data, nil
}

// tooMuch is an error that no retry mends.
func tooMuch(format string, args ...any) error {
	return core.SkipRetry(&core.InvalidError{Field: "the log of steps", Reason: fmt.Sprintf(format, args...)})
}

// spent is what was used between two moments.
func spent(before, after core.Usage) core.Usage {
	used := maps.Clone(after)
	for unit, amount := range before {
		if used[unit] -= amount; used[unit] <= 0 {
			delete(used, unit)
		}
	}
	return used
}
