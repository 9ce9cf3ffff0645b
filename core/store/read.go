package store

import (
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// The answers of a store about tasks, agents and holds.

// Get asks for tasks of one agent by their ids.
type Get struct {
	Agent   string
	IDs     []string
	Explain bool // also find out who holds each task, and how many agents come before it
}

// Found are the requested tasks.
type Found struct {
	Now   moment.Millis
	Tasks []Stored
}

// List asks for a page of an agent's tasks.
type List struct {
	Agent    string
	Statuses []Status // keep only these; nil keeps all
	After    string   // where the page begins: Page.Next of the one before, or Stored.Cursor of the task before
	Limit    int      // most tasks of the page
	Brief    bool     // only Agent, ID, Status and Cursor of each task
}

// Page is a page of an agent's tasks.
type Page struct {
	Now   moment.Millis
	Tasks []Stored
	Next  string // where the next page begins; empty on the last one
}

// PageOf asks for a page of a listing of the whole store.
type PageOf struct {
	After string // where the page begins: Next of the one before
	Limit int    // about how many entries it has
	Agent string // of Profiles: that of this agent alone
}

// AgentPage is a page of agents.
type AgentPage struct {
	Agents []AgentStats
	Next   string // where the next page begins; empty on the last one
}

// HoldPage is a page of holds.
type HoldPage struct {
	Holds []Held
	Next  string // where the next page begins; empty on the last one
}

// PageBytes is how many bytes of bodies, states and records a page of tasks has at most, unless its first task has more. A
// page ends before the task that would not fit.
const PageBytes = 1 << 20

// AgentStats are the tasks of an agent.
type AgentStats struct {
	Agent string
	Live  int64
	Due   moment.Millis // when its next waiting task is due, as far as is known; zero for none
	Held  bool          // the agent is paused
}

// Stored is a task as the store remembers it.
type Stored struct {
	Agent, ID string
	Status    Status
	Parked    bool // waiting, out of the queue: for a process that has a handler for its kind, or for the end of a hold
	Holds     []Held
	Kind      string
	Key       string
	Level     Level
	Due       moment.Millis // waiting: when it is due
	Submitted moment.Millis
	Finished  moment.Millis
	Crashes   int
	Body      []byte // live: as submitted
	State     []byte // live: as last settled
	Record    []byte // finished: as settled
	Dropped   bool   // finished: its record was dropped before its time; Status and Finished are all that is known
	Resting   bool   // an activity task that nothing has happened for
	Order     []byte // the note of its cancel while it ran, until that run has ended
	// Updated is when it last changed: when it was submitted, replaced, claimed, settled or taken back, when its run stored progress, when it was
	// paused or resumed by itself, ordered to run, cancelled or sent a signal, planned again or touched, or when it ended. Not when what it shares with
	// others changed, such as a pause of its agent, or where it waits. A settlement with VerbAgain and a state of a run that has begun is not among
	// them either, and makes the changes before it unknown: that state says when the run ended, and each byte of such a settlement costs.
	Updated      moment.Millis
	LastActivity moment.Millis // of an activity task: the last touch; zero before the first, and after a replay
	// Version changes whenever a live task does, and is another one for each end of a task that has ended; empty for one that is not known. Get
	// returns it, List does not.
	Version string
	Cursor  string // in a list: where a page begins that continues after this task

	// Explain: of the claim that holds it; of a waiting task, of the run of its agent that it has to wait for, if any (see
	// ClaimRequest.Serial).
	Lease  moment.Millis // when its lease ends
	Fence  Fence
	Holder string // the beginning of its nonce, half of it: which process made it
	Line   Line   // Explain, waiting: the line that it waits in, if any
	Ahead  int64  // Explain, waiting: how many tasks, and agents with many, its partition looks at before it
}

// Line is where a task waits that a limit or a budget holds back.
type Line struct {
	Limit   bound.LimitUse   // of the agent or the key of the task alone where each counts by itself; Waiting is zero if it is in no line
	Budget  *bound.BudgetUse // in place of Limit: of the agent, key or task alone
	Of      string           // the agent, the key, or the task as agent:id, where each counts by itself
	StartAt moment.Millis    // when there is room for another start; zero: when a run ends
}

// Held is a hold that keeps a task from being claimed.
type Held struct {
	Target Target
	Since  moment.Millis
	Until  moment.Millis // zero: until it is ended
	Note   []byte        // as given with Hold
}

// GroupCounts are the tasks of a group by where they are.
type GroupCounts struct {
	Live, Completed, Failed, Cancelled int64
}

// Status of a group: any failed -> failed; else any live -> in_progress; else completed, or cancelled if all are. It is
// empty for a group without tasks.
func (g GroupCounts) Status() Status {
	switch {
	case g.Failed > 0:
		return StatusFailed
	case g.Live > 0:
		return StatusInProgress
	case g.Completed > 0:
		return StatusCompleted
	case g.Cancelled > 0:
		return StatusCancelled
	default:
		return ""
	}
}
