package webhook

// Callbacks as events of https://cloudevents.io, in both of its modes for HTTP.

import (
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// eventOf reads what a message is about. It reports false if the message is about no task.
func eventOf(id string, message []byte) (contract.CloudEvent, bool) {
	var about struct {
		Type   string      `json:"type"` // of a notice; an ended task has none
		Agent  string      `json:"agent_id"`
		ID     string      `json:"id"`
		Status core.Status `json:"status"`
	}
	if json.Unmarshal(message, &about) != nil || about.Agent == "" || about.ID == "" {
		return contract.CloudEvent{}, false
	}
	return contract.TaskEvent(id, cmp.Or(about.Type, string(about.Status)), about.Agent, about.ID, message), true
}

// binary puts the attributes into headers; the body is the message. Receivers that know nothing of that see the same message as before.
func binary(h http.Header, e *contract.CloudEvent) {
	for name, value := range map[string]string{
		"Ce-Specversion": e.Version, "Ce-Id": e.ID, "Ce-Type": e.Type, "Ce-Source": e.Source, "Ce-Subject": e.Subject,
	} {
		h.Set(name, value)
	}
}
