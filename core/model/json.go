package model

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// The JSON of tasks and reports is one for HTTP, the command line and files. Names are snake_case, times RFC 3339 in UTC
// with milliseconds, durations Go's ("90s"). What is empty is left out, but counters, flags and statuses are always
// there.

// Stamp is a time in JSON.
type Stamp time.Time

// IsZero makes a time that there is none of be left out.
func (s Stamp) IsZero() bool { return time.Time(s).IsZero() }

// MarshalText writes it as the store keeps it: to the millisecond.
func (s Stamp) MarshalText() ([]byte, error) {
	return time.Time(s).UTC().AppendFormat(nil, "2006-01-02T15:04:05.000Z07:00"), nil
}

// Span is a duration in JSON.
type Span time.Duration

// MarshalText writes a negative one, which says that there is none, as a task is submitted with it.
func (s Span) MarshalText() ([]byte, error) { return []byte(max(time.Duration(s), 0).String()), nil }

// taskJSON are the fields that a task is submitted with and shows when it is read back.
type taskJSON struct {
	ID      string          `json:"id,omitempty"`
	Agent   string          `json:"agent_id"`
	Kind    string          `json:"kind"`
	Payload json.RawMessage `json:"payload,omitempty"`
	Every   Span            `json:"every,omitzero"`
	From    From            `json:"from,omitempty"`
	Cron    string          `json:"cron,omitempty"`
	Zone    string          `json:"zone,omitempty"`

	DayMatch schedule.DayMatch `json:"day_match,omitempty"`
	Gap      schedule.Gap      `json:"gap,omitempty"`

	Jitter      Span    `json:"jitter,omitzero"`
	Overlap     Overlap `json:"overlap,omitempty"`
	Misfire     Misfire `json:"misfire,omitempty"`
	PauseAfter  int     `json:"pause_after_failures,omitempty"`
	MinInterval Span    `json:"min_interval,omitzero"`
	Urgent      bool    `json:"urgent,omitempty"`
	Manual      bool    `json:"manual,omitempty"`
	LimitKey    string  `json:"limit_key,omitempty"`
	Callback    string  `json:"callback,omitempty"`

	Level       store.Level     `json:"level,omitempty"`
	Group       string          `json:"group,omitempty"`
	MaxAttempts int             `json:"max_attempts,omitempty"`
	Backoff     Span            `json:"backoff,omitzero"`
	Timeout     Span            `json:"timeout,omitzero"`
	Lease       Span            `json:"lease,omitzero"`
	TraceID     string          `json:"trace_id,omitempty"`
	Traceparent string          `json:"traceparent,omitempty"`
	SessionID   string          `json:"session_id,omitempty"`
	UserID      string          `json:"user_id,omitempty"`
	MemCubeID   string          `json:"mem_cube_id,omitempty"`
	UserName    string          `json:"user_name,omitempty"`
	Info        json.RawMessage `json:"info,omitempty"`
	Tags        []string        `json:"tags,omitempty"`

	Labels map[string]string `json:"labels,omitempty"`
}

