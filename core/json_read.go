package core

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/seed-6f6f2c11/duly/core/schedule"
)

// UnmarshalJSON reads a task strictly: a field that is unknown, given twice or of the wrong type is an *[InvalidError]
// that names it. What the fields hold is checked when the task is submitted. A field that is null counts as left out.
func (t *NewTask) UnmarshalJSON(data []byte) error {
	fields, err := jsonObject(data)
	if err != nil {
		return err
	}
	read := NewTask{}
	for _, f := range fields {
		set := newTaskFields[f.name]
		if set == nil {
			return invalid(clip(f.name), "is not a field of a task")
		}
		if string(f.value) == "null" {
			continue
		}
		if err := set(&read, f.value); err != nil {
			return &InvalidError{Field: f.name, Reason: err.Error()}
		}
	}
	*t = read
	return nil
}

// newTaskFields read the fields of a task.
var newTaskFields = map[string]func(t *NewTask, data []byte) error{
	"agent_id":     textField(func(t *NewTask) *string { return &t.Agent }),
	"id":           textField(func(t *NewTask) *string { return &t.ID }),
	"kind":         textField(func(t *NewTask) *string { return &t.Kind }),
	"group":        textField(func(t *NewTask) *string { return &t.Group }),
	"cron":         textField(func(t *NewTask) *string { return &t.Cron }),
	"zone":         textField(func(t *NewTask) *string { return &t.Zone }),
	"day_match":    textField(func(t *NewTask) *schedule.DayMatch { return &t.DayMatch }),
	"gap":          textField(func(t *NewTask) *schedule.Gap { return &t.Gap }),
	"from":         textField(func(t *NewTask) *From { return &t.From }),
	"overlap":      textField(func(t *NewTask) *Overlap { return &t.Overlap }),
	"misfire":      textField(func(t *NewTask) *Misfire { return &t.Misfire }),
	"snooze_key":   textField(func(t *NewTask) *string { return &t.SnoozeKey }),
	"unique_key":   textField(func(t *NewTask) *string { return &t.UniqueKey }),
	"on_conflict":  textField(func(t *NewTask) *OnConflict { return &t.OnConflict }),
	"preset":       textField(func(t *NewTask) *string { return &t.Preset }),
	"trace_id":     textField(func(t *NewTask) *string { return &t.TraceID }),
	"traceparent":  textField(func(t *NewTask) *string { return &t.Traceparent }),
	"session_id":   textField(func(t *NewTask) *string { return &t.SessionID }),
	"user_id":      textField(func(t *NewTask) *string { return &t.UserID }),
	"mem_cube_id":  textField(func(t *NewTask) *string { return &t.MemCubeID }),
	"user_name":    textField(func(t *NewTask) *string { return &t.UserName }),
	"tags":         jsonField("must be a list of texts", func(t *NewTask) *[]string { return &t.Tags }),
	"level":        jsonField("must be 1, 2 or 3", func(t *NewTask) *Level { return &t.Level }),
	"max_attempts": jsonField("must be a whole number", func(t *NewTask) *int { return &t.MaxAttempts }),
	"at":           jsonField(`must be a time such as "2026-01-02T15:04:05Z"`, func(t *NewTask) *time.Time { return &t.At }),
	"delay":        durationField(func(t *NewTask) *time.Duration { return &t.Delay }),
	"every":        durationField(func(t *NewTask) *time.Duration { return &t.Every }),
	"jitter":       durationField(func(t *NewTask) *time.Duration { return &t.Jitter }),
	"min_interval": durationField(func(t *NewTask) *time.Duration { return &t.MinInterval }),
	"backoff":      durationField(func(t *NewTask) *time.Duration { return &t.Backoff }),
	"timeout":      durationField(func(t *NewTask) *time.Duration { return &t.Timeout }),
	"lease":        durationField(func(t *NewTask) *time.Duration { return &t.Lease }),
	"pause_after_failures": func(t *NewTask, data []byte) error {
		if json.Unmarshal(data, &t.PauseAfter) != nil {
			return errors.New("must be a whole number")
		}
		if t.PauseAfter <= 0 { // said, it means never; left out, it means the default
			t.PauseAfter = -1
		}
		return nil
	},
	"payload": func(t *NewTask, data []byte) error {
		t.Payload = json.RawMessage(bytes.Clone(data))
		return nil
	},
	"info": func(t *NewTask, data []byte) error {
		t.Info = bytes.Clone(data)
		return nil
	},
}

