package model

// What is known about tasks, groups and agents, and the result of a submit.

import (
	"encoding/json"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/wire"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Definition is what the task was submitted with, except for its time, OnConflict and Paused: two tasks with the same definition differ only
// in their progress. The payload of a task that has completed or was cancelled is not kept.
func (info *TaskInfo) Definition() NewTask {
	t := NewTask{owned: info.Owner() != ""}
	wire.Copy(&t, info)
	if info.Payload != nil {
		t.Payload = info.Payload
	}
	return t
}

// AgentStats are the live tasks of an agent.
type AgentStats struct {
	Agent  string
	Live   int64
	Due    time.Time // when its next waiting task is due, as far as is known; zero for none
	Paused bool      // the agent itself is paused
}

// GroupCounts are the tasks of a group by status.
type GroupCounts store.GroupCounts

// Status of the group: any failed -> failed; else any live -> in_progress; else completed, or cancelled if all are. It is
// empty for a group without tasks.
func (g GroupCounts) Status() store.Status { return store.GroupCounts(g).Status() }

// Submitted is the result of submitting a task.
type Submitted struct {
	Agent, ID, Kind string
	Status          store.Status
	Due             time.Time
	Created         bool // false: the task already existed
	Replaced        bool // the task existed and now has the new definition; if not created either, it is unchanged
	// Differs says that the task is unchanged, and differs from what was submitted in its kind, payload, schedule or settings.
	// Not compared, as it is not kept: the payload of a task that has completed or was cancelled, the delay or time of any task,
	// and everything of one whose record was dropped.
	Differs bool
	// NotBooked says that the hosts of the store are called by alarms, and that none could be booked for the task: it waits for the next call, or for
	// a process that books the missing alarms of others.
	NotBooked bool
}

// TaskInfo is what the tracker knows of a task: what it is and where it is now, and in two parts of their own with what it was submitted, and what became
// of its runs. All fields are read alike, as in info.Cron and info.RunCount.
type TaskInfo struct {
	Agent, ID, Kind string
	Status          store.Status
	TaskSettings
	TaskHistory

	Schedule store.ScheduleType
	Parent   string  // the recurring task that this is one occurrence of
	Origin   *Origin // by which run it was submitted; nil if by none

	Submitted, Due, Started, Finished time.Time
	// UpdatedAt is when the task last changed: submitted, edited or replaced; claimed, settled, which is when its run ended, released or taken from a process that
	// died; its progress stored; paused or resumed by itself, run by hand, cancelled, resumed by a signal, planned again, or touched by activity; ended. A pause of
	// its agent or kind is no change of the task, nor is a limit that it waits for.
	UpdatedAt    time.Time
	LastActivity time.Time // of an activity task: when its subject was last active; zero if unknown, as after a replay
	NextRun      time.Time // when a waiting task is due; zero for never
	Attempt      int       // which attempt at its occurrence runs or is next; for a task that has ended, the last one. From 1 on, as in RunInfo
	Crashes      int

	Parked       bool // due, but set aside: it waits for a process that has a handler for its kind, for the end of a pause, or for room in a limit or a budget
	Pauses       []PauseInfo
	Resting      bool      // an activity task that waits for activity
	Awaiting     *Awaiting // the signal that it waits for; nil for none
	CoolingUntil time.Time // an activity task that failed too often tries again then
	Ending       bool      // it was cancelled while it ran, and ends with its run
	LeaseUntil   time.Time // in a list of the runs of all agents: when its lease ends, unless it is extended
	Holder       string    // in the same list: the name of the process that runs it, if that has announced itself
	HeldBy       *Because  // in a list of held tasks: what holds it

	Reason       string // why it failed or was cancelled
	CallbackTask string // of one that has ended: the id of the task that delivers its callback
	Dropped      bool   // its record was dropped before its time: everything but Status and Finished is unknown
}

// TaskSettings are what a task was submitted with, its preset filled in: see [NewTask], whose fields these are. What was left to the settings of its kind
// is zero, but for Level.
type TaskSettings struct {
	Group   string
	Level   store.Level
	Payload json.RawMessage // of tasks that are live or failed

	Every       time.Duration
	From        From
	Cron, Zone  string
	DayMatch    schedule.DayMatch
	Gap         schedule.Gap
	Manual      bool // it is due only when it is run by hand
	Jitter      time.Duration
	Overlap     Overlap
	Misfire     Misfire
	PauseAfter  int
	MinInterval time.Duration
	Urgent      bool

	MaxAttempts    int
	Backoff        time.Duration
	Timeout, Lease time.Duration
	LimitKey       string
	Callback       string // the URL that is notified of its end; kept for tasks that are live or failed
	ExpectSuccess  time.Duration
	OnLate         string

	TraceID, Traceparent, SessionID string
	UserID                          string
	Info                            json.RawMessage
	Tags                            []string
	Labels                          map[string]string
}

// TaskHistory is what became of the runs of a task.
type TaskHistory struct {
	RunCount, SkipCount, ErrorCount int64
	ConsecutiveFailures             int
	RetryAfters                     int       // how often in a row its handler returned RetryAfter
	GateClosed                      int       // how often in a row its gate said that there was nothing to do
	LastSuccess                     time.Time // of a task that is to succeed within a time
	LastRun                         time.Time
	LastDuration                    time.Duration
	LastOutcome                     Outcome
	LastError                       string
	Result, Progress                json.RawMessage
	Checkpoint                      json.RawMessage // what its last run has saved for the next one
	Runs                            []TaskRun       // the last ones, oldest first
}

// Awaiting is a signal that a task waits for.
type Awaiting struct {
	Key   string
	Until time.Time   // zero for ever
	From  string      // whose signals count; see [core.Signal]
	Fence store.Fence // identifies this wait among those of the task: it is that of the run that asked; see [Question]

	Question string          // what is asked; empty if the run has not said
	Answer   json.RawMessage // the JSON Schema of the payload that is wanted; nil if the run has not said
}

// PauseInfo is a pause that a task is under.
type PauseInfo struct {
	Target store.Target // what was paused
	Order
	Since, Until time.Time // Until is zero for a pause without an end
}

// Recurring reports whether the task has a schedule, and so belongs to the registry.
func (info *TaskInfo) Recurring() bool {
	return info.Schedule != "" && info.Schedule != store.ScheduleAt
}
