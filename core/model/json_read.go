package model

// Reading tasks from JSON: the one strict reader for HTTP, files and the command line.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/wire"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// UnmarshalJSON reads a task strictly: a field that is unknown, given twice or of the wrong type is an *[store.InvalidError]
// that names it. Values are checked when the task is submitted. A field that is null counts as left out.
func (t *NewTask) UnmarshalJSON(data []byte) error {
	names, values, err := check.JSONObject("task", data)
	if err != nil {
		return err
	}
	read := NewTask{}
	for _, name := range names {
		if name == "at" && isLocal(values[name]) {
			continue // read below, as its zone may come after it
		}
		set := newTaskFields[name]
		if set == nil {
			return check.NotOfTask(name)
		}
		if string(values[name]) == "null" {
			continue
		}
		if err := set(&read, values[name]); err != nil {
			return &store.InvalidError{Field: name, Reason: err.Error()}
		}
	}
	if at := values["at"]; isLocal(at) {
		if err := read.readLocal(at); err != nil {
			return err
		}
	}
	*t = read
	return nil
}

// newTaskFields read the fields of a task. A field that is given is never taken for one that is left out: zero means what
// it says, as in "timeout": "0s", or is refused.
var newTaskFields = map[string]func(t *NewTask, data []byte) error{
	"agent_id":       nameField(func(t *NewTask) *string { return &t.Agent }),
	"id":             nameField(func(t *NewTask) *string { return &t.ID }),
	"kind":           nameField(func(t *NewTask) *string { return &t.Kind }),
	"cron":           nameField(func(t *NewTask) *string { return &t.Cron }),
	"when":           nameField(func(t *NewTask) *string { return &t.When }),
	"zone":           nameField(func(t *NewTask) *string { return &t.Zone }),
	"day_match":      nameField(func(t *NewTask) *schedule.DayMatch { return &t.DayMatch }),
	"gap":            nameField(func(t *NewTask) *schedule.Gap { return &t.Gap }),
	"from":           nameField(func(t *NewTask) *From { return &t.From }),
	"overlap":        nameField(func(t *NewTask) *Overlap { return &t.Overlap }),
	"misfire":        nameField(func(t *NewTask) *Misfire { return &t.Misfire }),
	"limit_key":      nameField(func(t *NewTask) *string { return &t.LimitKey }),
	"callback":       nameField(func(t *NewTask) *string { return &t.Callback }),
	"on_late":        nameField(func(t *NewTask) *string { return &t.OnLate }),
	"unique_key":     nameField(func(t *NewTask) *string { return &t.UniqueKey }),
	"on_conflict":    nameField(func(t *NewTask) *OnConflict { return &t.OnConflict }),
	"preset":         nameField(func(t *NewTask) *string { return &t.Preset }),
	"group":          labelField(func(t *NewTask) *string { return &t.Group }),
	"trace_id":       labelField(func(t *NewTask) *string { return &t.TraceID }),
	"traceparent":    labelField(func(t *NewTask) *string { return &t.Traceparent }),
	"session_id":     labelField(func(t *NewTask) *string { return &t.SessionID }),
	"user_id":        labelField(func(t *NewTask) *string { return &t.UserID }),
	"manual":         jsonField("must be true or false", func(t *NewTask) *bool { return &t.Manual }),
	"paused":         jsonField("must be true or false", func(t *NewTask) *bool { return &t.Paused }),
	"paused_reason":  labelField(func(t *NewTask) *string { return &t.PausedReason }),
	"urgent":         jsonField("must be true or false", func(t *NewTask) *bool { return &t.Urgent }),
	"tags":           jsonField("must be an array of strings", func(t *NewTask) *[]string { return &t.Tags }),
	"level":          someField("must be 1, 2 or 3", func(t *NewTask) *store.Level { return &t.Level }),
	"max_attempts":   someField("must be a whole number from 1 on", func(t *NewTask) *int { return &t.MaxAttempts }),
	"at":             someField(`must be a time such as "2026-01-02T15:04:05Z"`, func(t *NewTask) *time.Time { return &t.At }),
	"delay":          durationField(0, func(t *NewTask) *time.Duration { return &t.Delay }),
	"every":          durationField(refused, func(t *NewTask) *time.Duration { return &t.Every }),
	"jitter":         durationField(none, func(t *NewTask) *time.Duration { return &t.Jitter }),
	"min_interval":   durationField(0, func(t *NewTask) *time.Duration { return &t.MinInterval }),
	"expect_success": durationField(refused, func(t *NewTask) *time.Duration { return &t.ExpectSuccess }),
	"backoff":        durationField(none, func(t *NewTask) *time.Duration { return &t.Backoff }),
	"timeout":        durationField(none, func(t *NewTask) *time.Duration { return &t.Timeout }),
	"lease":          durationField(refused, func(t *NewTask) *time.Duration { return &t.Lease }),
	"pause_after_failures": func(t *NewTask, data []byte) error {
		if json.Unmarshal(data, &t.PauseAfter) != nil {
			return errors.New("must be a whole number")
		}
		if t.PauseAfter <= 0 { // given, it means never; left out, it means the default
			t.PauseAfter = -1
		}
		return nil
	},
	"labels": func(t *NewTask, data []byte) error {
		names, values, err := check.JSONObject("labels", data)
		if err != nil {
			return errors.New("must be an object of strings that names each label once")
		}
		for _, name := range names {
			var value string
			if json.Unmarshal(values[name], &value) != nil || string(values[name]) == "null" {
				return errors.New("must be an object of strings that names each label once")
			}
			t.setLabel(name, value)
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

// What a duration of zero means in a NewTask: itself, none in place of a default, or a mistake.
const (
	none    = wire.None
	refused = time.Duration(math.MinInt64)
)

// nameField reads a string that is a name or a choice, and refuses an empty one.
func nameField[S ~string](field func(t *NewTask) *S) func(t *NewTask, data []byte) error {
	read := labelField(field)
	return func(t *NewTask, data []byte) error {
		if err := read(t, data); err != nil {
			return err
		}
		if *field(t) == "" {
			return errors.New("must not be empty: leave it out if it has no value")
		}
		return nil
	}
}

// labelField reads a string that is only stored: an empty one means none.
func labelField[S ~string](field func(t *NewTask) *S) func(t *NewTask, data []byte) error {
	return jsonField("must be a string", field)
}

// jsonField reads what encoding/json can read; must is the text of the error otherwise.
func jsonField[V any](must string, field func(t *NewTask) *V) func(t *NewTask, data []byte) error {
	return func(t *NewTask, data []byte) error {
		if json.Unmarshal(data, field(t)) != nil {
			return errors.New(must)
		}
		return nil
	}
}

// someField is jsonField for a value that must not be zero.
func someField[V comparable](must string, field func(t *NewTask) *V) func(t *NewTask, data []byte) error {
	read := jsonField(must, field)
	return func(t *NewTask, data []byte) error {
		if err := read(t, data); err != nil {
			return err
		}
		if *field(t) == *new(V) {
			return fmt.Errorf("%s, not %s", must, data)
		}
		return nil
	}
}

// durationField reads a duration; zero is what is stored for "0s".
func durationField(zero time.Duration, field func(t *NewTask) *time.Duration) func(t *NewTask, data []byte) error {
	return func(t *NewTask, data []byte) error {
		var s string
		var d time.Duration
		err := json.Unmarshal(data, &s)
		if err == nil {
			d, err = schedule.ParseDuration(s)
		}
		switch {
		case err != nil:
			return errors.New(`must be a duration such as "90s", "1h30m" or "1d"`)
		case d < 0:
			return fmt.Errorf("must not be negative, not %s", d)
		case d == 0 && zero == refused:
			return errors.New(`must be longer than "0s": leave it out for the default`)
		case d == 0:
			d = zero
		}
		*field(t) = d
		return nil
	}
}

// ParseTasks reads what is submitted as JSON: one task, or several as {"tasks": [...]}. The error is an *[store.InvalidError]
// that names the field, as in "tasks[3].every".
func ParseTasks(data []byte) ([]NewTask, error) {
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) {
		return nil, check.Invalid("task", `must be a JSON object; write several as {"tasks": [...]}`)
	}
	names, values, err := check.JSONObject("task", data)
	if err != nil {
		return nil, err
	}
	if len(names) != 1 || names[0] != "tasks" {
		tasks := make([]NewTask, 1)
		return tasks, tasks[0].UnmarshalJSON(data)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(values["tasks"], &list); err != nil || list == nil {
		return nil, check.Invalid("tasks", "must be an array")
	}
	if len(list) > MaxSubmit {
		return nil, check.Invalid("tasks", "are %d: the limit is %d a call", len(list), MaxSubmit)
	}
	tasks := make([]NewTask, len(list))
	for i := range list {
		if err := tasks[i].UnmarshalJSON(list[i]); err != nil {
			return nil, check.Within(fmt.Sprintf("tasks[%d]", i), err)
		}
	}
	return tasks, nil
}
