package importer

// Schedules of Temporal: each time of a schedule is a task, and Temporal runs what it starts.

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// calendarRange is a part of a field.
type calendarRange struct{ Start, End, Step int }

// calendar has the fields of an expression, all of which have to match.
type calendar struct {
	Second, Minute, Hour, DayOfMonth, Month, Year, DayOfWeek []calendarRange
}

// temporalSpec says when a schedule is due. Its calendars are what the server makes of cron expressions, too.
type temporalSpec struct {
	Calendars []calendar                         `json:"structuredCalendar"`
	Intervals []struct{ Interval, Phase string } `json:"interval"`
	Cron      []string                           `json:"cronString"`
	Excluded  []any                              `json:"excludeStructuredCalendar"`
	Start     *string                            `json:"startTime"`
	End       *string                            `json:"endTime"`
	Jitter    string                             `json:"jitter"`
	Zone      string                             `json:"timezoneName"`
}

// temporalSchedule is an entry of a list, or the answer to describe, which has no id.
type temporalSchedule struct {
	ScheduleID string `json:"scheduleId"`
	Info       struct {
		Spec   *temporalSpec
		Paused bool
	}
	Schedule struct {
		Spec   *temporalSpec
		Action struct {
			Start struct {
				WorkflowID string                `json:"workflowId"`
				Type       struct{ Name string } `json:"workflowType"`
				Queue      struct{ Name string } `json:"taskQueue"`
				Input      struct {
					Payloads []struct {
						Metadata map[string][]byte
						Data     []byte
					}
				}
				Memo, SearchAttributes, RetryPolicy map[string]any
			} `json:"startWorkflow"`
		}
		Policies struct{ OverlapPolicy string }
		State    struct {
			Paused    bool
			Limited   bool   `json:"limitedActions"`
			Remaining string `json:"remainingActions"`
		}
	}
}

// temporal reads objects, or arrays of them, one after another.
func (f *Found) temporal(data []byte, agent string) error {
	for d := json.NewDecoder(bytes.NewReader(data)); ; {
		var raw json.RawMessage
		err := d.Decode(&raw)
		if errors.Is(err, io.EOF) {
			break
		}
		var all []temporalSchedule
		if err == nil {
			if raw[0] != '[' {
				raw = append(append([]byte{'['}, raw...), ']')
			}
			err = json.Unmarshal(raw, &all)
		}
		if err != nil {
			return &core.InvalidError{Field: "file", Reason: "is no output of temporal schedule: " + err.Error()}
		}
		for i := range all {
			f.temporalSchedule(&all[i], agent)
		}
	}
	if len(f.Tasks) > 0 {
		f.left("handlers", "Temporal starts the workflows when duly says so: pause the schedules there (`temporal schedule toggle --pause`), or each runs twice")
	}
	return nil
}

// temporalSchedule reads one.
func (f *Found) temporalSchedule(s *temporalSchedule, agent string) {
	start := &s.Schedule.Action.Start
	id, spec := cmp.Or(s.ScheduleID, start.WorkflowID), cmp.Or(s.Schedule.Spec, s.Info.Spec)
	where := "schedule " + id
	if id == "" || spec == nil || s.ScheduleID == "" && start.Type.Name == "" {
		f.left(where, "left out: it has no times, or starts no workflow")
		return
	}
	if len(spec.Excluded) > 0 {
		f.left(where, "left out: it excludes times, which duly cannot say")
		return
	}
	t := Task{Agent: agent, ID: id, Zone: spec.Zone, Paused: s.Info.Paused || s.Schedule.State.Paused}
	f.temporalLeft(where, s, spec)
	if d, err := time.ParseDuration(spec.Jitter); err == nil {
		f.jitter(where, &t, d)
	}
	before := len(f.Tasks)
	t.Kind = f.kind(named(id))
	f.times(where, t, spec)
	if len(f.Tasks) > before {
		f.Kinds[t.Kind] = Handler{Exec: f.starts(where, s)}
	}
}

