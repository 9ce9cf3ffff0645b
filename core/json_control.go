package core

// The JSON of what operators see: pauses, explanations, agents, counters and events.

import (
	"encoding/json"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// MarshalJSON writes a pause.
func (p PauseInfo) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Target Target `json:"target"`
		By     string `json:"by,omitempty"`
		Note   string `json:"note,omitempty"`
		Reason string `json:"reason,omitempty"`
		Since  stamp  `json:"since"`
		Until  stamp  `json:"until,omitzero"`
	}{p.Target, p.By, p.Note, p.Reason, stamp(p.Since), stamp(p.Until)})
}

// MarshalJSON writes the task, and why it has not run.
func (e Explanation) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Now     stamp     `json:"now"`
		Reasons []Because `json:"reasons"`
		Task    TaskInfo  `json:"task"`
	}{stamp(e.Now), e.Reasons, e.Task})
}

// MarshalJSON writes a reason.
func (b Because) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Code  BecauseCode `json:"code"`
		Text  string      `json:"text"`
		Until stamp       `json:"until,omitzero"`
	}{b.Code, b.Text, stamp(b.Until)})
}

// MarshalJSON writes the tasks of an agent.
func (a AgentStats) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Agent  string `json:"agent_id"`
		Live   int64  `json:"live"`
		Due    stamp  `json:"next_due,omitzero"`
		Paused bool   `json:"is_paused"`
	}{a.Agent, a.Live, stamp(a.Due), a.Paused})
}

// MarshalJSON writes what a notice of activity did.
func (n Noticed) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Scheduled bool         `json:"scheduled"`
		Reason    store.Reason `json:"reason"`
		Due       *stamp       `json:"due_at"`
		Agent     string       `json:"agent_id"`
		ID        string       `json:"id"`
	}{n.Scheduled, n.Reason, maybe(n.Due), n.Agent, n.ID})
}

// maybe is a time that is null if there is none.
func maybe(t time.Time) *stamp {
	if t.IsZero() {
		return nil
	}
	s := stamp(t)
	return &s
}

// MarshalJSON writes the counters of a kind. Durations are in milliseconds; depth are the tasks that wait, without those that rest.
func (k KindStats) MarshalJSON() ([]byte, error) {
	type schedules struct {
		At       int64 `json:"at"`
		Every    int64 `json:"every"`
		Cron     int64 `json:"cron"`
		Activity int64 `json:"activity"`
	}
	type failure struct {
		At    stamp  `json:"at"`
		Agent string `json:"agent_id"`
		ID    string `json:"id"`
		Error string `json:"error"`
	}
	failures := make([]failure, len(k.Failed))
	for i, f := range k.Failed {
		failures[i] = failure{At: stamp(f.At), Agent: f.Agent, ID: f.ID, Error: f.Error}
	}
	ms := func(d time.Duration) int64 { return d.Milliseconds() }
	return json.Marshal(struct {
		Kind       string    `json:"kind"`
		Depth      int64     `json:"depth"`
		Resting    int64     `json:"resting"`
		Running    int64     `json:"running"`
		Runs       int64     `json:"runs"`
		Successes  int64     `json:"successes"`
		Failures   int64     `json:"failures"`
		Min        int64     `json:"min_duration_ms"`
		Avg        int64     `json:"avg_duration_ms"`
		Max        int64     `json:"max_duration_ms"`
		AvgLag     int64     `json:"avg_lag_ms"`
		MaxLag     int64     `json:"max_lag_ms"`
		BySchedule schedules `json:"by_schedule"`
		Recent     []failure `json:"recent_failures"`
	}{
		k.Kind, k.Depth(), k.Resting, k.Running, k.Runs, k.Runs - k.Failures, k.Failures, ms(k.Shortest), ms(k.Average()), ms(k.Longest),
		ms(k.AverageLag()), ms(k.LongestLag),
		schedules{k.At, k.Every, k.Cron, k.Activity},
		failures,
	})
}

// MarshalJSON writes an event. Durations are in milliseconds.
func (e Event) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Type    EventType   `json:"event"`
		Time    stamp       `json:"time"`
		Agent   string      `json:"agent_id"`
		ID      string      `json:"id"`
		Kind    string      `json:"kind"`
		Group   string      `json:"group,omitempty"`
		TraceID string      `json:"trace_id,omitempty"`
		Session string      `json:"session_id,omitempty"`
		Cube    string      `json:"mem_cube_id,omitempty"`
		Process string      `json:"process,omitempty"`
		Attempt int         `json:"attempt,omitempty"`
		Due     stamp       `json:"due_at,omitzero"`
		Wait    int64       `json:"queue_wait_ms"`
		Took    int64       `json:"exec_duration_ms"`
		Total   int64       `json:"total_duration_ms"`
		Outcome Outcome     `json:"outcome,omitempty"`
		Retried bool        `json:"retried,omitempty"`
		Status  Status      `json:"status,omitempty"`
		Next    stamp       `json:"next_due_at,omitzero"`
		Because BecauseCode `json:"because,omitempty"`
		Error   string      `json:"error,omitempty"`
		From    Status      `json:"from_status,omitempty"`
		Key     string      `json:"limit_key,omitempty"`
		By      string      `json:"by,omitempty"`
		Note    string      `json:"note,omitempty"`
		Reason  string      `json:"reason,omitempty"`
		Count   int         `json:"count,omitempty"`
		Code    Code        `json:"code,omitempty"`
		Used    Usage       `json:"used,omitempty"`

		Fault store.FaultCode `json:"fault,omitempty"`
	}{
		e.Type, stamp(e.Time), e.Agent, e.ID, e.Kind, e.Group, e.TraceID, e.SessionID, e.MemCubeID, e.Process, e.Attempt, stamp(e.Due), max(e.Wait.Milliseconds(), 0),
		e.Duration.Milliseconds(), max(e.Wait.Milliseconds(), 0) + e.Duration.Milliseconds(), e.Outcome, e.Retried, e.Status, stamp(e.Next), e.Because, e.Error,
		e.From, e.Key, e.By, e.Note, e.Reason, e.Count, e.Code, e.Used, e.Fault,
	})
}

// MarshalJSON writes the counters, with the store's time and when something is due next.
func (s Stats) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Now     stamp `json:"now"`
		NextDue stamp `json:"next_due,omitzero"`
		store.Counters

		Kinds []KindStats `json:"kinds,omitempty"`
	}{stamp(s.Now), stamp(s.NextDue), s.Counters, s.Kinds})
}

// MarshalJSON writes what an audit found.
func (r AuditReport) MarshalJSON() ([]byte, error) {
	faults := r.Faults
	if faults == nil {
		faults = []Fault{}
	}
	return json.Marshal(struct {
		Tasks      int     `json:"tasks"`
		Found      int     `json:"found"`
		Repairable int     `json:"repairable"`
		Faults     []Fault `json:"faults"`
	}{r.Tasks, r.Found, r.Repairable, faults})
}
