package core

// Lines of exports, read as strictly as any input.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// MarshalJSON writes what became of an import, with the first refused lines.
func (i Imported) MarshalJSON() ([]byte, error) {
	type refused struct {
		Line  int    `json:"line"`
		Code  Code   `json:"code"`
		Field string `json:"field,omitempty"`
		Error string `json:"error"`
	}
	errs := make([]refused, len(i.Errors))
	for n, e := range i.Errors {
		errs[n] = refused{Line: e.Line, Code: CodeOf(e.Err), Error: clip(e.Err.Error())}
		if inv, ok := errors.AsType[*InvalidError](e.Err); ok {
			errs[n].Field = inv.Field
		}
	}
	return json.Marshal(struct {
		New     int       `json:"new"`
		Same    int       `json:"same"`
		Differs int       `json:"differs"`
		Refused int       `json:"refused"`
		Errors  []refused `json:"errors"`
	}{i.New, i.Same, i.Differs, i.Refused, errs})
}

// restored is where a task was when it was exported.
type restored struct {
	due, nominal store.Millis // zero for what its definition says
	interval     time.Duration
	attempt      int // that of the next run; 0 for the first
	calls        int
	failures     int
	checkpoint   []byte
	activity     *record.Activity
	hold         *store.Hold
	pause        *pauseLine
}

// planned reports whether it is known when the task is due.
func (r *restored) planned() bool { return r != nil && r.due != 0 }

// into puts a submission where its task was.
func (r *restored) into(sub *store.Submission, b *record.Body) {
	if r.due != 0 {
		sub.Due = store.When{At: r.due}
	}
	if r.activity != nil {
		b.Activity = r.activity
	}
	st := state{Nominal: r.nominal, Interval: r.interval, Attempt: max(r.attempt-1, 0), Calls: r.calls, Failures: r.failures, Checkpoint: r.checkpoint}
	if b.Manual {
		st.Nominal = store.Never
	}
	sub.State = st.First()
}

// order is who has paused it where it was exported, and why.
func (p *pauseLine) order() Order { return Order{By: p.By, Note: p.Note, Reason: p.Reason} }

// hold is a pause as a store gets it, from whoever imports it; nil if it is over.
func (p *pauseLine) hold(ctx context.Context, now store.Millis) *store.Hold {
	until := store.MillisOf(time.Time(p.Until))
	if until != 0 && until <= now {
		return nil
	}
	return &store.Hold{Note: orderOf(ctx, p.order()).encode(), Until: store.When{At: until}}
}

// parseImport reads a line: one with a task, or one with what is of its agent.
func parseImport(data []byte) (*headLine, *NewTask, error) {
	names, values, err := JSONObject("line", data)
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
			err = ofField(name, mustBe(values[name], &head.Agent, "a string"))
		case "profile":
			head.Profile = &Profile{}
			if err = json.Unmarshal(values[name], head.Profile); err != nil {
				err = within(name, err)
			}
		case "pause":
			head.Pause, err = parsePause(values[name])
		default:
			err = invalid(clip(name), "is not a field of a line: expected agent_id, profile or pause, or task and what belongs to it")
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if head.Profile != nil {
		p := *head.Profile
		p.Agent = "a" // which of them it is for is known later
		if err := p.check(); err != nil {
			return nil, nil, within("profile", err)
		}
	}
	return head, nil, nil
}

// ofField is an error of a field, with its name.
func ofField(field string, err error) error {
	if err == nil {
		return nil
	}
	return &InvalidError{Field: field, Reason: err.Error()}
}

// mostCheckpoint is more than any handler may leave, whatever its scheduler was set to.
const mostCheckpoint = 1 << 20

// taskLineFields read what a line has besides its task.
var taskLineFields = map[string]func(r *restored, data []byte) error{
	"due_at":     func(r *restored, data []byte) error { return millisField(data, &r.due) },
	"nominal_at": func(r *restored, data []byte) error { return millisField(data, &r.nominal) },
	"interval": func(r *restored, data []byte) error {
		d, err := parseSpan(data, schedule.MinInterval)
		r.interval = d
		return err
	},
	"attempt":              func(r *restored, data []byte) error { return countField(data, &r.attempt) },
	"calls":                func(r *restored, data []byte) error { return countField(data, &r.calls) },
	"consecutive_failures": func(r *restored, data []byte) error { return countField(data, &r.failures) },
	"checkpoint": func(r *restored, data []byte) error {
		if len(data) > mostCheckpoint {
			return fmt.Errorf("is %d bytes long: the limit is %d", len(data), mostCheckpoint)
		}
		r.checkpoint = bytes.Clone(data)
		return nil
	},
	"activity": func(r *restored, data []byte) (err error) { r.activity, err = parsePulse(data); return err },
	"pause":    func(r *restored, data []byte) (err error) { r.pause, err = parsePause(data); return err },
}