// temporalLeft notes what of a schedule duly does not keep.
func (f *Found) temporalLeft(where string, s *temporalSchedule, spec *temporalSpec) {
	for _, l := range []struct {
		have bool
		what string
	}{
		{s.ScheduleID == "", "overlap " + strings.ToLower(strings.TrimPrefix(s.Schedule.Policies.OverlapPolicy, "SCHEDULE_OVERLAP_POLICY_")) + ": a run of duly ends when the workflow has started, which is then on its own"},
		{spec.Start != nil, "startTime: it is due from now on"},
		{spec.End != nil, "endTime: duly ends no task at a time"},
		{s.Schedule.State.Limited, "it ends after " + s.Schedule.State.Remaining + " more runs: duly counts none, delete the task then"},
		{len(s.Schedule.Action.Start.Memo)+len(s.Schedule.Action.Start.SearchAttributes)+len(s.Schedule.Action.Start.RetryPolicy) > 0, "its memo, search attributes and retry policy: add their flags to exec"},
	} {
		if l.have {
			f.left(where, "%s", l.what)
		}
	}
}

// starts is the command that starts what a schedule does. A list does not say what that is: then Temporal is to do it by the schedule.
func (f *Found) starts(where string, s *temporalSchedule) []string {
	if s.ScheduleID != "" {
		return []string{"sh", "-c", `exec temporal schedule trigger --schedule-id "$0"`, s.ScheduleID}
	}
	start := &s.Schedule.Action.Start
	argv := []string{"sh", "-c", `exec temporal workflow start --workflow-id "$DULY_TASK_ID-$DULY_OCCURRENCE" "$@"`, "temporal", "--type", start.Type.Name, "--task-queue", start.Queue.Name}
	for _, p := range start.Input.Payloads {
		if encoding := string(p.Metadata["encoding"]); encoding != "json/plain" {
			f.left(where, "an input of %s: write it into exec", cmp.Or(encoding, "no encoding"))
			continue
		}
		argv = append(argv, "--input", string(p.Data))
	}
	return argv
}

// calendar adds a task for a calendar.
func (f *Found) calendar(where string, t Task, c *calendar) {
	if len(c.Year) > 0 {
		f.left(where, "left out: duly knows no years in a schedule")
		return
	}
	day, weekday := field(c.DayOfMonth, 1, 31, "*"), field(c.DayOfWeek, 0, 6, "*")
	parts := []string{field(c.Second, 0, 59, "0"), field(c.Minute, 0, 59, "0"), field(c.Hour, 0, 23, "0"), day, field(c.Month, 1, 12, "*"), weekday}
	if parts[0] == "0" {
		parts = parts[1:]
	}
	t.Cron = strings.Join(parts, " ")
	t.days(day, weekday)
	if f.cron(where, t.Cron, t.Zone) {
		f.add(t)
	}
}

// times adds a task for each time of a schedule.
func (f *Found) times(where string, t Task, spec *temporalSpec) {
	for i := range spec.Calendars {
		f.calendar(where, t, &spec.Calendars[i])
	}
	for _, expr := range spec.Cron {
		t := t
		t.Cron, _, _ = strings.Cut(expr, "#")
		t.Cron = strings.TrimSpace(t.Cron)
		if f.cron(where, t.Cron, t.Zone) {
			f.add(t)
		}
	}
	for _, i := range spec.Intervals {
		t := t
		t.From, t.Zone = "start", ""
		every, err := time.ParseDuration(i.Interval)
		if err != nil {
			f.left(where, "left out: %q is no interval", i.Interval)
			continue
		}
		if i.Phase != "" && i.Phase != "0s" {
			f.left(where, "phase %s: its interval counts from its first run", i.Phase)
		}
		if f.every(where, &t, every) {
			f.add(t)
		}
	}
}

// field is a field of a calendar as cron has it. A range without an end is one value.
func field(ranges []calendarRange, lowest, highest int, usual string) string {
	var parts []string
	for _, r := range ranges {
		end, step := max(r.Start, r.End), max(1, r.Step)
		switch {
		case r.Start == lowest && end == highest && step == 1:
			return "*"
		case end == r.Start:
			parts = append(parts, strconv.Itoa(r.Start))
		default:
			part := fmt.Sprintf("%d-%d", r.Start, end)
			if step > 1 {
				part += fmt.Sprintf("/%d", step)
			}
			parts = append(parts, part)
		}
	}
	return cmp.Or(strings.Join(parts, ","), usual)
}
