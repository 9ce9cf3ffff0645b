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
	// Target names tasks: one (Agent and ID), those of an agent (Agent), of a kind (Kind), those that share a limit key (Key),
	// or, with nothing set, all.
	Target = store.Target
	// Limit bounds how many tasks of a sort run at once, or start within a time, over all processes.
	Limit = store.Limit
	// LimitTarget says which tasks a limit is about, and which of them it counts together.
	LimitTarget = store.LimitTarget
	// Each says what a limit counts by itself: EachAgent, EachKey, or nothing.
	Each = store.Each
	// LimitUse is a limit, and how much of it is used.
	LimitUse = store.LimitUse
	// Budget bounds what the runs of some tasks use within an hour, a day or a month.
	Budget = store.Budget
	// BudgetTarget says which runs a budget is about, which of them it counts together, and what it counts.
	BudgetTarget = store.BudgetTarget
	// BudgetUse is a budget, and how much of it is used.
	BudgetUse = store.BudgetUse
	// Period is what a budget is for: PerHour, PerDay or PerMonth.
	Period = store.Period
	// Then is what becomes of the tasks of a budget that is used up: ThenHold, ThenPause or ThenNotify.
	Then = store.Then
	// Amount is how much of something, in millionths; see [AmountOf].
	Amount = store.Amount
	// Fault is something that would have stopped silently; see [Scheduler.Audit].
	Fault = store.Fault
	// InvalidError says which field of the input is wrong, and why.
	InvalidError = store.InvalidError
	// ConfigError says which field of a configuration makes no sense, and why.
	ConfigError = store.ConfigError
	// LimitError says that an agent has as many tasks, or bytes of them, as the store allows.
	LimitError = store.LimitError
	// BreakerError is [store.BreakerError].
	BreakerError = store.BreakerError
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
	ScheduleManual   = store.ScheduleManual
)

// What a limit counts by itself.
const (
	EachAgent = store.EachAgent
	EachTask  = store.EachTask // of budgets only
	EachKey   = store.EachKey
)

// Errors of stores that users meet.
var (
	// ErrLeaseLost is the cause of a handler's context, and the refusal of its result, when its lease ran out or was taken
	// by another run.
	ErrLeaseLost = store.ErrLeaseLost
	// ErrStoreFull says that the store is out of memory. Tasks that run can be settled all the same.
	ErrStoreFull = store.ErrFull
)

// The periods of budgets, and what becomes of the tasks of one that is used up.
const (
	PerHour  = store.PerHour
	PerDay   = store.PerDay
	PerMonth = store.PerMonth

	ThenHold   = store.ThenHold
	ThenPause  = store.ThenPause
	ThenNotify = store.ThenNotify
)

// UnitRuns is the unit of starts, which every run has one of.
const UnitRuns = store.UnitRuns

// AmountOf is the amount of a number, to the nearest millionth.
func AmountOf(n float64) Amount { return store.AmountOf(n) }
