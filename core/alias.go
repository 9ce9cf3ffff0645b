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
	// Claimed is a task under lease, for [Scheduler.RunTick].
	Claimed = store.Claimed
	// Target names tasks: one (Agent and ID), those of an agent (Agent), of a kind (Kind), those that share a limit key (Key),
	// or, with nothing set, all.
	Target = store.Target
	// Limit bounds how many tasks of a sort run at once, or start within a time, over all processes.
	Limit = store.Limit
	// LimitTarget says which tasks a limit is about, and which of them it counts together.
	LimitTarget = store.LimitTarget
	// Budget bounds what the runs of some tasks use within an hour, a day or a month.
	Budget = store.Budget
	// BudgetTarget says which runs a budget is about, which of them it counts together, and what it counts.
	BudgetTarget = store.BudgetTarget
	// InvalidError says which field of the input is wrong, and why.
	InvalidError = store.InvalidError
	// ConfigError says which field of a configuration makes no sense, and why.
	ConfigError = store.ConfigError
	// ConflictError says that a task exists, or does not allow what was asked.
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

// What a limit counts by itself.
const (
	EachAgent = store.EachAgent
	EachKey   = store.EachKey
)

// Errors of stores that users meet.
var (
	// ErrLeaseLost is the cause of a handler's context, and the refusal of its result, when its lease ran out or was taken
	// by another run.
	ErrLeaseLost = store.ErrLeaseLost
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

// AmountOf is the amount of a number, to the nearest millionth.
func AmountOf(n float64) store.Amount { return store.AmountOf(n) }
