// Package contract is what all have in common that run tasks outside of the process: programs, servers and workers. It has the JSON that they get
// for a run, and what they can say about the run in return.
package contract

import (
	"encoding/json"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// input is a run as programs and servers get it. Names and forms are those of tasks elsewhere in duly.
// The names are part of the contract with users' programs, and docs/reference says of each what the comment here says.
type input struct {
	ID          string          `json:"id"`                    // the task
	Agent       string          `json:"agent_id"`              // its agent
	Kind        string          `json:"kind"`                  // its kind
	Payload     json.RawMessage `json:"payload,omitempty"`     // what it was submitted with
	Group       string          `json:"group,omitempty"`       // its group
	Level       core.Level      `json:"level"`                 // 1 is the most urgent, 3 the least
	Attempt     int             `json:"attempt"`               // which attempt at this occurrence this is: 1 at first, and one more after each that has failed
	Call        int             `json:"call"`                  // which call of this task this is, from 1 on: it grows when the one before has asked to be called again, and is the same for a repeat of one that failed or crashed
	Crashes     int             `json:"crashes"`               // how often a process died during a run of this occurrence
	Fence       store.Fence     `json:"fence"`                 // grows with every claim: pass it to stores that must refuse writes of a run that lost its lease
	Due         string          `json:"due_at"`                // when it was due: RFC 3339 in UTC, with milliseconds, as all times
	Occurrence  string          `json:"occurrence"`            // when this occurrence was first due: the same for all its attempts
	Zone        string          `json:"zone,omitempty"`        // the zone of the task's cron expression
	Parent      string          `json:"parent,omitempty"`      // the recurring task that this task is one occurrence of
	Submitted   string          `json:"submitted_at"`          // when it was submitted
	Checkpoint  json.RawMessage `json:"checkpoint,omitempty"`  // the checkpoint that an earlier run of this occurrence left
	Gate        json.RawMessage `json:"gate,omitempty"`        // what the gate of the kind said
	Heard       *heard          `json:"heard,omitempty"`       // what the wait for a signal returned, if the task has waited: `key`, `told`, `payload`, `timed_out`, and who has sent it: `how` (page, credential, handler or process), `by`, `question`
	TraceID     string          `json:"trace_id,omitempty"`    // its trace
	Traceparent string          `json:"traceparent,omitempty"` // the same as W3C trace context has it
	SessionID   string          `json:"session_id,omitempty"`  // its session
	UserID      string          `json:"user_id,omitempty"`     // its user
	Info        json.RawMessage `json:"info,omitempty"`        // the JSON object that it was submitted with
	Tags        []string        `json:"tags,omitempty"`        // the words that it was submitted with

	Labels map[string]string `json:"labels,omitempty"` // the names and values that it was submitted with
}

// lent is a run as a worker gets it.
type lent struct {
	Ticket  string      `json:"ticket"`               // names the run in all further calls
	Timeout string      `json:"timeout,omitempty"`    // how long it may take, if that is bounded
	Values  core.Values `json:"values,omitempty"`     // values of bindings, by their names
	Most    int         `json:"max_result,omitempty"` // how large a result or progress may be, in bytes, if that is not the default
	Prints  bool        `json:"prints,omitempty"`     // the server takes what it prints

	*input
}

// EncodeLent is the JSON of a run that a worker is to make, with its ticket. It fails as Encode does.
func EncodeLent(r *core.LentRun, ticket string) ([]byte, error) {
	in, err := inputOf(r.Task)
	out := lent{Ticket: ticket, Values: r.Bound(), Prints: r.Prints, input: in}
	if r.Timeout > 0 {
		out.Timeout = r.Timeout.String()
	}
	if most := r.MaxResult(); most != model.DefaultMaxResult {
		out.Most = most
	}
	if err != nil {
		return nil, err
	}
	return json.Marshal(out)
}

// Encode is the JSON of a run, with the checkpoint that an earlier one of its occurrence left.
// It fails only for a checkpoint that is not JSON, which no handler can have stored.
func Encode(t *core.Task[json.RawMessage]) ([]byte, error) {
	in, err := inputOf(t)
	if err != nil {
		return nil, err
	}
	return json.Marshal(in)
}

// inputOf is a run as programs, servers and workers get it.
func inputOf(t *core.Task[json.RawMessage]) (*input, error) {
	in := &input{
		ID: t.ID, Agent: t.Agent, Kind: t.Kind, Payload: t.Payload, Group: t.Group, Level: t.Level, Attempt: t.Attempt, Call: t.Call(),
		Crashes: t.Crashes, Fence: t.Fence, Due: Instant(t.Due), Occurrence: Instant(t.Occurrence), Zone: t.Zone,
		Parent: t.Parent, Submitted: Instant(t.Submitted), TraceID: t.TraceID, Traceparent: t.Traceparent,
		SessionID: t.SessionID, UserID: t.UserID,
		Info: t.Info, Tags: t.Tags, Labels: t.Labels, Gate: t.GateInput(), Heard: heardOf(t.RunInfo),
	}
	if string(in.Payload) == "null" { // a task without one has none, and not the value null
		in.Payload = nil
	}
	if _, err := t.Checkpoint(&in.Checkpoint); err != nil {
		return nil, err
	}
	return in, nil
}

// Instant is a time of the store as texts have it: RFC 3339 in UTC, with milliseconds.
// It has the same length for all times, so that texts sort as times do.
func Instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }
