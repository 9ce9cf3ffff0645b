package store

// The targets of holds.

import (
	"encoding/json"
	"fmt"
)

// Target names the tasks that a hold is about: one task (Agent and ID), those of an agent, of a kind, those that share a
// key, or, with nothing set, all.
type Target struct{ Agent, ID, Kind, Key string }

// MarshalJSON writes the target with the fields that it has; all tasks are "all": true.
func (t Target) MarshalJSON() ([]byte, error) {
	return json.Marshal(targetJSON{t.Agent, t.ID, t.Kind, t.Key, t == Target{}})
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Target) UnmarshalJSON(data []byte) error {
	w := targetJSON{}
	err := json.Unmarshal(data, &w)
	*t = Target{Agent: w.Agent, ID: w.ID, Kind: w.Kind, Key: w.Key}
	return err
}

// targetJSON is a target.
type targetJSON struct {
	Agent string `json:"agent_id,omitempty"`
	ID    string `json:"id,omitempty"`
	Kind  string `json:"kind,omitempty"`
	Key   string `json:"limit_key,omitempty"`
	All   bool   `json:"all,omitempty"`
}

// String names the target: task "x" of agent "a", agent "a", kind "k", limit key "s", or everything.
func (t Target) String() string {
	switch {
	case t.ID != "":
		return fmt.Sprintf("task %q of agent %q", t.ID, t.Agent)
	case t.Agent != "":
		return fmt.Sprintf("agent %q", t.Agent)
	case t.Kind != "":
		return fmt.Sprintf("kind %q", t.Kind)
	case t.Key != "":
		return fmt.Sprintf("limit key %q", t.Key)
	default:
		return "everything"
	}
}
