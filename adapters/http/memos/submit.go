package memos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/seed-6f6f2c11/duly/adapters/internal/memosmessage"
	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/adapters/internal/requestbody"
	"github.com/seed-6f6f2c11/duly/core"
)

// Messages: what MemOS's senders submit, and what is wrong with it in their words.

// enveloped wraps an endpoint so that all its errors have MemOS's shape, including those about the request: clients that submit
// read envelopes only.
// Only the text follows MemOS; the statuses come from our own table.
func (a *api) enveloped(answer func(r *http.Request) (int, any, error)) func(r *http.Request) (int, any, error) {
	return func(r *http.Request) (int, any, error) {
		status, body, err := answer(r)
		if _, worded := errors.AsType[*refusal](err); err != nil && !worded {
			p := problem.Of(err)
			if p.Status >= http.StatusInternalServerError {
				a.host.Failed(r, err)
			}
			err = errors.Join(refuse(p.Status, "%s", p.Detail), err)
		}
		return status, body, err
	}
}

// submit takes one message or a list of them: all or none.
// A list that is empty is a list, and submits nothing.
func (a *api) submit(r *http.Request) (int, any, error) {
	data, err := requestbody.JSON(r)
	if err != nil {
		return 0, nil, err
	}
	if err := core.CheckJSON("body", data); err != nil {
		return 0, nil, refuse(http.StatusUnprocessableEntity, "%s", err)
	}
	var raw []json.RawMessage
	// A null is no list: it is refused as a message below.
	list := json.Unmarshal(data, &raw) == nil && raw != nil
	if !list {
		raw = []json.RawMessage{bytes.TrimSpace(data)}
	}
	tasks := make([]core.NewTask, len(raw))
	// All messages are read before the first is stored: a refused batch must store nothing, as its sender repeats
	// the whole batch and would have some tasks twice.
	for i := range raw {
		if tasks[i], err = memosmessage.Task(raw[i]); err != nil {
			return 0, nil, asMessage(err, tasks, i, list)
		}
	}
	// Submit is all or none as well.
	submitted, err := a.scheduler.Submit(r.Context(), tasks...)
	if err != nil {
		return 0, nil, asMessage(problem.OfSubmit(err, tasks, "give each message an item_id"), tasks, 0, list)
	}
	// A message that was sent twice is no error: the second changes nothing.
	out, known := []itemStatus{}, 0
	for i := range submitted {
		out = append(out, itemStatus{TaskID: submitted[i].ID, Status: submitted[i].Status, Differs: submitted[i].Differs})
		if submitted[i].Differs {
			known++
		}
	}
	if known > 0 {
		return answered(fmt.Sprintf("Messages submitted; %d had the item_id of an existing message, which stays unchanged", known), out)
	}
	return answered("Messages submitted successfully", out)
}

// sendersFields are the fields of a message by those of the task that it makes: core names its own in errors, which the sender
// has never written.
var sendersFields = map[string]string{"id": "item_id", "kind": "label", "group": "task_id", "payload": "content", "agent_id": "user_id"}

// asMessage says what is wrong with a message in the words of its sender: i is which, if the error does not say.
// Errors of core name tasks[3].kind; the sender reads [3].label.
func asMessage(err error, tasks []core.NewTask, i int, list bool) error {
	inv, ok := errors.AsType[*core.InvalidError](err)
	if !ok {
		return err
	}
	field := inv.Field
	if _, scanErr := fmt.Sscanf(field, "tasks[%d].", &i); scanErr == nil {
		field = field[strings.IndexByte(field, '.')+1:]
	}
	// An agent that the message named itself keeps its name.
	if name, known := sendersFields[field]; known && (field != "agent_id" || i >= len(tasks) || tasks[i].Agent == tasks[i].UserID) {
		field = name
	}
	where := ""
	if list {
		where = fmt.Sprintf("[%d].", i)
	}
	return refuse(http.StatusUnprocessableEntity, "%s%s: %s", where, field, inv.Reason)
}
