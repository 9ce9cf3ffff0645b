package letta

// What a task posts when it is due.

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/seed-6f6f2c11/duly/adapters/internal/door"
	"github.com/seed-6f6f2c11/duly/adapters/internal/fields"
	"github.com/seed-6f6f2c11/duly/core"
)

// Kind is the kind of the tasks that keep scheduled messages. The payload of one is what is posted: messages, and what goes with them.
const Kind = "letta"

const notAgent = "must be the id of an agent: " + door.Chars

// Messages makes requests to the messages API of a Letta server, below its address. The webhook handler sends them: it is a dialect of that.
type Messages struct{}

// Request sends the messages to the agent of the task, in the background.
func (Messages) Request(t *core.Task[json.RawMessage]) (path string, body []byte, err error) {
	if !door.IsID(t.Agent) {
		return "", nil, core.SkipRetry(errors.New("letta: agent_id " + notAgent))
	}
	f, err := fields.Of("payload", t.Payload)
	if err == nil && f["messages"] == nil {
		err = errors.New("the payload must have messages")
	}
	if err != nil {
		return "", nil, core.SkipRetry(fmt.Errorf("letta: %w", err))
	}
	return "/v1/agents/" + t.Agent + "/messages/async", f.JSON(), nil
}

// Result keeps of an answer which run was started.
func (Messages) Result(answer []byte) []byte {
	all, err := fields.Of("answer", answer)
	if err != nil {
		return nil
	}
	return all.Only("id", "status", "created_at", "agent_id").JSON()
}