func textField[S ~string](field func(t *NewTask) *S) func(t *NewTask, data []byte) error {
	return jsonField("must be a text", field)
}

// jsonField reads what encoding/json can read; must is the error otherwise.
func jsonField[V any](must string, field func(t *NewTask) *V) func(t *NewTask, data []byte) error {
	return func(t *NewTask, data []byte) error {
		if json.Unmarshal(data, field(t)) != nil {
			return errors.New(must)
		}
		return nil
	}
}

func durationField(field func(t *NewTask) *time.Duration) func(t *NewTask, data []byte) error {
	return func(t *NewTask, data []byte) error {
		var s string
		err := json.Unmarshal(data, &s)
		if err == nil {
			*field(t), err = time.ParseDuration(s)
		}
		if err != nil {
			return errors.New(`must be a duration such as "90s" or "1h30m"`)
		}
		return nil
	}
}

// jsonMember is one field of a JSON object.
type jsonMember struct {
	name  string
	value json.RawMessage
}

// jsonObject splits a JSON object into its fields, in order. Unlike encoding/json it tells apart what differs in case only,
// and refuses what is not UTF-8 or stands twice.
func jsonObject(data []byte) ([]jsonMember, error) {
	if !utf8.Valid(data) {
		return nil, invalid("task", "is not valid UTF-8")
	}
	if err := json.Unmarshal(data, new(json.RawMessage)); err != nil {
		return nil, invalid("task", "is not valid JSON: %v", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	if first, err := decoder.Token(); err != nil || first != json.Delim('{') {
		return nil, invalid("task", "must be a JSON object")
	}
	var fields []jsonMember
	seen := map[string]bool{}
	for decoder.More() {
		name, err := decoder.Token()
		var f jsonMember
		if err == nil {
			f.name, _ = name.(string)
			err = decoder.Decode(&f.value)
		}
		if err != nil {
			return nil, invalid("task", "is not valid JSON: %v", err)
		}
		if seen[f.name] {
			return nil, invalid(clip(f.name), "is given twice")
		}
		seen[f.name] = true
		fields = append(fields, f)
	}
	return fields, nil
}

// ParseTasks reads what is submitted as JSON: one task, or several as {"tasks": [...]}. The error is an *[InvalidError]
// that names the field, as in "tasks[3].every".
func ParseTasks(data []byte) ([]NewTask, error) {
	fields, err := jsonObject(data)
	if err != nil {
		return nil, err
	}
	if len(fields) != 1 || fields[0].name != "tasks" {
		tasks := make([]NewTask, 1)
		return tasks, tasks[0].UnmarshalJSON(data)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(fields[0].value, &list); err != nil || list == nil {
		return nil, invalid("tasks", "must be a list")
	}
	if len(list) > MaxSubmit {
		return nil, invalid("tasks", "are %d: the limit is %d a call", len(list), MaxSubmit)
	}
	tasks := make([]NewTask, len(list))
	for i := range list {
		if err := tasks[i].UnmarshalJSON(list[i]); err != nil {
			return nil, within(fmt.Sprintf("tasks[%d]", i), err)
		}
	}
	return tasks, nil
}

// within puts the place of a task in front of the field that its error names.
func within(place string, err error) error {
	var inv *InvalidError
	if !errors.As(err, &inv) {
		return err
	}
	field := place + "." + inv.Field
	if inv.Field == "task" {
		field = place
	}
	return &InvalidError{Field: field, Reason: inv.Reason}
}
