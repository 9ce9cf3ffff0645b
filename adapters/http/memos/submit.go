package memos

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/adapters/internal/requestbody"
	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
	"github.com/seed-6f6f2c11/duly/core"
)

// Messages: what MemOS's senders submit, and what is wrong with it in their words.

// enveloped wraps an endpoint so that all its errors have MemOS's shape, those about the request included: whoever submits reads
// envelopes only.
// Only the text is MemOS's affair; statuses are those of our own table.
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
	// All messages are read and allowed before the first is stored: a refused batch must leave nothing behind that its sender, who
	// sends it again as a whole, would have twice.
	for i := range raw {
		if tasks[i], err = messageTask(raw[i]); err != nil {
			return 0, nil, asMessage(err, tasks, i, list)
		}
		if err := a.host.AllowTasks(r, tasks[i]); err != nil {
			return 0, nil, err
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

// keptStrings are the strings of a message that mean nothing to duly: they are part of the payload, for the handler.
// They are checked to be strings, so that a handler in another language can rely on it.
var keptStrings = [...]string{"content", "timestamp", "cube_id", "cube", "api_path", "stream_key", "redis_message_id"}

// messageTask is the task that a message makes. All of the message is its payload, as MemOS's handlers read it; what duly knows
// too, such as who and which group, is repeated in the fields of the task.
func messageTask(raw json.RawMessage) (core.NewTask, error) {
	t := core.NewTask{Payload: raw}
	o, err := strictjson.Parse("message", raw)
	if err != nil {
		return t, err
	}
	text := func(name string, into *string, zero bool) strictjson.Field {
		return strictjson.Field{Name: name, Into: into, Must: "must be a string", Zero: zero}
	}
	// They become labels, which is where a handler finds them.
	var agent, cube, userName string
	fields := []strictjson.Field{
		text("item_id", &t.ID, false), text("user_id", &t.UserID, false), text("agent_id", &agent, false), text("label", &t.Kind, false),
		text("mem_cube_id", &cube, true), text("task_id", &t.Group, true), text("trace_id", &t.TraceID, true),
		text("session_id", &t.SessionID, true), text("user_name", &userName, true),
	}
	for _, name := range keptStrings {
		fields = append(fields, text(name, new(string), true))
	}
	for _, name := range []string{"info", "chat_history", "user_context"} { // any JSON
		fields = append(fields, strictjson.Field{Name: name, Into: new(any), Zero: true})
	}
	if err := o.Read("a message", fields...); err != nil {
		return t, err
	}
	// Empty ones are left out, as MemOS sends all fields always.
	for name, value := range map[string]string{"mem_cube_id": cube, "user_name": userName} {
		if value == "" {
			continue
		}
		if t.Labels == nil {
			t.Labels = map[string]string{}
		}
		t.Labels[name] = value
	}
	// MemOS has no agents. The user is the one whose tasks are isolated from those of others, unless the sender knows better.
	if t.Agent = cmp.Or(agent, t.UserID); t.Agent == "" {
		return t, &core.InvalidError{Field: "user_id", Reason: "is required"}
	}
	if t.Kind == "" {
		return t, &core.InvalidError{Field: "label", Reason: "is required"}
	}
	if o.Has("info") {
		t.Info = o["info"]
	}
	// A label that duly knows brings its level, so that a query overtakes the reorganisation of memories; its schedule it does not
	// bring, as a message is due now.
	if i := slices.IndexFunc(core.Presets(), func(p core.Preset) bool { return p.Name == t.Kind && p.Cron == "" }); i >= 0 {
		t.Preset = t.Kind // its level
	}
	return t, nil
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
