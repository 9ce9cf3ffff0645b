package contract

// Events of https://cloudevents.io: what callbacks and the feed of events have in common.

import (
	"encoding/json"
	"errors"
	"net/url"

	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// CloudEvent is an event in the JSON format of CloudEvents 1.0. Its fields are the attributes.
type CloudEvent struct {
	Version     string          `json:"specversion"`
	ID          string          `json:"id"`
	Type        string          `json:"type"`
	Source      string          `json:"source"`
	Subject     string          `json:"subject,omitempty"`
	Time        string          `json:"time,omitempty"` // of the end of a task its data has the time
	ContentType string          `json:"datacontenttype"`
	Data        json.RawMessage `json:"data"`
}

// Types of events begin with these: those about one task, and all others.
const (
	ofTask = "duly.task."
	ofAny  = "duly."
)

// TaskEvent is an event about a task. what is the status in which the task ended, or the type of the event.
func TaskEvent(id, what, agent, task string, data []byte) CloudEvent {
	return CloudEvent{
		Version: "1.0", ID: id, Type: ofTask + what, Source: "/v1/agents/" + url.PathEscape(agent), Subject: url.PathEscape(task),
		ContentType: "application/json", Data: data,
	}
}

// FeedEvent is an event of the feed, which it contains as its data. The end of a task has the type that the callback of that end has.
// It fails for what is no event with an ID.
func FeedEvent(data []byte) (CloudEvent, error) {
	var e struct {
		ID     string          `json:"event_id"`
		Type   model.EventType `json:"event"`
		Time   string          `json:"time"`
		Agent  string          `json:"agent_id"`
		Task   string          `json:"id"`
		Status store.Status    `json:"status"`
	}
	if json.Unmarshal(data, &e) != nil || e.ID == "" || e.Type == "" {
		return CloudEvent{}, errors.New("it is no event of duly that has an id")
	}
	what := string(e.Type)
	if ends := e.Type == model.EventFinish || e.Type == model.EventCancel; ends && e.Status.Finished() {
		what = string(e.Status)
	}
	c := TaskEvent(e.ID, what, e.Agent, e.Task, data)
	c.Time = e.Time
	if e.Task == "" {
		c.Type = ofAny + what
	}
	if e.Agent == "" {
		c.Source = "/v1"
	}
	return c, nil
}

// MissedEvent says that events before the one with an ID were lost. data says how many, as far as that is known.
func MissedEvent(id string, data []byte) CloudEvent {
	return CloudEvent{Version: "1.0", ID: id, Type: ofAny + "missed", Source: "/v1", ContentType: "application/json", Data: data}
}