// parseTaskLine reads a line with a task.
func parseTaskLine(names []string, values map[string]json.RawMessage) (*NewTask, error) {
	r := &restored{}
	var t NewTask
	for _, name := range names {
		read := taskLineFields[name]
		switch {
		case name == "task":
			if err := t.UnmarshalJSON(values[name]); err != nil {
				return nil, within(name, err)
			}
			t.owned = t.Labels[LabelOwner] != "" // it was exported so
		case read == nil:
			return nil, invalid(clip(name), "is not a field of a line with a task")
		default:
			err := read(r, values[name])
			if inv, ok := err.(*InvalidError); ok { //nolint:errorlint // it is returned unwrapped
				return nil, inv
			}
			if err != nil {
				return nil, ofField(name, err)
			}
		}
	}
	t.restored = r
	return &t, r.check(&t)
}

// check refuses a task that does not go together with where it was.
func (r *restored) check(t *NewTask) error {
	switch {
	case t.OnConflict != "":
		return invalid("task.on_conflict", "must be left out: a task that exists stays as it is")
	case r.activity != nil && (r.due == 0 || t.timed() || t.Manual || t.Group != ""):
		return invalid("activity", "needs due_at, and a task without another schedule or a group")
	case r.due != 0 && t.Delay != 0:
		return invalid("due_at", "excludes a delay")
	}
	return nil
}

// millisField reads a time.
func millisField(data []byte, into *store.Millis) error {
	var at time.Time
	if json.Unmarshal(data, &at) != nil || at.IsZero() || at.Year() > maxYear || at.Year() < 1970 {
		return fmt.Errorf(`must be a time such as "2026-01-02T15:04:05Z", not after the year %d`, maxYear)
	}
	*into = max(store.MillisOf(at), 1)
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
	if err != nil || d < least || d > maxDelay {
		return 0, fmt.Errorf(`must be a duration between %s and %s, such as "90s"`, least, maxDelay)
	}
	return d, nil
}

// pauseText reads a text of a pause.
func pauseText(name string, data json.RawMessage, into *string, most int) error {
	if err := mustBe(data, into, "a string"); err != nil {
		return err
	}
	return validText("pause."+name, *into, most)
}

// parsePause reads a pause.
func parsePause(data []byte) (*pauseLine, error) {
	names, values, err := JSONObject("pause", data)
	if err != nil {
		return nil, err
	}
	p := &pauseLine{}
	for _, name := range names {
		switch name {
		case "by":
			err = pauseText(name, values[name], &p.By, MaxTextLen)
		case "note":
			err = pauseText(name, values[name], &p.Note, MaxTextLen)
		case "reason":
			err = pauseText(name, values[name], &p.Reason, maxErrorLen)
		case "until":
			var until store.Millis
			err = millisField(values[name], &until)
			p.Until = stamp(until.Time())
		default:
			err = invalid("pause."+clip(name), "is not a field of a pause: expected by, note, reason or until")
		}
		if inv, ok := err.(*InvalidError); ok { //nolint:errorlint // it is returned unwrapped
			return nil, inv
		}
		if err != nil {
			return nil, ofField("pause."+name, err)
		}
	}
	return p, nil
}

// parsePulse reads how an activity task answers to activity.
func parsePulse(data []byte) (*record.Activity, error) {
	names, values, err := JSONObject("activity", data)
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
			err = mustBe(values[name], &a.Debounce, "true or false")
		case "max_failures":
			err = mustBe(values[name], &a.MaxFailures, "a whole number")
		default:
			return nil, invalid("activity."+clip(name), "is not a field of an activity: expected delay, max_wait, debounce or max_failures")
		}
		if err != nil {
			return nil, ofField("activity."+name, err)
		}
	}
	return a, nil
}
