package console

// A run that is under way, and where its trace is.

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
)

// running is what is known of a run that is under way.
type running struct {
	Since    time.Time
	Exact    bool // if not, it runs since then, or longer
	Attempt  int
	For      string // how long it runs already
	Progress *progress
	Saved    string // how much its runs have saved, empty for nothing
}

// progress is how far a run has come.
type progress struct {
	Done, Of, Percent float64
	Text              string
}

// runningOf is the run of a task that is under way; nil if none is.
func runningOf(e *inspect.Explanation) *running {
	t := &e.Task
	if t.Status != core.StatusInProgress {
		return nil
	}
	r := &running{Attempt: t.Attempt, Progress: progressOf(t.Progress)}
	r.Since, r.Exact = e.Since()
	r.For = took(max(e.Now.Sub(r.Since), 0))
	if n := len(t.Checkpoint); n > 0 {
		r.Saved = counted(n, "byte")
	}
	return r
}

// Names that progress has for what is done, and for the whole.
var (
	doneNames = []string{"done", "current", "completed", "n"}
	ofNames   = []string{"of", "total", "all"}
)

// progressOf reads how far a run has come: done and of, percent, or a number from 0 to 1. Nil for progress that says anything else.
func progressOf(data json.RawMessage) *progress {
	var share float64
	if json.Unmarshal(data, &share) == nil && share >= 0 && share <= 1 {
		return progressAt(share, 1, "")
	}
	var object map[string]any
	if json.Unmarshal(data, &object) != nil {
		return nil
	}
	if percent, is := object["percent"].(float64); is && percent >= 0 && percent <= 100 {
		return progressAt(percent, 100, "")
	}
	done, of := numberOf(object, doneNames), numberOf(object, ofNames)
	if of <= 0 || done < 0 || done > of {
		return nil
	}
	return progressAt(done, of, fmt.Sprintf("%s of %s, ", whole(done), whole(of)))
}

// progressAt is a part of a whole.
func progressAt(done, of float64, text string) *progress {
	return &progress{Done: done, Of: of, Percent: 100 * done / of, Text: fmt.Sprintf("%s%.0f %%", text, 100*done/of)}
}

// numberOf is the first number under one of some names; -1 if there is none.
func numberOf(object map[string]any, names []string) float64 {
	for _, name := range names {
		if n, is := object[name].(float64); is {
			return n
		}
	}
	return -1
}

// tracePlace is where the id of a trace comes into the address of traces.
const tracePlace = "{trace_id}"

// traceLen is how long the id of a trace is in a traceparent: 00-ID-SPAN-FLAGS.
const traceLen = 32

// traceURL is where the trace of a task is; empty if it has none, or there is no address of traces.
func traceURL(at string, t *core.TaskInfo) string {
	id := t.TraceID
	if parts := strings.Split(t.Traceparent, "-"); len(parts) == 4 && len(parts[1]) == traceLen {
		id = parts[1]
	}
	if id == "" || at == "" {
		return ""
	}
	return strings.ReplaceAll(at, tracePlace, url.QueryEscape(id))
}
