// Package memosmessage translates a message of MemOS into a task, for all adapters that take in such messages.
package memosmessage

import (
	"cmp"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// keptStrings are the strings of a message that mean nothing to duly: they are part of the payload, for the handler.
// They are checked to be strings, so that a handler in another language can rely on it.
var keptStrings = [...]string{"content", "timestamp", "cube_id", "cube", "api_path", "stream_key", "redis_message_id"}

// labels are those of a message. Empty ones are left out, as MemOS sends all fields always.
func labels(cube, userName string) map[string]string {
	all := map[string]string{"mem_cube_id": cube, "user_name": userName}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	if len(all) == 0 {
		return nil
	}
	return all
}

// Task is the task that a message makes. All of the message is its payload, as MemOS's handlers read it; what duly knows
// too, such as who and which group, is repeated in the fields of the task.
func Task(raw json.RawMessage) (core.NewTask, error) {
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
	var kept [len(keptStrings)]string
	for i, name := range keptStrings {
		fields = append(fields, text(name, &kept[i], true))
	}
	for _, name := range []string{"info", "chat_history", "user_context"} { // any JSON
		fields = append(fields, strictjson.Field{Name: name, Into: new(any), Zero: true})
	}
	if err := o.Read("a message", fields...); err != nil {
		return t, err
	}
	t.Labels = labels(cube, userName)
	// MemOS has no agents. The user is the one whose tasks are isolated from those of others, unless the sender knows better.
	if t.Agent = cmp.Or(agent, t.UserID); t.Agent == "" {
		return t, &core.InvalidError{Field: "user_id", Reason: "is required"}
	}
	if t.Kind == "" {
		return t, &core.InvalidError{Field: "label", Reason: "is required"}
	}
	if !o.Has("content") {
		return t, &core.InvalidError{Field: "content", Reason: "is required: a message may have an empty one"}
	}
	if timestamp := kept[slices.Index(keptStrings[:], "timestamp")]; timestamp != "" && !isTime(timestamp) {
		return t, &core.InvalidError{Field: "timestamp", Reason: "must be a time of ISO 8601, such as 2026-03-01T08:30:00+00:00"}
	}
	if o.Has("info") {
		t.Info = o["info"]
	}
	// A label that duly knows brings its level, so that a query overtakes the reorganisation of memories; its schedule it does not
	// bring, as a message is due now.
	if i := slices.IndexFunc(model.Presets(), func(p model.Preset) bool { return p.Name == t.Kind && p.Cron == "" }); i >= 0 {
		t.Preset = t.Kind // its level
	}
	return t, nil
}

// isTime reports whether a text is a time as MemOS reads it, with Python's datetime.fromisoformat: a date, or a date and a time with a T or a space
// between, with or without a fraction and an offset.
func isTime(text string) bool {
	for _, layout := range []string{
		"2006-01-02T15:04:05Z07:00", "2006-01-02T15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05", "2006-01-02T15:04Z07:00",
		"2006-01-02T15:04", "2006-01-02 15:04", "2006-01-02",
	} {
		if _, err := time.Parse(layout, text); err == nil {
			return true
		}
	}
	return false
}

// DefaultPrefix is how the names of MemOS's streams begin by default.
const DefaultPrefix = "scheduler:messages:stream:v2.0"

// StreamPrefix is how the names of MemOS's streams begin here: as the variables say that MemOS itself reads, or by default.
func StreamPrefix() string {
	return cmp.Or(os.Getenv("MEMSCHEDULER_REDIS_STREAM_KEY_PREFIX"), os.Getenv("MEMSCHEDULER_STREAM_KEY_PREFIX"), DefaultPrefix)
}
