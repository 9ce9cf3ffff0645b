package core

import "github.com/seed-6f6f2c11/duly/core/store"

// What users of core hold of the contract of stores has its name here too.
type (
	// Store remembers tasks; see package store.
	Store = store.Store
	// Status is where a task is in its life.
	Status = store.Status
	// Level is a priority: 1 is served before 2 before 3.
	Level = store.Level
	// Fence numbers the claims of a partition.
	Fence = store.Fence
	// ScheduleType tells the schedules apart.
	ScheduleType = store.ScheduleType
	// Claimed is a task under lease, for [Scheduler.RunTick].
	Claimed = store.Claimed
	// Target names tasks: one (Agent and ID), those of an agent (Agent), of a kind (Kind), those that share a snooze key (Key),
	// or, with nothing set, all.
	Target = store.Target
	// Fault is something that would have stopped silently; see [Scheduler.Audit].
	Fault = store.Fault
	// InvalidError says which field of the input is wrong, and why.
	InvalidError = store.InvalidError
	// ConfigError says which field of a configuration makes no sense, and why.
	ConfigError = store.ConfigError
	// LimitError says that an agent has as many tasks, or bytes of them, as the store allows.
	LimitError = store.LimitError
	// ConflictError says that a task exists, or does not allow what was asked.
	ConflictError = store.ConflictError
	// StoreError is what a store could not do: the outcome is unknown, and repeating it is safe.
	StoreError = store.Error
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

// The types of a schedule.
const (
	ScheduleAt       = store.ScheduleAt
	ScheduleEvery    = store.ScheduleEvery
	ScheduleCron     = store.ScheduleCron
	ScheduleActivity = store.ScheduleActivity
)

// Errors of stores that users meet.
var (
	// ErrLeaseLost is the cause of a handler's context, and the refusal of its result, when its lease ran out or was taken
	// by another run.
	ErrLeaseLost = store.ErrLeaseLost
	// ErrStoreFull says that the store is out of memory. Tasks that run can be settled all the same.
	ErrStoreFull = store.ErrFull
)
