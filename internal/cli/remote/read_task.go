package remote

// The JSON of tasks, read into what it was written from. A test fills every field and compares.

import (
	"encoding/json"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// span is a duration in JSON.
type span time.Duration

// none is what core has for none at all. A field with the default is left out, so that zero is written for nothing else.
const none = -time.Millisecond

// UnmarshalText reads one as Go writes it.
func (s *span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	if d == 0 {
		d = none
	}
	*s = span(d)
	return err
}

// ms is a duration in milliseconds.
type ms int64

func (m ms) duration() time.Duration { return time.Duration(m) * time.Millisecond }

// defined are the fields that a task was submitted with.
type defined struct {
	ID          string            `json:"id"`
	Agent       string            `json:"agent_id"`
	Kind        string            `json:"kind"`
	Payload     json.RawMessage   `json:"payload"`
	Every       span              `json:"every"`
	From        model.From        `json:"from"`
	Cron        string            `json:"cron"`
	Zone        string            `json:"zone"`
	DayMatch    schedule.DayMatch `json:"day_match"`
	Gap         schedule.Gap      `json:"gap"`
	Jitter      span              `json:"jitter"`
	Overlap     model.Overlap     `json:"overlap"`
	Misfire     model.Misfire     `json:"misfire"`
	PauseAfter  int               `json:"pause_after_failures"`
	MinInterval span              `json:"min_interval"`
	Urgent      bool              `json:"urgent"`
	Manual      bool              `json:"manual"`
	LimitKey    string            `json:"limit_key"`
	Callback    string            `json:"callback"`
	Level       core.Level        `json:"level"`
	Group       string            `json:"group"`
	MaxAttempts int               `json:"max_attempts"`
	Backoff     span              `json:"backoff"`
	Timeout     span              `json:"timeout"`
	Lease       span              `json:"lease"`
	TraceID     string            `json:"trace_id"`
	Traceparent string            `json:"traceparent"`
	SessionID   string            `json:"session_id"`
	UserID      string            `json:"user_id"`
	MemCubeID   string            `json:"mem_cube_id"`
	UserName    string            `json:"user_name"`
	Info        json.RawMessage   `json:"info"`
	Tags        []string          `json:"tags"`
	Labels      map[string]string `json:"labels"`
}

// task is a task that is read back.
type task struct {
	defined

	Status              core.Status        `json:"status"`
	Parked              bool               `json:"parked"`
	Pauses              []pause            `json:"pauses"`
	Resting             bool               `json:"resting"`
	Awaiting            *awaiting          `json:"awaiting"`
	Cooling             time.Time          `json:"cooling_until"`
	Ending              bool               `json:"ending"`
	Parent              string             `json:"parent"`
	By                  model.TaskName     `json:"submitted_by"`
	Root                model.TaskName     `json:"root"`
	Depth               int                `json:"depth"`
	Schedule            store.ScheduleType `json:"schedule"`
	Submitted           time.Time          `json:"submitted_at"`
	Updated             time.Time          `json:"updated_at"`
	LastActivity        time.Time          `json:"last_activity"`
	Due                 time.Time          `json:"due_at"`
	Started             time.Time          `json:"started_at"`
	Finished            time.Time          `json:"finished_at"`
	NextRun             time.Time          `json:"next_run"`
	Attempt             int                `json:"attempt"`
	Crashes             int                `json:"crashes"`
	RunCount            int64              `json:"run_count"`
	SkipCount           int64              `json:"skip_count"`
	ErrorCount          int64              `json:"error_count"`
	ConsecutiveFailures int                `json:"consecutive_failures"`
	RetryAfters         int                `json:"retry_afters"`
	GateClosed          int                `json:"gate_closed"`
	LastRun             time.Time          `json:"last_run"`
	LastDuration        ms                 `json:"last_duration_ms"`
	LastResult          model.Outcome      `json:"last_result"`
	LastError           string             `json:"last_error"`
	Reason              string             `json:"reason"`
	CallbackTask        string             `json:"callback_task"`
	Result              json.RawMessage    `json:"result"`
	Progress            json.RawMessage    `json:"progress"`
	LeaseUntil          time.Time          `json:"lease_until"`
	Holder              string             `json:"holder"`
	HeldBy              *model.Because     `json:"held_by"`
}

// awaiting is a signal that a task waits for.
type awaiting struct {
	Key   string
	Until time.Time
	From  string
	Fence store.Fence
}

// labels that have fields of their own.
const (
	labelMemCube  = "mem_cube_id"
	labelUserName = "user_name"
)

// labels are all labels of a task.
func (d *defined) labels() map[string]string {
	all := d.Labels
	for name, value := range map[string]string{labelMemCube: d.MemCubeID, labelUserName: d.UserName} {
		if value == "" {
			continue
		}
		if all == nil {
			all = map[string]string{}
		}
		all[name] = value
	}
	return all
}

// core is the task as core has it.
func (t *task) core() core.TaskInfo {
	info := core.TaskInfo{
		ID: t.ID, Agent: t.Agent, Kind: t.Kind, Group: t.Group, Status: t.Status, Parked: t.Parked, Level: t.Level, Payload: t.Payload,
		Every: time.Duration(t.Every), From: t.From, Cron: t.Cron, Zone: t.Zone, DayMatch: t.DayMatch, Gap: t.Gap, Schedule: t.Schedule,
		Jitter: time.Duration(t.Jitter), Overlap: t.Overlap, Misfire: t.Misfire, PauseAfter: t.PauseAfter, MinInterval: time.Duration(t.MinInterval),
		Urgent: t.Urgent, Manual: t.Manual, LimitKey: t.LimitKey, Callback: t.Callback, Parent: t.Parent, MaxAttempts: t.MaxAttempts,
		Backoff: time.Duration(t.Backoff), Timeout: time.Duration(t.Timeout), Lease: time.Duration(t.Lease),
		Submitted: t.Submitted, UpdatedAt: t.Updated, LastActivity: t.LastActivity, Due: t.Due, Started: t.Started, Finished: t.Finished, NextRun: t.NextRun, Attempt: t.Attempt, Crashes: t.Crashes,
		RunCount: t.RunCount, SkipCount: t.SkipCount, ErrorCount: t.ErrorCount, ConsecutiveFailures: t.ConsecutiveFailures,
		RetryAfters: t.RetryAfters, GateClosed: t.GateClosed, LastRun: t.LastRun, LastDuration: t.LastDuration.duration(), LastOutcome: t.LastResult,
		LastError: t.LastError, Reason: t.Reason, CallbackTask: t.CallbackTask, Pauses: pausesOf(t.Pauses), Resting: t.Resting,
		CoolingUntil: t.Cooling, Ending: t.Ending, LeaseUntil: t.LeaseUntil, Holder: t.Holder, HeldBy: t.HeldBy, Result: t.Result, Progress: t.Progress,
		TraceID: t.TraceID, Traceparent: t.Traceparent, SessionID: t.SessionID, UserID: t.UserID, Info: t.Info, Tags: t.Tags, Labels: t.labels(),
	}
	if t.Awaiting != nil {
		info.Awaiting = (*model.Awaiting)(t.Awaiting)
	}
	if t.By != (model.TaskName{}) {
		info.Origin = &core.Origin{By: t.By, Root: t.Root, Depth: t.Depth}
	}
	return info
}

// run is one run of a task.
type run struct {
	Started  time.Time     `json:"started_at"`
	Duration ms            `json:"duration_ms"`
	Attempt  int           `json:"attempt"`
	Outcome  model.Outcome `json:"outcome"`
	Error    string        `json:"error"`
	Used     core.Usage    `json:"used"`
	Process  string        `json:"process"`
}

func (r *run) core() model.TaskRun {
	return model.TaskRun{
		Started: r.Started, Duration: r.Duration.duration(), Attempt: r.Attempt, Outcome: r.Outcome, Error: r.Error, Used: r.Used, Process: r.Process,
	}
}

// submitted is what became of a submitted task.
type submitted struct {
	ID       string      `json:"id"`
	Agent    string      `json:"agent_id"`
	Kind     string      `json:"kind"`
	Status   core.Status `json:"status"`
	Due      time.Time   `json:"due_at"`
	Created  bool        `json:"created"`
	Replaced bool        `json:"replaced"`
	Differs  bool        `json:"differs"`
	Alarm    string      `json:"alarm"`
}

func (s *submitted) core() core.Submitted {
	return core.Submitted{
		ID: s.ID, Agent: s.Agent, Kind: s.Kind, Status: s.Status, Due: s.Due, Created: s.Created, Replaced: s.Replaced, Differs: s.Differs,
		NotBooked: s.Alarm == model.AlarmNotBooked,
	}
}

// explanation says why a task has not run.
type explanation struct {
	Now     time.Time
	Reasons []model.Because
	Task    task
}

func (e *explanation) core() inspect.Explanation {
	return inspect.Explanation{Now: e.Now, Reasons: e.Reasons, Task: e.Task.core()}
}

// noticed is what a notice of activity did.
type noticed struct {
	Scheduled bool       `json:"scheduled"`
	Reason    string     `json:"reason"`
	Due       *time.Time `json:"due_at"`
	Agent     string     `json:"agent_id"`
	ID        string     `json:"id"`
}
