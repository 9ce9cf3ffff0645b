package operation

// What is answered, where that is more than a type of core.

import (
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/operate"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// Lists. Those that can be long are answered in pages.
type (
	// Tasks is a page of tasks.
	Tasks struct {
		Tasks []core.TaskInfo `json:"tasks"`
		Next  string          `json:"next_cursor"` // where the next page begins; empty after the last
	}
	// Jobs is a page of recurring tasks.
	Jobs struct {
		Jobs []core.TaskInfo `json:"jobs"`
		Next string          `json:"next_cursor"`
	}
	// Agents is a page of the agents that have live tasks.
	Agents struct {
		Agents []model.AgentStats `json:"agents"`
		Next   string             `json:"next_cursor"`
	}
	// Pauses is a page of all that is paused.
	Pauses struct {
		Pauses []model.PauseInfo `json:"pauses"`
		Next   string            `json:"next_cursor"`
	}
	// Profiles is a page of the profiles of all agents.
	Profiles struct {
		Profiles []core.Profile `json:"profiles"`
		Next     string         `json:"next_cursor"`
	}
	// Submitted are tasks that were submitted.
	Submitted struct {
		Tasks []core.Submitted `json:"tasks"`
	}
	// Runs are the last runs of a task, oldest first.
	Runs struct {
		Runs []model.TaskRun `json:"runs"`
	}
	// Limits are all limits.
	Limits struct {
		Limits []bound.LimitUse `json:"limits"`
	}
	// Budgets are all budgets.
	Budgets struct {
		Budgets []bound.BudgetUse `json:"budgets"`
	}
	// Processes have lately reported what they run.
	Processes struct {
		Processes []model.Process `json:"processes"`
	}
	// Presets are those of a version.
	Presets struct {
		Presets []model.Preset `json:"presets"`
	}
)

// What orders are answered with: what each was about, as it is then.
type (
	// Paused is what was paused or resumed, if it is wider than a task.
	Paused struct {
		Target core.Target `json:"target"`
		Paused bool        `json:"is_paused"`
	}
	// DeletedTask was deleted.
	DeletedTask struct {
		Agent   string `json:"agent_id"`
		ID      string `json:"id"`
		Deleted bool   `json:"deleted"`
	}
	// DeletedProfile was deleted.
	DeletedProfile struct {
		Agent   string `json:"agent_id"`
		Deleted bool   `json:"deleted"`
	}
	// LiftedLimit was lifted.
	LiftedLimit struct {
		core.LimitTarget

		Deleted bool `json:"deleted"`
	}
	// LiftedBudget was lifted.
	LiftedBudget struct {
		core.BudgetTarget

		Deleted bool `json:"deleted"`
	}
	// Forgotten is an agent, and what was or would be deleted of it.
	Forgotten struct {
		operate.Forgotten

		Agent string `json:"agent_id"`
		Dry   bool   `json:"dry_run"`
	}
)

// What is known about the store and a process.
type (
	// Checks are the findings of a process.
	Checks struct {
		OK     bool              `json:"ok"` // no check has failed
		Checks []inspect.Finding `json:"checks"`
	}
	// Audited is what one step of an audit found.
	Audited struct {
		Tasks      int           `json:"tasks"`
		Found      int           `json:"found"`
		Repairable int           `json:"repairable"`
		Faults     []audit.Fault `json:"faults"`
		Next       string        `json:"next_cursor"`
	}
	// Health says that a process is up.
	Health struct {
		Status  string `json:"status"`
		Version string `json:"version,omitempty"`
	}
	// Readiness is what a process reports about itself.
	// It has no name of an agent or a task, as it needs no credential.
	Readiness struct {
		Status    string `json:"status"` // ready, or degraded while partitions of the store are away
		Slots     Slots  `json:"slots"`
		Abandoned int    `json:"abandoned"` // handlers that ignore their cancelled contexts
		Away      []int  `json:"away,omitempty"`
	}
	// Slots are how many runs the process may have at once, and how many it has.
	Slots struct {
		Total int `json:"total"`
		InUse int `json:"in_use"`
	}
)
