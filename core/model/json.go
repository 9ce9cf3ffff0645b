package model

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/wire"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// The JSON of tasks and reports is one for HTTP, the command line and files. Names are snake_case, times RFC 3339 in UTC
// with milliseconds, durations Go's ("90s"). Empty fields are left out, but counters, flags and statuses are always
// present.

// taskJSON are the fields that a task is submitted with and has when it is read back.
type taskJSON struct {
	ID      string          `json:"id,omitempty"`
	Agent   string          `json:"agent_id"`
	Kind    string          `json:"kind"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Every   wire.Span       `json:"every,omitzero"`
	From    From            `json:"from,omitempty"`
	Cron    string          `json:"cron,omitempty"`
	Zone    string          `json:"zone,omitempty"`

	DayMatch schedule.DayMatch `json:"day_match,omitempty"`
	Gap      schedule.Gap      `json:"gap,omitempty"`

	Jitter      wire.Span `json:"jitter,omitzero"`
	Overlap     Overlap   `json:"overlap,omitempty"`
	Misfire     Misfire   `json:"misfire,omitempty"`
	PauseAfter  int       `json:"pause_after_failures,omitempty"`
	MinInterval wire.Span `json:"min_interval,omitzero"`
	Urgent      bool      `json:"urgent,omitempty"`
	Manual      bool      `json:"manual,omitempty"`
	LimitKey    string    `json:"limit_key,omitempty"`
	Callback    string    `json:"callback,omitempty"`

	ExpectSuccess wire.Span `json:"expect_success,omitzero"`
	OnLate        string    `json:"on_late,omitempty"`

	Level       store.Level     `json:"level,omitempty"`
	Group       string          `json:"group,omitempty"`
	MaxAttempts int             `json:"max_attempts,omitempty"`
	Backoff     wire.Span       `json:"backoff,omitzero"`
	Timeout     wire.Span       `json:"timeout,omitzero"`
	Lease       wire.Span       `json:"lease,omitzero"`
	TraceID     string          `json:"trace_id,omitempty"`
	Traceparent string          `json:"traceparent,omitempty"`
	SessionID   string          `json:"session_id,omitempty"`
	UserID      string          `json:"user_id,omitempty"`
	Info        json.RawMessage `json:"info,omitempty"`
	Tags        []string        `json:"tags,omitempty"`

	Labels map[string]string `json:"labels,omitempty"`
}

// newTaskJSON is a task as it is submitted.
type newTaskJSON struct {
	taskJSON

	Agent      string     `json:"agent_id,omitempty"` // a task that is read back always has both
	Kind       string     `json:"kind,omitempty"`
	At         *time.Time `json:"at,omitempty"`
	Delay      wire.Span  `json:"delay,omitzero"`
	When       string     `json:"when,omitempty"`
	UniqueKey  string     `json:"unique_key,omitempty"`
	OnConflict OnConflict `json:"on_conflict,omitempty"`
	Preset     string     `json:"preset,omitempty"`
	Paused     bool       `json:"paused,omitempty"`
	Reason     string     `json:"paused_reason,omitempty"`
}

// MarshalJSON writes the task as UnmarshalJSON reads it.
func (t NewTask) MarshalJSON() ([]byte, error) {
	fields, err := t.Written()
	if err != nil {
		return nil, err
	}
	return json.Marshal(fields)
}

// IsField reports whether the JSON of a task has a field of this name.
func (*NewTask) IsField(name string) bool { return newTaskFields[name] != nil }

// Written returns a struct that encoding/json writes as the task is written, for encoders with settings of their own.
func (t *NewTask) Written() (any, error) {
	payload, err := t.PayloadJSON(1 << 62)
	if err != nil {
		return nil, err
	}
	w := &newTaskJSON{Reason: t.PausedReason}
	wire.Copy(w, t)
	w.Payload = payload
	if !t.At.IsZero() {
		w.At = &t.At
	}
	return w, nil
}

// infoJSON is a task as it is read.
type infoJSON struct {
	taskJSON
	trackedJSON
}

// MarshalJSON writes the task flat: the fields it was submitted with and what the tracker knows, without its last runs.
func (info TaskInfo) MarshalJSON() ([]byte, error) {
	w := infoJSON{}
	wire.Copy(&w, &info)
	w.Payload, w.Info = check.WellFormed(info.Payload), check.WellFormed(info.Info)
	w.Result, w.Progress, w.Checkpoint = check.WellFormed(info.Result), check.WellFormed(info.Progress), check.WellFormed(info.Checkpoint)
	w.Running, w.Paused = info.Status == store.StatusInProgress, len(info.Pauses) > 0
	if info.Awaiting != nil {
		w.Awaiting = &awaitingJSON{}
		wire.Copy(w.Awaiting, info.Awaiting)
	}
	if w.Cron != "" && w.Zone == "" {
		w.Zone = "UTC" // in which its times are: a reader need not know what counts where none is named
	}
	if !info.LastRun.IsZero() {
		took := wire.Milliseconds(info.LastDuration)
		w.Took = &took
	}
	if o := info.Origin; o != nil {
		w.By, w.Root, w.Depth = o.By, o.Root, o.Depth
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes, in this version or another: it ignores unknown fields.
func (info *TaskInfo) UnmarshalJSON(data []byte) error {
	w := infoJSON{}
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*info = TaskInfo{}
	wire.Copy(info, &w)
	if w.Awaiting != nil {
		info.Awaiting = &Awaiting{}
		wire.Copy(info.Awaiting, w.Awaiting)
	}
	if w.Took != nil {
		info.LastDuration = time.Duration(*w.Took)
	}
	if w.By != (TaskName{}) {
		info.Origin = &Origin{By: w.By, Root: w.Root, Depth: w.Depth}
	}
	return nil
}

// awaitingJSON is a signal that a task waits for.
type awaitingJSON struct {
	Key   string      `json:"key"`
	Until wire.Stamp  `json:"until,omitzero"`
	From  string      `json:"from,omitempty"`
	Fence store.Fence `json:"fence"`

	Question string          `json:"question,omitempty"`
	Answer   json.RawMessage `json:"answer,omitempty"`
}

// trackedJSON is what the tracker adds to a task.
type trackedJSON struct {
	Status              store.Status       `json:"status"`
	Parked              bool               `json:"parked"`
	Running             bool               `json:"is_running"`
	Paused              bool               `json:"is_paused"`
	Pauses              []PauseInfo        `json:"pauses,omitempty"`
	Resting             bool               `json:"resting,omitempty"`
	Awaiting            *awaitingJSON      `json:"awaiting,omitempty"`
	CoolingUntil        wire.Stamp         `json:"cooling_until,omitzero"`
	Ending              bool               `json:"ending,omitempty"`
	Parent              string             `json:"parent,omitempty"`
	By                  TaskName           `json:"submitted_by,omitzero"`
	Root                TaskName           `json:"root,omitzero"`
	Depth               int                `json:"depth,omitempty"`
	Schedule            store.ScheduleType `json:"schedule,omitempty"`
	Submitted           wire.Stamp         `json:"submitted_at,omitzero"`
	UpdatedAt           wire.Stamp         `json:"updated_at,omitzero"`
	LastActivity        wire.Stamp         `json:"last_activity,omitzero"`
	LastSuccess         wire.Stamp         `json:"last_success,omitzero"`
	Due                 wire.Stamp         `json:"due_at,omitzero"`
	Started             wire.Stamp         `json:"started_at,omitzero"`
	Finished            wire.Stamp         `json:"finished_at,omitzero"`
	NextRun             wire.Stamp         `json:"next_run,omitzero"`
	Attempt             int                `json:"attempt"`
	Crashes             int                `json:"crashes"`
	RunCount            int64              `json:"run_count"`
	SkipCount           int64              `json:"skip_count"`
	ErrorCount          int64              `json:"error_count"`
	ConsecutiveFailures int                `json:"consecutive_failures"`
	RetryAfters         int                `json:"retry_afters,omitempty"`
	GateClosed          int                `json:"gate_closed,omitempty"`
	LastRun             wire.Stamp         `json:"last_run,omitzero"`
	Took                *wire.Milliseconds `json:"last_duration_ms,omitempty"`
	LastOutcome         Outcome            `json:"last_result,omitempty"`
	LastError           string             `json:"last_error,omitempty"`
	Reason              string             `json:"reason,omitempty"`
	CallbackTask        string             `json:"callback_task,omitempty"`
	Result              json.RawMessage    `json:"result,omitempty"`
	Progress            json.RawMessage    `json:"progress,omitempty"`
	Checkpoint          json.RawMessage    `json:"checkpoint,omitempty"`
	LeaseUntil          wire.Stamp         `json:"lease_until,omitzero"`
	Holder              string             `json:"holder,omitempty"`
	HeldBy              *Because           `json:"held_by,omitempty"`
}

// MarshalJSON writes the report, as every host answers with it; next_due_at is null if nothing is scheduled.
func (r Report) MarshalJSON() ([]byte, error) {
	w := reportJSON{Next: wire.StampOf(r.NextDueAt), Alarm: wire.StampOf(r.AlarmAt)}
	wire.Copy(&w, &r)
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *Report) UnmarshalJSON(data []byte) error {
	w := reportJSON{}
	err := json.Unmarshal(data, &w)
	*r = Report{NextDueAt: wire.TimeOf(w.Next), AlarmAt: wire.TimeOf(w.Alarm)}
	wire.Copy(r, &w)
	return err
}

// reportJSON is a report.
type reportJSON struct {
	Agents    int               `json:"agents"`
	Ran       int               `json:"ran"`
	Completed int               `json:"completed"`
	Failed    int               `json:"failed"`
	Retried   int               `json:"retried"`
	Released  int               `json:"released"`
	Skipped   int               `json:"skipped"`
	Parked    int               `json:"parked"`
	Lost      int               `json:"lost"`
	Cancelled int               `json:"cancelled"`
	Snoozed   int               `json:"snoozed"`
	Recovered int               `json:"recovered"`
	Left      int               `json:"left"`
	Away      []int             `json:"away,omitempty"`
	Next      *wire.Stamp       `json:"next_due_at"`
	Alarm     *wire.Stamp       `json:"alarm_at,omitempty"`
	More      bool              `json:"more"`
	Duration  wire.Milliseconds `json:"duration_ms"`
	Failures  []RunFailure      `json:"failures,omitempty"`
}

// MarshalJSON writes a failed run. The text of its error is cut as it is in the store: it comes from a handler, and
// may have any length.
func (f RunFailure) MarshalJSON() ([]byte, error) {
	w := failureJSON{Agent: f.Agent, ID: f.ID, Kind: f.Kind}
	if f.Err != nil {
		w.Error = check.Clip(f.Err.Error())
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes: only the text of the error is left.
func (f *RunFailure) UnmarshalJSON(data []byte) error {
	w := failureJSON{}
	err := json.Unmarshal(data, &w)
	*f = RunFailure{Agent: w.Agent, ID: w.ID, Kind: w.Kind, Err: errors.New(w.Error)}
	return err
}

// failureJSON is a failed run.
type failureJSON struct {
	Agent string `json:"agent_id"`
	ID    string `json:"id"`
	Kind  string `json:"kind"`
	Error string `json:"error"`
}

// submittedJSON is the result of submitting a task.
type submittedJSON struct {
	ID       string       `json:"id"`
	Agent    string       `json:"agent_id"`
	Kind     string       `json:"kind"`
	Status   store.Status `json:"status"`
	Due      wire.Stamp   `json:"due_at,omitzero"`
	Created  bool         `json:"created"`
	Replaced bool         `json:"replaced,omitempty"`
	Differs  bool         `json:"differs,omitempty"`
	Alarm    string       `json:"alarm,omitempty"`
}

// MarshalJSON writes the result of submitting a task.
func (s Submitted) MarshalJSON() ([]byte, error) {
	w := submittedJSON{}
	wire.Copy(&w, &s)
	if s.NotBooked {
		w.Alarm = alarmNotBooked
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Submitted) UnmarshalJSON(data []byte) error {
	w := submittedJSON{}
	err := json.Unmarshal(data, &w)
	*s = Submitted{NotBooked: w.Alarm == alarmNotBooked}
	wire.Copy(s, &w)
	return err
}

// runJSON is one run of a task.
type runJSON struct {
	Started  wire.Stamp        `json:"started_at,omitzero"`
	Duration wire.Milliseconds `json:"duration_ms"`
	Attempt  int               `json:"attempt"`
	Outcome  Outcome           `json:"outcome"`
	Error    string            `json:"error,omitempty"`
	Used     Usage             `json:"used,omitempty"`
	Process  string            `json:"process,omitempty"`
}

// MarshalJSON writes one run of a task. A run that crashed has no start: its process died before it could record it.
func (r TaskRun) MarshalJSON() ([]byte, error) {
	w := runJSON{}
	wire.Copy(&w, &r)
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (r *TaskRun) UnmarshalJSON(data []byte) error {
	w := runJSON{}
	err := json.Unmarshal(data, &w)
	wire.Copy(r, &w)
	return err
}

// MarshalJSON writes the counts of a group and the status that follows from them.
func (g GroupCounts) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Status    store.Status `json:"status"`
		Live      int64        `json:"live"`
		Completed int64        `json:"completed"`
		Failed    int64        `json:"failed"`
		Cancelled int64        `json:"cancelled"`
	}{g.Status(), g.Live, g.Completed, g.Failed, g.Cancelled})
}
