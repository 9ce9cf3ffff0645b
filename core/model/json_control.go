package model

// The JSON of what operators see: pauses, agents and events.

import (
	"encoding/json"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// MarshalJSON writes a pause.
func (p PauseInfo) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Target store.Target `json:"target"`
		By     string       `json:"by,omitempty"`
		Note   string       `json:"note,omitempty"`
		Reason string       `json:"reason,omitempty"`
		Since  Stamp        `json:"since"`
		Until  Stamp        `json:"until,omitzero"`
	}{p.Target, p.By, p.Note, p.Reason, Stamp(p.Since), Stamp(p.Until)})
}

// MarshalJSON writes a reason.
func (b Because) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Code  BecauseCode `json:"code"`
		Text  string      `json:"text"`
		Until Stamp       `json:"until,omitzero"`
	}{b.Code, b.Text, Stamp(b.Until)})
}

// MarshalJSON writes the tasks of an agent.
func (a AgentStats) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Agent  string `json:"agent_id"`
		Live   int64  `json:"live"`
		Due    Stamp  `json:"next_due,omitzero"`
		Paused bool   `json:"is_paused"`
	}{a.Agent, a.Live, Stamp(a.Due), a.Paused})
}

// MarshalJSON writes what a notice of activity did.
func (n Noticed) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Scheduled bool         `json:"scheduled"`
		Reason    store.Reason `json:"reason"`
		Due       *Stamp       `json:"due_at"`
		Agent     string       `json:"agent_id"`
		ID        string       `json:"id"`
	}{n.Scheduled, n.Reason, maybe(n.Due), n.Agent, n.ID})
}

// maybe is a time that is null if there is none.
func maybe(t time.Time) *Stamp {
	if t.IsZero() {
		return nil
	}
	s := Stamp(t)
	return &s
}

// MarshalJSON writes an event. Durations are in milliseconds.
func (e Event) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Type    EventType    `json:"event"`
		Time    Stamp        `json:"time"`
		Agent   string       `json:"agent_id"`
		ID      string       `json:"id"`
		Kind    string       `json:"kind"`
		Group   string       `json:"group,omitempty"`
		TraceID string       `json:"trace_id,omitempty"`
		Session string       `json:"session_id,omitempty"`
		Cube    string       `json:"mem_cube_id,omitempty"`
		Process string       `json:"process,omitempty"`
		Attempt int          `json:"attempt,omitempty"`
		Due     Stamp        `json:"due_at,omitzero"`
		Wait    int64        `json:"queue_wait_ms"`
		Took    int64        `json:"exec_duration_ms"`
		Total   int64        `json:"total_duration_ms"`
		Outcome Outcome      `json:"outcome,omitempty"`
		Retried bool         `json:"retried,omitempty"`
		Status  store.Status `json:"status,omitempty"`
		Next    Stamp        `json:"next_due_at,omitzero"`
		Because BecauseCode  `json:"because,omitempty"`
		Error   string       `json:"error,omitempty"`
		From    store.Status `json:"from_status,omitempty"`
		Key     string       `json:"limit_key,omitempty"`
		By      string       `json:"by,omitempty"`
		Note    string       `json:"note,omitempty"`
		Reason  string       `json:"reason,omitempty"`
		Count   int          `json:"count,omitempty"`
		Code    Code         `json:"code,omitempty"`
		Used    Usage        `json:"used,omitempty"`

		Fault store.FaultCode `json:"fault,omitempty"`
	}{
		e.Type, Stamp(e.Time), e.Agent, e.ID, e.Kind, e.Group, e.TraceID, e.SessionID, e.MemCubeID, e.Process, e.Attempt, Stamp(e.Due), max(e.Wait.Milliseconds(), 0),
		e.Duration.Milliseconds(), max(e.Wait.Milliseconds(), 0) + e.Duration.Milliseconds(), e.Outcome, e.Retried, e.Status, Stamp(e.Next), e.Because, e.Error,
		e.From, e.Key, e.By, e.Note, e.Reason, e.Count, e.Code, e.Used, e.Fault,
	})
}
