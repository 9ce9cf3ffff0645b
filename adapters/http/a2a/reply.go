package a2a

// A message to a task that asks something is the answer to it.

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// briefly is how long an answer may take to be stored at most: if its process dies, the same message is taken after that.
const briefly = 30 * time.Second

// asks reports whether a task waits for a person: for the answer to its question, or for an approval. One that has its answer, and no run yet, is due at another
// time than that at which its wait ends.
func asks(t *core.TaskInfo) bool {
	w := t.Awaiting
	return t.Status == core.StatusWaiting && w != nil && (w.Question != "" || w.From == core.FromApproval) && t.NextRun.Equal(w.Until)
}

// question is what a task asks.
func question(t *core.TaskInfo) string {
	if t.Awaiting.Question == "" {
		return "The task waits for an approval."
	}
	return t.Awaiting.Question
}

// mayReply refuses a caller that may not send a signal.
func (a *api) mayReply(c *call) error {
	err := a.scheduler.Authorize(c.Context(), core.Access{Action: model.ActionApprove, Agent: c.agent})
	if err != nil {
		err = a.scheduler.Authorize(c.Context(), core.Access{Action: model.ActionControl, Agent: c.agent})
	}
	return err
}

// reply gives a task the answer to its question. The message is taken once: sent again, it answers no other question that the task has come to ask meanwhile.
func (a *api) reply(c *call, m *sent) (out any, err error) {
	// guard: a2a-reply
	if err := a.mayReply(c); err != nil {
		return nil, err
	}
	what, receipt, err := a.scheduler.Receive(c.Context(), core.Message{Sender: "a2a " + c.agent, ID: m.id, Content: m.whole, Within: briefly})
	switch {
	case err != nil:
		return nil, err
	// guard: a2a-once
	case what == core.ReceptionDuplicate:
		return a.answer(c, m.task, m)
	case what == core.ReceptionDiffers:
		return nil, errOtherMessage
	case what == core.ReceptionBusy:
		return nil, problem.TooMany("the same message is being taken; retry later", 5*time.Second)
	}
	taken := false
	defer func() {
		if end := receipt.End(c.Context(), taken); end != nil {
			a.host.Failed(c.Request, fmt.Errorf("note that a message was taken: %w", end))
		}
	}()
	if err := a.tell(c, m); err != nil {
		return nil, err
	}
	taken = true
	return a.answer(c, m.task, m)
}

// tell sends the answer to the question that a task asks now.
func (a *api) tell(c *call, m *sent) error {
	t, err := a.task(c, m.task)
	switch {
	case err != nil:
		return err
	case m.context != "" && m.context != contextOf(t.ID):
		return &core.InvalidError{Field: "contextId", Reason: "must be that of the task, or left out"}
	case t.Status.Finished():
		return refuse(codeUnsupported, "the task has ended: send the message without taskId, and with the contextId of the task if it belongs to the same conversation")
	case !asks(t):
		return refuse(codeUnsupported, "the task asks nothing now: send the message without taskId")
	}
	payload, err := m.payload(t.Awaiting.From == core.FromApproval)
	if err != nil {
		return err
	}
	q := core.Question{Agent: c.agent, ID: t.ID, Key: t.Awaiting.Key, Fence: t.Awaiting.Fence, Text: t.Awaiting.Question}
	err = a.scheduler.Answer(c.Context(), q, payload, "")
	if errors.Is(err, model.ErrClosed) {
		return refuse(codeUnsupported, "the question was answered before")
	}
	return err
}

// payload is an answer as the run gets it: an object that was sent as data, or the texts of the message. An approval has to be clear.
func (m *sent) payload(approval bool) (json.RawMessage, error) {
	var message struct {
		Parts []struct {
			Text *string
			Data json.RawMessage
		}
	}
	if err := json.Unmarshal(m.whole, &message); err != nil {
		return nil, &core.InvalidError{Field: "message", Reason: "cannot be read"}
	}
	var texts []string
	for _, p := range message.Parts {
		switch {
		case p.Data != nil && len(message.Parts) == 1:
			return p.Data, nil
		case p.Text == nil:
			return nil, &core.InvalidError{Field: "parts", Reason: "must be texts, or one data part: they answer a question"}
		}
		texts = append(texts, *p.Text)
	}
	name, text := "answer", strings.Join(texts, "\n")
	if approval {
		name, text = "decision", strings.ToLower(strings.TrimSpace(text))
		if text != "approve" && text != "refuse" {
			return nil, &core.InvalidError{Field: "parts", Reason: `must say "approve" or "refuse": the task waits for an approval`}
		}
	}
	return json.Marshal(map[string]string{name: text})
}
