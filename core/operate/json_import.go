package operate

// Lines of exports, read as strictly as any input.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/internal/wire"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// importedJSON is the result of an import, with the first refused lines.
type importedJSON struct {
	New     int           `json:"new"`
	Same    int           `json:"same"`
	Differs int           `json:"differs"`
	Refused int           `json:"refused"`
	Errors  []ImportError `json:"errors"`
}

// MarshalJSON writes the result of an import.
func (i Imported) MarshalJSON() ([]byte, error) {
	w := importedJSON(i)
	if w.Errors == nil {
		w.Errors = []ImportError{}
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (i *Imported) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, (*importedJSON)(i)) }

// refusedJSON is a refused line.
type refusedJSON struct {
	Line  int        `json:"line"`
	Code  model.Code `json:"code"`
	Field string     `json:"field,omitempty"`
	Error string     `json:"error"`
}

// MarshalJSON writes why a line was refused.
func (e ImportError) MarshalJSON() ([]byte, error) {
	w := refusedJSON{Line: e.Line, Code: model.CodeOf(e.Err), Error: check.Clip(e.Err.Error())}
	if inv, ok := errors.AsType[*store.InvalidError](e.Err); ok {
		w.Field = inv.Field
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes: a *[store.InvalidError], or a *[RefusedError].
func (e *ImportError) UnmarshalJSON(data []byte) error {
	w := refusedJSON{}
	err := json.Unmarshal(data, &w)
	*e = ImportError{Line: w.Line, Err: &RefusedError{Code: w.Code, Text: w.Error}}
	if reason, ok := strings.CutPrefix(w.Error, w.Field+" "); ok && w.Code == model.CodeInvalid {
		e.Err = &store.InvalidError{Field: w.Field, Reason: reason}
	}
	return err
}

// parseImport reads a line: one with a task, or a head line with the settings of its agent.
func parseImport(data []byte) (*headLine, *model.NewTask, error) {
	names, values, err := check.JSONObject("line", data)
	if err != nil {
		return nil, nil, err
	}
	if _, is := values["task"]; is {
		t, err := parseTaskLine(names, values)
		return nil, t, err
	}
	head := &headLine{}
	for _, name := range names {
		var err error
		switch name {
		case "agent_id":
			err = check.OfField(name, check.MustBe(values[name], &head.Agent, "a string"))
		case "profile":
			head.Profile = &model.Profile{}
			if err = head.Profile.Read(values[name]); err != nil {
				err = check.Within(name, err)
			}
		case "pause":
			head.Pause, err = parsePause(values[name])
		default:
			err = check.Invalid(check.Clip(name), "is not a field of a line: expected agent_id, profile or pause, or task and what belongs to it")
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if head.Profile != nil {
		p := *head.Profile
		p.Agent = "a" // which agent it is for is known later
		if err := p.Check(); err != nil {
			return nil, nil, check.Within("profile", err)
		}
	}
	return head, nil, nil
}

// mostCheckpoint is more than any handler may leave, under any settings of its scheduler.
const mostCheckpoint = 1 << 20

// taskLineFields read what a line has besides its task.
var taskLineFields = map[string]func(r *model.Restored, data []byte) error{
	"due_at":     func(r *model.Restored, data []byte) error { return millisField(data, &r.Due) },
	"nominal_at": func(r *model.Restored, data []byte) error { return millisField(data, &r.Nominal) },
	"interval": func(r *model.Restored, data []byte) error {
		d, err := parseSpan(data, schedule.MinInterval)
		r.Interval = d
		return err
	},
	"attempt":              func(r *model.Restored, data []byte) error { return countField(data, &r.Attempt) },
	"calls":                func(r *model.Restored, data []byte) error { return countField(data, &r.Calls) },
	"consecutive_failures": func(r *model.Restored, data []byte) error { return countField(data, &r.Failures) },
	"checkpoint": func(r *model.Restored, data []byte) error {
		if len(data) > mostCheckpoint {
			return fmt.Errorf("is %d bytes long: the limit is %d", len(data), mostCheckpoint)
		}
		r.Checkpoint = bytes.Clone(data)
		return nil
	},
	"activity": func(r *model.Restored, data []byte) (err error) { r.Activity, err = parsePulse(data); return err },
	"pause":    func(r *model.Restored, data []byte) (err error) { r.Pause, err = parsePause(data); return err },
}

// parseTaskLine reads a line with a task.
func parseTaskLine(names []string, values map[string]json.RawMessage) (*model.NewTask, error) {
	r := &model.Restored{}
	var t model.NewTask
	for _, name := range names {
		read := taskLineFields[name]
		switch {
		case name == "task":
			task, err := withLabels(values[name])
			if err == nil {
				err = t.UnmarshalJSON(task)
			}
			if err != nil {
				return nil, check.Within(name, err)
			}
			t.OwnedAsLabelled() // it was exported with its owner
		case read == nil:
			return nil, check.Invalid(check.Clip(name), "is not a field of a line with a task")
		default:
			err := read(r, values[name])
			if inv, ok := err.(*store.InvalidError); ok { //nolint:errorlint // it is returned unwrapped
				return nil, inv
			}
			if err != nil {
				return nil, check.OfField(name, err)
			}
		}
	}
	t.Restore(r)
	return &t, r.Check(&t)
}

// withLabels returns a task with its labels where they belong: exports of earlier versions had two as fields of the task.
func withLabels(task json.RawMessage) (json.RawMessage, error) {
	_, fields, err := check.JSONObject("task", task)
	if err != nil {
		return nil, err
	}
	former := map[string]json.RawMessage{}
	for _, name := range record.FormerLabels {
		if value, has := fields[name]; has {
			former[name] = value
			delete(fields, name)
		}
	}
	if len(former) == 0 {
		return task, nil
	}
	if labels, has := fields["labels"]; has {
		_, others, err := check.JSONObject("labels", labels)
		if err != nil {
			return nil, err
		}
		maps.Copy(former, others)
	}
	if fields["labels"], err = json.Marshal(former); err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// millisField reads a time.
func millisField(data []byte, into *moment.Millis) error {
	var at time.Time
	if json.Unmarshal(data, &at) != nil || at.IsZero() || at.Year() > check.MaxYear || at.Year() < 1970 {
		return fmt.Errorf(`must be a time such as "2026-01-02T15:04:05Z", not after the year %d`, check.MaxYear)
	}
	*into = max(moment.Of(at), 1)
	return nil
}

// countField reads a number of attempts, calls or failures.
func countField(data []byte, into *int) error {
	if json.Unmarshal(data, into) != nil || *into < 0 || *into > 1e9 {
		return fmt.Errorf("must be a whole number from 0 to %d", int(1e9))
	}
	return nil
}

// parseSpan reads a duration.
func parseSpan(data []byte, least time.Duration) (time.Duration, error) {
	var text string
	d, err := time.Duration(0), json.Unmarshal(data, &text)
	if err == nil {
		d, err = schedule.ParseDuration(text)
	}
	if err != nil || d < least || d > check.MaxDelay {
		return 0, fmt.Errorf(`must be a duration between %s and %s, such as "90s"`, least, check.MaxDelay)
	}
	return d, nil
}

// pauseText reads a text of a pause.
func pauseText(name string, data json.RawMessage, into *string, most int) error {
	if err := check.MustBe(data, into, "a string"); err != nil {
		return err
	}
	return check.ValidText("pause."+name, *into, most)
}

// parsePause reads a pause.
func parsePause(data []byte) (*model.PauseLine, error) {
	names, values, err := check.JSONObject("pause", data)
	if err != nil {
		return nil, err
	}
	p := &model.PauseLine{}
	for _, name := range names {
		switch name {
		case "by":
			err = pauseText(name, values[name], &p.By, check.MaxTextLen)
		case "note":
			err = pauseText(name, values[name], &p.Note, check.MaxTextLen)
		case "reason":
			err = pauseText(name, values[name], &p.Reason, check.MaxErrorLen)
		case "until":
			var until moment.Millis
			err = millisField(values[name], &until)
			p.Until = wire.Stamp(until.Time())
		default:
			err = check.Invalid("pause."+check.Clip(name), "is not a field of a pause: expected by, note, reason or until")
		}
		if inv, ok := err.(*store.InvalidError); ok { //nolint:errorlint // it is returned unwrapped
			return nil, inv
		}
		if err != nil {
			return nil, check.OfField("pause."+name, err)
		}
	}
	return p, nil
}

// parsePulse reads how an activity task responds to activity.
func parsePulse(data []byte) (*record.Activity, error) {
	names, values, err := check.JSONObject("activity", data)
	if err != nil {
		return nil, err
	}
	a := &record.Activity{}
	for _, name := range names {
		switch name {
		case "delay":
			a.Delay, err = parseSpan(values[name], 0)
		case "max_wait":
			a.MaxWait, err = parseSpan(values[name], 0)
		case "debounce":
			err = check.MustBe(values[name], &a.Debounce, "true or false")
		case "max_failures":
			err = check.MustBe(values[name], &a.MaxFailures, "a whole number")
		default:
			return nil, check.Invalid("activity."+check.Clip(name), "is not a field of an activity: expected delay, max_wait, debounce or max_failures")
		}
		if err != nil {
			return nil, check.OfField("activity."+name, err)
		}
	}
	return a, nil
}