// NewTaskJSON is a task as it is submitted.
type NewTaskJSON struct {
	taskJSON

	Agent      string     `json:"agent_id,omitempty"` // a task that is read back always has both
	Kind       string     `json:"kind,omitempty"`
	At         *time.Time `json:"at,omitempty"`
	Delay      Span       `json:"delay,omitzero"`
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

// Written is the task with its fields as JSON has them.
func (t *NewTask) Written() (*NewTaskJSON, error) {
	payload, err := t.PayloadJSON(1 << 62)
	if err != nil {
		return nil, err
	}
	var at *time.Time
	if !t.At.IsZero() {
		at = &t.At
	}
	return &NewTaskJSON{
		taskJSON: taskJSON{
			ID: t.ID, Payload: payload, Every: Span(t.Every), From: t.From, Cron: t.Cron,
			Zone: t.Zone, DayMatch: t.DayMatch, Gap: t.Gap, Jitter: Span(t.Jitter), Overlap: t.Overlap, Misfire: t.Misfire,
			PauseAfter: t.PauseAfter, MinInterval: Span(t.MinInterval), Urgent: t.Urgent, Manual: t.Manual, LimitKey: t.LimitKey, Callback: t.Callback, Level: t.Level,
			Group: t.Group, MaxAttempts: t.MaxAttempts, Backoff: Span(t.Backoff), Timeout: Span(t.Timeout),
			Lease: Span(t.Lease), TraceID: t.TraceID, Traceparent: t.Traceparent, SessionID: t.SessionID,
			UserID: t.UserID, MemCubeID: t.Labels[LabelMemCube], UserName: t.Labels[LabelUserName], Info: t.Info, Tags: t.Tags,
			Labels: otherLabels(t.Labels),
		},
		Agent: t.Agent, Kind: t.Kind, At: at, Delay: Span(t.Delay), UniqueKey: t.UniqueKey, OnConflict: t.OnConflict, Preset: t.Preset,
		Paused: t.Paused, Reason: t.PausedReason,
	}, nil
}

// MarshalJSON writes the task flat: the fields it was submitted with and what the tracker knows, without its last runs.
func (info TaskInfo) MarshalJSON() ([]byte, error) {
	var took *int64
	if !info.LastRun.IsZero() {
		ms := info.LastDuration.Milliseconds()
		took = &ms
	}
	origin := cmp.Or(info.Origin, &Origin{})
	return json.Marshal(struct {
		taskJSON
		trackedJSON
	}{
		taskJSON{
			ID: info.ID, Agent: info.Agent, Kind: info.Kind, Payload: check.WellFormed(info.Payload), Every: Span(info.Every),
			Cron: info.Cron, Zone: info.Zone, DayMatch: info.DayMatch, Gap: info.Gap, Jitter: Span(info.Jitter),
			Overlap: info.Overlap, Misfire: info.Misfire, PauseAfter: info.PauseAfter, MinInterval: Span(info.MinInterval),
			Urgent: info.Urgent, Manual: info.Manual, LimitKey: info.LimitKey, Callback: info.Callback,
			From: info.From, Level: info.Level, Group: info.Group, MaxAttempts: info.MaxAttempts,
			Backoff: Span(info.Backoff), Timeout: Span(info.Timeout), Lease: Span(info.Lease), TraceID: info.TraceID,
			Traceparent: info.Traceparent, SessionID: info.SessionID, UserID: info.UserID, MemCubeID: info.Labels[LabelMemCube],
			UserName: info.Labels[LabelUserName], Info: check.WellFormed(info.Info), Tags: info.Tags, Labels: otherLabels(info.Labels),
		},
		trackedJSON{
			Status: info.Status, Parked: info.Parked, Running: info.Status == store.StatusInProgress, Paused: len(info.Pauses) > 0,
			Pauses: info.Pauses, Resting: info.Resting, Awaiting: awaitingOf(info.Awaiting), Cooling: Stamp(info.CoolingUntil), Ending: info.Ending, Parent: info.Parent,
			By: origin.By, Root: origin.Root, Depth: origin.Depth,
			Schedule:  info.Schedule,
			Submitted: Stamp(info.Submitted), Updated: Stamp(info.UpdatedAt), LastActivity: Stamp(info.LastActivity), Due: Stamp(info.Due), Started: Stamp(info.Started),
			Finished: Stamp(info.Finished), NextRun: Stamp(info.NextRun), Attempt: info.Attempt, Crashes: info.Crashes,
			RunCount: info.RunCount, SkipCount: info.SkipCount, ErrorCount: info.ErrorCount,
			ConsecutiveFailures: info.ConsecutiveFailures, RetryAfters: info.RetryAfters, GateClosed: info.GateClosed, LastRun: Stamp(info.LastRun), LastDuration: took,
			LastResult: info.LastOutcome, LastError: info.LastError, Reason: info.Reason, CallbackTask: info.CallbackTask,
			Result: check.WellFormed(info.Result), Progress: check.WellFormed(info.Progress), LeaseUntil: Stamp(info.LeaseUntil), Holder: info.Holder,
			HeldBy: info.HeldBy,
		},
	})
}

// awaitingJSON is a signal that a task waits for.
type awaitingJSON struct {
	Key   string      `json:"key"`
	Until Stamp       `json:"until,omitzero"`
	From  string      `json:"from,omitempty"`
	Fence store.Fence `json:"fence"`
}

func awaitingOf(a *Awaiting) *awaitingJSON {
	if a == nil {
		return nil
	}
	return &awaitingJSON{Key: a.Key, Until: Stamp(a.Until), From: a.From, Fence: a.Fence}
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
	Cooling             Stamp              `json:"cooling_until,omitzero"`
	Ending              bool               `json:"ending,omitempty"`
	Parent              string             `json:"parent,omitempty"`
	By                  TaskName           `json:"submitted_by,omitzero"`
	Root                TaskName           `json:"root,omitzero"`
	Depth               int                `json:"depth,omitempty"`
	Schedule            store.ScheduleType `json:"schedule,omitempty"`
	Submitted           Stamp              `json:"submitted_at,omitzero"`
	Updated             Stamp              `json:"updated_at,omitzero"`
	LastActivity        Stamp              `json:"last_activity,omitzero"`
	Due                 Stamp              `json:"due_at,omitzero"`
	Started             Stamp              `json:"started_at,omitzero"`
	Finished            Stamp              `json:"finished_at,omitzero"`
	NextRun             Stamp              `json:"next_run,omitzero"`
	Attempt             int                `json:"attempt"`
	Crashes             int                `json:"crashes"`
	RunCount            int64              `json:"run_count"`
	SkipCount           int64              `json:"skip_count"`
	ErrorCount          int64              `json:"error_count"`
	ConsecutiveFailures int                `json:"consecutive_failures"`
	RetryAfters         int                `json:"retry_afters,omitempty"`
	GateClosed          int                `json:"gate_closed,omitempty"`
	LastRun             Stamp              `json:"last_run,omitzero"`
	LastDuration        *int64             `json:"last_duration_ms,omitempty"`
	LastResult          Outcome            `json:"last_result,omitempty"`
	LastError           string             `json:"last_error,omitempty"`
	Reason              string             `json:"reason,omitempty"`
	CallbackTask        string             `json:"callback_task,omitempty"`
	Result              json.RawMessage    `json:"result,omitempty"`
	Progress            json.RawMessage    `json:"progress,omitempty"`
	LeaseUntil          Stamp              `json:"lease_until,omitzero"`
	Holder              string             `json:"holder,omitempty"`
	HeldBy              *Because           `json:"held_by,omitempty"`
}

// MarshalJSON writes the report, as every host answers with it; next_due_at is null if nothing is scheduled.
func (r Report) MarshalJSON() ([]byte, error) {
	var next, alarm *Stamp
	if !r.NextDueAt.IsZero() {
		at := Stamp(r.NextDueAt)
		next = &at
	}
	if !r.AlarmAt.IsZero() {
		at := Stamp(r.AlarmAt)
		alarm = &at
	}
	return json.Marshal(struct {
		Agents    int    `json:"agents"`
		Ran       int    `json:"ran"`
		Completed int    `json:"completed"`
		Failed    int    `json:"failed"`
		Retried   int    `json:"retried"`
		Released  int    `json:"released"`
		Skipped   int    `json:"skipped"`
		Parked    int    `json:"parked"`
		Lost      int    `json:"lost"`
		Cancelled int    `json:"cancelled"`
		Snoozed   int    `json:"snoozed"`
		Recovered int    `json:"recovered"`
		Left      int    `json:"left"`
		Away      []int  `json:"away,omitempty"`
		Next      *Stamp `json:"next_due_at"`
		Alarm     *Stamp `json:"alarm_at,omitempty"`
		More      bool   `json:"more"`
		Duration  int64  `json:"duration_ms"`

		Failures []RunFailure `json:"failures,omitempty"`
	}{
		r.Agents, r.Ran, r.Completed, r.Failed, r.Retried, r.Released, r.Skipped, r.Parked, r.Lost, r.Cancelled, r.Snoozed,
		r.Recovered, r.Left, r.Away, next, alarm, r.More, r.Duration.Milliseconds(),
		r.Failures,
	})
}

// MarshalJSON writes a failed run. The text of its error is bounded as it is where it is stored: it comes from a handler, and
// may be of any length.
func (f RunFailure) MarshalJSON() ([]byte, error) {
	text := ""
	if f.Err != nil {
		text = check.Clip(f.Err.Error())
	}
	return json.Marshal(struct {
		Agent string `json:"agent_id"`
		ID    string `json:"id"`
		Kind  string `json:"kind"`
		Error string `json:"error"`
	}{f.Agent, f.ID, f.Kind, text})
}

// MarshalJSON writes what became of a submitted task.
func (s Submitted) MarshalJSON() ([]byte, error) {
	alarm := ""
	if s.NotBooked {
		alarm = AlarmNotBooked
	}
	return json.Marshal(struct {
		ID      string       `json:"id"`
		Agent   string       `json:"agent_id"`
		Kind    string       `json:"kind"`
		Status  store.Status `json:"status"`
		Due     Stamp        `json:"due_at,omitzero"`
		Created bool         `json:"created"`

		Replaced bool   `json:"replaced,omitempty"`
		Differs  bool   `json:"differs,omitempty"`
		Alarm    string `json:"alarm,omitempty"`
	}{s.ID, s.Agent, s.Kind, s.Status, Stamp(s.Due), s.Created, s.Replaced, s.Differs, alarm})
}

// MarshalJSON writes one run of a task. A run that crashed has no start: its process did not live to tell it.
func (r TaskRun) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Started  Stamp   `json:"started_at,omitzero"`
		Duration int64   `json:"duration_ms"`
		Attempt  int     `json:"attempt"`
		Outcome  Outcome `json:"outcome"`
		Error    string  `json:"error,omitempty"`
		Used     Usage   `json:"used,omitempty"`
		Process  string  `json:"process,omitempty"`
	}{Stamp(r.Started), r.Duration.Milliseconds(), r.Attempt, r.Outcome, r.Error, r.Used, r.Process})
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
