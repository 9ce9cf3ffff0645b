package core

// Names in core for what its users need: the types of package model, and the outcomes of package outcome.

import (
	"context"
	"encoding/json"
	"time"

	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/internal/bounding"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/outcome"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// What callers submit, set, send and get in answer.
type (
	// Access is what a caller wants to do, and with whose tasks.
	Access = model.Access
	// Activity says how tasks of a kind answer to activity.
	Activity = model.Activity
	// AlarmError reports that a pull has done its work, and that no call is booked for the next.
	AlarmError = model.AlarmError
	// Authorizer decides who may do what.
	Authorizer = model.Authorizer
	// AuthorizerFunc is a function as an Authorizer.
	AuthorizerFunc = model.AuthorizerFunc
	// AwayError reports that some partitions of the store did not answer, while all work of the others was done.
	AwayError = model.AwayError
	// Clock is the one door through which the Go side of duly sees time.
	Clock = model.Clock
	// Code says what kind of error an error is.
	Code = model.Code
	// Event is a change of a task, or one step in the life of a run, reported once it is stored.
	Event = model.Event
	// ForbiddenError reports that a caller may not do something.
	ForbiddenError = model.ForbiddenError
	// GateAnswer is a gate's decision about a run.
	GateAnswer = model.GateAnswer
	// IdleBackoff says how much less often the gate of a kind is called after answers that a run has nothing to do.
	IdleBackoff = model.IdleBackoff
	// KindConfig are the settings of one kind of task.
	KindConfig = model.KindConfig
	// List asks for tasks of one agent, or of all.
	List = inspect.List
	// NewTask is a task to be submitted.
	NewTask = model.NewTask
	// Tool makes a kind one that models call.
	Tool = model.Tool
	// OnTimeout says how a task ends or continues that has waited for too long.
	OnTimeout = outcome.OnTimeout
	// Order is who paused or cancelled something, and why.
	Order = model.Order
	// Origin says by which run a task was submitted.
	Origin = model.Origin
	// Pause says why tasks are paused, and how long.
	Pause = model.Pause
	// Principal is who wants something.
	Principal = model.Principal
	// Profile is the settings that count for all tasks of an agent, on every host.
	Profile = model.Profile
	// Question is the question of one wait of a task to a person.
	Question = model.Question
	// QuietHours are a stretch of each of some days in which no task of an agent starts.
	QuietHours = model.QuietHours
	// Report says what a pull did.
	Report = model.Report
	// RunsError reports that handlers failed.
	RunsError = model.RunsError
	// Signal is the signal that a task waits for.
	Signal = outcome.Signal
	// Subject is who did something.
	Subject = model.Subject
	// Submitted is the outcome of a submit for a task.
	Submitted = model.Submitted
	// SystemClock is the clock of the machine.
	SystemClock = model.SystemClock
	// TaskInfo is the public record of a task.
	TaskInfo = model.TaskInfo
	// Transition is a change that a caller asks for.
	Transition = model.Transition
	// Usage is what a run has used, by units.
	Usage = model.Usage
	// VetoError reports that a rule of this process has refused a change.
	VetoError = model.VetoError
)

// Values of fields, and bounds.
const (
	BatchByAgent         = model.BatchByAgent
	CodeAbandoned        = model.CodeAbandoned
	CodeConflict         = model.CodeConflict
	CodeDisabled         = model.CodeDisabled
	CodeForbidden        = model.CodeForbidden
	CodeInternal         = model.CodeInternal
	CodeInvalid          = model.CodeInvalid
	CodeLeaseLost        = model.CodeLeaseLost
	CodeLimit            = model.CodeLimit
	CodeQuota            = model.CodeQuota
	CodeNotFound         = model.CodeNotFound
	CodeRunsFailed       = model.CodeRunsFailed
	CodeSpawnDepth       = model.CodeSpawnDepth
	CodeSpawnRate        = model.CodeSpawnRate
	CodeStoreFull        = model.CodeStoreFull
	CodeUnavailable      = model.CodeUnavailable
	FromApproval         = outcome.FromApproval
	FromCompletion       = model.FromCompletion
	FromStart            = model.FromStart
	MaxCheckpoint        = outcome.MaxCheckpoint
	MaxIDLen             = check.MaxIDLen
	MaxKindLen           = check.MaxKindLen
	MaxSubmit            = model.MaxSubmit
	MisfireAll           = model.MisfireAll
	MisfireOnce          = model.MisfireOnce
	MisfireSkip          = model.MisfireSkip
	OnConflictFail       = model.OnConflictFail
	OnConflictKeep       = model.OnConflictKeep
	OnConflictReplace    = model.OnConflictReplace
	OverlapAllow         = model.OverlapAllow
	OverlapCancelRunning = model.OverlapCancelRunning
	OverlapQueueOne      = model.OverlapQueueOne
	OverlapSkip          = model.OverlapSkip
	TimeoutCancel        = outcome.TimeoutCancel
	TimeoutFail          = outcome.TimeoutFail
	TimeoutRun           = outcome.TimeoutRun
	ZoneOfAgent          = model.ZoneOfAgent
)

// Errors that programs distinguish.
var (
	// ErrCancelled is the cause of a handler's context when an operator has cancelled its task.
	ErrCancelled = model.ErrCancelled
	// ErrCrashed is the error of a task whose process died, or lost its lease, too many times while it ran.
	ErrCrashed = model.ErrCrashed
	// ErrNotFound reports that no such task exists.
	ErrNotFound = model.ErrNotFound
	// ErrStopping is the cause of a handler's context when its pull has to end.
	ErrStopping = model.ErrStopping
	// ErrBudgetSpent is the cause of a handler's context when what its run has used, and saved, has used a budget up: see [RunInfo.Save]. The run is
	// put off, uncharged, and goes on from its checkpoint in the next period.
	ErrBudgetSpent = outcome.ErrBudgetSpent
	// ErrTimeout is the cause of a handler's context when the timeout of its task has passed.
	ErrTimeout = model.ErrTimeout
)

// Await saves a checkpoint and has the same occurrence wait for a signal ([Scheduler.Signal]), uncharged: with no slot, no
// lease, and nothing that polls it. The next run finds the checkpoint with [Task.Checkpoint], and what it received with
// [RunInfo.Heard]. Both stay with it while the run is repeated; they go when it succeeds, fails for good, yields or waits again. A
// signal that came before is not missed: see [SignalKept].
func Await(signal Signal, checkpoint any) error {
	return outcome.Await(signal, checkpoint)
}

// Cancel ends the task without a retry: it is cancelled, with err as the reason. A recurring task ends for good.
func Cancel(err error) error {
	return outcome.Cancel(err)
}

// CheckAgent is an *[InvalidError] if a text cannot be the id of an agent: 1 to 256 bytes of UTF-8 without control characters.
func CheckAgent(id string) error {
	return check.Agent(id)
}

// CheckJSON is an *[InvalidError] about a field unless data is one JSON value in UTF-8 whose strings are texts. It is
// stricter than encoding/json, which puts U+FFFD in the place of broken UTF-8 and of half a surrogate pair: two ids that
// differ would become one.
func CheckJSON(field string, data []byte) error {
	return check.JSON(field, data)
}

// CodeOf is the code of an error; empty for nil.
func CodeOf(err error) Code {
	return model.CodeOf(err)
}

// JSONObject reads one JSON object, as [CheckJSON] wants it: the names of its members in the order they are written, and their
// values. Every object from outside is read by it, in core and in the adapters. Unlike encoding/json it distinguishes
// names that differ in case only, and refuses a name that is given twice: of two values one would be lost silently. The error is
// an *[InvalidError] about field, which names the object, or about the member.
func JSONObject(field string, data []byte) (names []string, values map[string]json.RawMessage, err error) {
	return check.JSONObject(field, data)
}

// NextIn completes the run of a recurring task and sets its interval to d, from now on. For a task that does not recur
// it is success.
func NextIn(d time.Duration) error {
	return outcome.NextIn(d)
}

// ParseAmount returns the amount of a number that a user wrote, which must be positive and not too large.
func ParseAmount(n float64) (bound.Amount, error) {
	return bounding.ParseAmount(n)
}

// ParseRate reads the notation of [Limit].RateText: a number of starts, a slash, and a duration as Go writes it. SetLimits checks how many starts
// are allowed at most. The error is an *[InvalidError] about the rate.
func ParseRate(text string) (rate int, per time.Duration, err error) {
	return bounding.ParseRate(text)
}

// ReadBudget reads a budget from JSON, in the form that the file has. Fails with an *[InvalidError].
func ReadBudget(data []byte) (Budget, error) {
	return bounding.ReadBudget(data)
}

// ReadLimit reads a limit from JSON, in the form that the file has. A burst of zero means none, an omitted one the default of
// [Scheduler.SetLimits]. Whether the limit makes sense is checked when it is set. Fails with an *[InvalidError].
func ReadLimit(data []byte) (Limit, error) {
	return bounding.ReadLimit(data)
}

// RetryAfter repeats the run, for the reason err, not before t: as an HTTP 429 with Retry-After asks for. It is uncharged,
// for every schedule, up to KindConfig.MaxRetryAfters times in a row; from then on it is a failed attempt. The pause is at
// least the kind's Backoff, and is followed by a random one that grows as those between attempts do. If the task has a limit
// key, all tasks of that key are held until t.
func RetryAfter(t time.Time, err error) error {
	return outcome.RetryAfter(t, err)
}

// SkipRetry fails the attempt, as err, and spends the attempts that are left: repeating it would not help. The task is
// dead and can be replayed; a recurring one continues with its next occurrence.
func SkipRetry(err error) error {
	return outcome.SkipRetry(err)
}

// Snooze puts the task off by d, uncharged: no attempt is counted.
func Snooze(d time.Duration) error {
	return outcome.Snooze(d)
}

// WithPrincipal returns a context for what a principal asks for. Adapters make it once they know the caller; without it this process asks.
func WithPrincipal(ctx context.Context, who Principal) context.Context {
	return model.WithPrincipal(ctx, who)
}

// Yield saves a checkpoint and continues the same occurrence after d, uncharged: long work in small steps. The next
// run finds the checkpoint with [Task.Checkpoint]. The checkpoint is stored as JSON of up to [MaxCheckpoint] bytes.
func Yield(checkpoint any, d time.Duration) error {
	return outcome.Yield(checkpoint, d)
}

// Names in core for the parts of the contract of stores that its users need.
type (
	// Store remembers tasks; see package store.
	Store = store.Store
	// Status is where a task is in its life.
	Status = store.Status
	// Level is a priority: 1 is served before 2 before 3.
	Level = store.Level
	// Claimed is a task under lease, for [Scheduler.RunTick].
	Claimed = store.Claimed
	// Target names tasks: one (Agent and ID), those of an agent (Agent), of a kind (Kind), those that share a limit key (Key),
	// or, with nothing set, all.
	Target = store.Target
	// Limit bounds how many tasks of a sort run at once, or start within a time, over all processes.
	Limit = bound.Limit
	// LimitTarget says which tasks a limit is about, and which of them it counts together.
	LimitTarget = bound.LimitTarget
	// Budget bounds what the runs of some tasks use within an hour, a day or a month.
	Budget = bound.Budget
	// BudgetTarget says which runs a budget is about, which of them it counts together, and what it counts.
	BudgetTarget = bound.BudgetTarget
	// InvalidError says which field of the input is wrong, and why.
	InvalidError = store.InvalidError
	// ConfigError says which field of a configuration makes no sense, and why.
	ConfigError = store.ConfigError
	// ConflictError reports that a task exists, or does not allow what was asked.
	ConflictError = store.ConflictError
)

// The life of a task: waiting -> in_progress -> completed, failed or cancelled.
const (
	StatusWaiting    = store.StatusWaiting
	StatusInProgress = store.StatusInProgress
	StatusCompleted  = store.StatusCompleted
	StatusFailed     = store.StatusFailed
	StatusCancelled  = store.StatusCancelled
)

// The levels.
const (
	LevelHigh   = store.LevelHigh
	LevelMedium = store.LevelMedium
	LevelLow    = store.LevelLow
)

// What a limit counts separately.
const (
	EachAgent = bound.EachAgent
	EachKey   = bound.EachKey
)

// Errors of stores that users meet.
var (
	// ErrLeaseLost is the cause of a handler's context, and the refusal of its result, when its lease ran out or was taken
	// by another run.
	ErrLeaseLost = store.ErrLeaseLost
)

// The periods of budgets, and how the tasks of one that is used up are treated.
const (
	PerHour  = bound.PerHour
	PerDay   = bound.PerDay
	PerMonth = bound.PerMonth

	ThenHold   = bound.ThenHold
	ThenPause  = bound.ThenPause
	ThenNotify = bound.ThenNotify
)

// AmountOf is the amount of a number, to the nearest millionth.
func AmountOf(n float64) bound.Amount { return bound.AmountOf(n) }
