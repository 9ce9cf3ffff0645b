package langgraph

// What a task posts when it is due.

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/door"
	"github.com/seed-6f6f2c11/duly/adapters/internal/fields"
	"github.com/seed-6f6f2c11/duly/core"
)

// Runs makes requests to the runs API of a LangGraph server, below its address. The webhook handler sends them: it is a dialect of that.
type Runs struct{}

// Request starts a run in the background: on the thread of the cron, or on one of its own. Its metadata has the cron_id and cron_occurrence,
// the time that the run was due, which is the same if it is posted twice.
//
// A cron whose end_time has passed ends: its task is cancelled.
func (Runs) Request(t *core.Task[json.RawMessage]) (path string, body []byte, err error) {
	var p payload
	if err := json.Unmarshal(t.Payload, &p); err != nil {
		return "", nil, core.SkipRetry(fmt.Errorf("langgraph: the payload must be an object with run: what is posted to start a run: %w", err))
	}
	if !p.End.IsZero() && !t.Occurrence.Before(p.End) {
		return "", nil, core.Cancel(errors.New("langgraph: the end_time " + p.End.Format(time.RFC3339) + " has passed"))
	}
	run := p.Run.Merge(fields.Fields{"assistant_id": quoted(t.Agent)}) // not what it says: who may act for the agent may start runs of no other assistant
	metadata, err := fields.Of("metadata", p.Run["metadata"])
	if p.Run["metadata"] == nil {
		err = nil
	}
	if err != nil {
		return "", nil, core.SkipRetry(fmt.Errorf("langgraph: %w", err))
	}
	run["metadata"] = metadata.Merge(fields.Fields{
		"cron_id": quoted(idOf(t.Agent, t.ID)), "cron_occurrence": quoted(t.Occurrence.UTC().Format(time.RFC3339Nano)),
	}).JSON()
	if p.Thread == "" {
		if p.Completed != "" {
			run["on_completion"] = quoted(p.Completed)
		}
		return "/runs", run.JSON(), nil
	}
	if !door.IsID(p.Thread) {
		return "", nil, core.SkipRetry(errors.New("langgraph: thread_id " + notThread))
	}
	return "/threads/" + p.Thread + "/runs", run.JSON(), nil
}

const notThread = "must be the id of a thread: " + door.Chars

// Result keeps of an answer which run was started: the rest repeats the request.
func (Runs) Result(answer []byte) []byte {
	all, err := fields.Of("answer", answer)
	if err != nil {
		return nil
	}
	return all.Only("run_id", "thread_id", "status", "created_at").JSON()
}
