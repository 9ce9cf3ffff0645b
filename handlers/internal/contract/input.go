// Package contract is what the ready-made handlers have in common: the JSON that a program or a server gets for a run, and
// what it can say about the run in return.
package contract

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// input is a run as programs and servers get it. Names and forms are those of tasks elsewhere in duly.
// The names are part of the contract with users' programs.
type input struct {
	ID          string          `json:"id"`
	Agent       string          `json:"agent_id"`
	Kind        string          `json:"kind"`
	Payload     json.RawMessage `json:"payload,omitempty"`
	Group       string          `json:"group,omitempty"`
	Level       core.Level      `json:"level"`
	Attempt     int             `json:"attempt"`
	Crashes     int             `json:"crashes"`
	Fence       core.Fence      `json:"fence"`
	Due         string          `json:"due_at"`
	Occurrence  string          `json:"occurrence"`
	Zone        string          `json:"zone,omitempty"`
	Parent      string          `json:"parent,omitempty"`
	Submitted   string          `json:"submitted_at"`
	Checkpoint  json.RawMessage `json:"checkpoint,omitempty"`
	Gate        json.RawMessage `json:"gate,omitempty"`
	Heard       *heard          `json:"heard,omitempty"`
	TraceID     string          `json:"trace_id,omitempty"`
	Traceparent string          `json:"traceparent,omitempty"`
	SessionID   string          `json:"session_id,omitempty"`
	UserID      string          `json:"user_id,omitempty"`
	MemCubeID   string          `json:"mem_cube_id,omitempty"`
	UserName    string          `json:"user_name,omitempty"`
	Info        json.RawMessage `json:"info,omitempty"`
	Tags        []string        `json:"tags,omitempty"`

	Labels map[string]string `json:"labels,omitempty"`
}

// The labels that have fields of their own, as they have in all of duly's JSON.
// A program that was written before there were labels finds them where they were.
const (
	labelMemCube  = "mem_cube_id"
	labelUserName = "user_name"
)

// others are the labels that have no field of their own.
func others(labels map[string]string) map[string]string {
	rest := maps.Clone(labels)
	delete(rest, labelMemCube)
	delete(rest, labelUserName)
	return rest
}

// Encode is the JSON of a run, with the checkpoint that an earlier one of its occurrence left.
// It fails only for a checkpoint that is not JSON, which no handler can have stored.
func Encode(t *core.Task[json.RawMessage]) ([]byte, error) {
	in := input{
		ID: t.ID, Agent: t.Agent, Kind: t.Kind, Payload: t.Payload, Group: t.Group, Level: t.Level, Attempt: t.Attempt,
		Crashes: t.Crashes, Fence: t.Fence, Due: Instant(t.Due), Occurrence: Instant(t.Occurrence), Zone: t.Zone,
		Parent: t.Parent, Submitted: Instant(t.Submitted), TraceID: t.TraceID, Traceparent: t.Traceparent,
		SessionID: t.SessionID, UserID: t.UserID, MemCubeID: t.Labels[labelMemCube], UserName: t.Labels[labelUserName],
		Info: t.Info, Tags: t.Tags, Labels: others(t.Labels), Gate: t.GateInput(), Heard: heardOf(t.RunInfo),
	}
	if _, err := t.Checkpoint(&in.Checkpoint); err != nil {
		return nil, err
	}
	return json.Marshal(in)
}

// Instant is a time of the store as texts have it: RFC 3339 in UTC, with milliseconds.
// It has the same length for all times, so that texts sort as times do.
func Instant(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z07:00") }
