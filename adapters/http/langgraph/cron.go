package langgraph

// A cron as the task that keeps it, and as the API shows it.

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/fields"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Kind is the kind of the tasks that keep crons.
const Kind = "langgraph"

// payload is what a task keeps of a cron. Its schedule, zone and pause are the task's own.
type payload struct {
	// Run is what is posted to start a run, without the assistant: that is the agent of the task.
	Run fields.Fields `json:"run"`
	// Thread is the thread that runs belong to; each has a thread of its own if it is empty.
	Thread string `json:"thread_id,omitempty"`
	// Completed is what happens to the thread of a run without one: delete or keep.
	Completed string    `json:"on_run_completed,omitempty"`
	End       time.Time `json:"end_time,omitzero"`
	Created   time.Time `json:"created_at,omitzero"`
	Updated   time.Time `json:"updated_at,omitzero"`
}

// cron is a cron in the answers of the API.
type cron struct {
	ID        string          `json:"cron_id"`
	Assistant string          `json:"assistant_id"`
	Thread    *string         `json:"thread_id"`
	Completed *string         `json:"on_run_completed"`
	End       *time.Time      `json:"end_time"`
	Schedule  string          `json:"schedule"`
	Zone      string          `json:"timezone"`
	Created   time.Time       `json:"created_at"`
	Updated   time.Time       `json:"updated_at"`
	Payload   json.RawMessage `json:"payload"`
	User      *string         `json:"user_id"` // duly knows agents alone
	Next      *time.Time      `json:"next_run_date"`
	Metadata  json.RawMessage `json:"metadata"`
	Enabled   bool            `json:"enabled"`
}

// errNoCron is the answer about a cron that does not exist.
var errNoCron = fmt.Errorf("there is no such cron: %w", core.ErrNotFound)

// idOf names a cron by its agent and its task: no call has to look for the agent.
func idOf(agent, task string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(agent + "\x00" + task)) // no agent has a control character
}

// taskOf is the task that a cron_id names.
func taskOf(id string) (agent, task string, err error) {
	data, err := base64.RawURLEncoding.DecodeString(id)
	agent, task, found := strings.Cut(string(data), "\x00")
	if err != nil || !found {
		return "", "", errNoCron
	}
	return agent, task, nil
}

// shown is a task as a cron. It reports false if it is none, as a task of the same kind that was submitted by other means.
func shown(t *core.TaskInfo) (*cron, bool) {
	var p payload
	if t.Kind != Kind || t.Cron == "" || t.Status.Finished() || json.Unmarshal(t.Payload, &p) != nil {
		return nil, false
	}
	c := &cron{
		ID: idOf(t.Agent, t.ID), Assistant: t.Agent, Schedule: t.Cron, Zone: zoneOf(t.Zone), Created: orElse(p.Created, t.Submitted), Updated: orElse(p.Updated, t.Submitted),
		Payload: p.Run.Merge(fields.Fields{"assistant_id": quoted(t.Agent)}).JSON(), Metadata: p.Run["metadata"], Enabled: true,
	}
	if c.Metadata == nil {
		c.Metadata = json.RawMessage("{}")
	}
	if p.Thread != "" {
		c.Thread = &p.Thread
	}
	if p.Completed != "" {
		c.Completed = &p.Completed
	}
	if !p.End.IsZero() {
		c.End = &p.End
	}
	for _, pause := range t.Pauses {
		if pause.Target == (store.Target{Agent: t.Agent, ID: t.ID}) {
			c.Enabled = false
			if pause.Since.After(c.Updated) {
				c.Updated = pause.Since
			}
		}
	}
	if c.Enabled && !t.NextRun.IsZero() && (p.End.IsZero() || t.NextRun.Before(p.End)) {
		c.Next = &t.NextRun
	}
	return c, true
}

// zoneOf is a zone as it is shown.
func zoneOf(zone string) string {
	if zone == "" {
		return "UTC"
	}
	return zone
}

// orElse is a time, or another one if it is zero.
func orElse(t, other time.Time) time.Time {
	if t.IsZero() {
		return other
	}
	return t
}

// quoted is a text as JSON.
func quoted(text string) json.RawMessage {
	data, _ := json.Marshal(text) //nolint:errchkjson // a text never fails
	return data
}
