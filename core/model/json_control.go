package model

// The JSON of what operators see: pauses, agents and events.

import (
	"encoding/json"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/wire"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
)

// pauseJSON is a pause.
type pauseJSON struct {
	Target store.Target `json:"target"`
	By     string       `json:"by,omitempty"`
	Note   string       `json:"note,omitempty"`
	Reason string       `json:"reason,omitempty"`
	Since  wire.Stamp   `json:"since"`
	Until  wire.Stamp   `json:"until,omitzero"`
}

// MarshalJSON writes a pause.
func (p PauseInfo) MarshalJSON() ([]byte, error) {
	w := pauseJSON{}
	wire.Copy(&w, &p)
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (p *PauseInfo) UnmarshalJSON(data []byte) error {
	w := pauseJSON{}
	err := json.Unmarshal(data, &w)
	*p = PauseInfo{}
	wire.Copy(p, &w)
	return err
}

// MarshalJSON writes a reason.
func (b Because) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Code  BecauseCode `json:"code"`
		Text  string      `json:"text"`
		About string      `json:"about,omitempty"`
		Until wire.Stamp  `json:"until,omitzero"`
	}{b.Code, b.Text, b.About, wire.Stamp(b.Until)})
}

// agentJSON is an agent with its live tasks.
type agentJSON struct {
	Agent  string     `json:"agent_id"`
	Live   int64      `json:"live"`
	Due    wire.Stamp `json:"next_due,omitzero"`
	Paused bool       `json:"is_paused"`
}

// MarshalJSON writes the tasks of an agent.
func (a AgentStats) MarshalJSON() ([]byte, error) {
	w := agentJSON{}
	wire.Copy(&w, &a)
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (a *AgentStats) UnmarshalJSON(data []byte) error {
	w := agentJSON{}
	err := json.Unmarshal(data, &w)
	wire.Copy(a, &w)
	return err
}

// noticedJSON is the result of a notice of activity.
type noticedJSON struct {
	Scheduled bool         `json:"scheduled"`
	Reason    store.Reason `json:"reason"`
	Due       *wire.Stamp  `json:"due_at"`
	Agent     string       `json:"agent_id"`
	ID        string       `json:"id"`
}

// MarshalJSON writes the result of a notice of activity.
func (n Noticed) MarshalJSON() ([]byte, error) {
	w := noticedJSON{Due: wire.StampOf(n.Due)}
	wire.Copy(&w, &n)
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (n *Noticed) UnmarshalJSON(data []byte) error {
	w := noticedJSON{}
	err := json.Unmarshal(data, &w)
	*n = Noticed{Due: wire.TimeOf(w.Due)}
	wire.Copy(n, &w)
	return err
}

// eventJSON is an event. Durations are in milliseconds.
type eventJSON struct {
	Type      EventType         `json:"event"`
	Time      wire.Stamp        `json:"time"`
	Agent     string            `json:"agent_id"`
	ID        string            `json:"id"`
	Kind      string            `json:"kind"`
	Group     string            `json:"group,omitempty"`
	TraceID   string            `json:"trace_id,omitempty"`
	SessionID string            `json:"session_id,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Process   string            `json:"process,omitempty"`
	Attempt   int               `json:"attempt,omitempty"`
	Due       wire.Stamp        `json:"due_at,omitzero"`
	Wait      wire.Milliseconds `json:"queue_wait_ms"`
	Duration  wire.Milliseconds `json:"exec_duration_ms"`
	Total     wire.Milliseconds `json:"total_duration_ms"`
	Outcome   Outcome           `json:"outcome,omitempty"`
	Retried   bool              `json:"retried,omitempty"`
	Status    store.Status      `json:"status,omitempty"`
	Next      wire.Stamp        `json:"next_due_at,omitzero"`
	Because   BecauseCode       `json:"because,omitempty"`
	Error     string            `json:"error,omitempty"`
	From      store.Status      `json:"from_status,omitempty"`
	Key       string            `json:"limit_key,omitempty"`
	By        string            `json:"by,omitempty"`
	Note      string            `json:"note,omitempty"`
	Reason    string            `json:"reason,omitempty"`
	Count     int               `json:"count,omitempty"`
	Code      Code              `json:"code,omitempty"`
	Used      Usage             `json:"used,omitempty"`
	Fault     audit.Code        `json:"fault,omitempty"`
}

// MarshalJSON writes an event, field by field, to be cheap: it is called for every event that is published.
func (e Event) MarshalJSON() ([]byte, error) {
	return json.Marshal(eventJSON{
		e.Type, wire.Stamp(e.Time), e.Agent, e.ID, e.Kind, e.Group, e.TraceID, e.SessionID, labelsOfEvent(e.Labels), e.Process, e.Attempt, wire.Stamp(e.Due), wire.Milliseconds(max(e.Wait, 0)),
		wire.Milliseconds(e.Duration), wire.Milliseconds(max(e.Wait, 0).Truncate(time.Millisecond) + e.Duration), e.Outcome, e.Retried, e.Status, wire.Stamp(e.Next), e.Because, e.Error,
		e.From, e.Key, e.By, e.Note, e.Reason, e.Count, e.Code, e.Used, e.Fault,
	})
}

// UnmarshalJSON reads what MarshalJSON writes. It ignores unknown fields of a later version; on an error the event has what could be read.
func (e *Event) UnmarshalJSON(data []byte) error {
	w := eventJSON{}
	err := json.Unmarshal(data, &w)
	*e = Event{}
	wire.Copy(e, &w)
	return err
}
