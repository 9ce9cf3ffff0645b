package store

// Query asks for tasks of one agent.
type Query struct {
	Agent    string
	IDs      []string // the tasks to read; if nil, a page of all
	Statuses []Status // keep only these; nil keeps all
	Group    string   // also return this group's counts
	After    string   // where a page begins: Page.Next of the one before, or Stored.Cursor of the task before
	Limit    int      // most tasks of a page
	Brief    bool     // without IDs: only Agent, ID, Status and Cursor of each task
	Explain  bool     // with IDs: also find out who holds a task, and how many agents stand before it
	Pauses   bool     // without an agent: the holds in force in place of the agents
}

// Page is the answer to a query.
type Page struct {
	Now   Millis
	Tasks []Stored // for IDs: one for each, with an empty Status where there is none
	Group GroupCounts

	Agents []AgentStats // without an agent: about Limit of them, in no order
	Holds  []Held       // Pauses: about Limit of them, in no order
	Next   string       // where the next page begins, unless it is of IDs; empty on the last one
}

// PageBytes is how many bytes of bodies, states and records a page of tasks has at most, unless its first task has more. A
// page ends before the task that would not fit.
const PageBytes = 1 << 20

// AgentStats are the tasks of an agent.
type AgentStats struct {
	Agent string
	Live  int64
	Due   Millis // when its next waiting task is due, as far as is known; zero for none
	Held  bool   // the agent is paused
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
	Due       Millis // waiting: when it is due
	Submitted Millis
	Finished  Millis
	Crashes   int
	Body      []byte // live: as submitted
	State     []byte // live: as last settled
	Record    []byte // finished: as settled
	Dropped   bool   // finished: its record was dropped before its time; Status and Finished are all that is known
	Resting   bool   // an activity task that nothing has happened for
	Order     []byte // what was said when it was told to end, until it has
	// Version changes whenever a live task does. It is read with IDs.
	Version string
	Cursor  string // without IDs: where a page begins that goes on behind this task

	// Explain: of the claim that holds it; of a waiting task, of the run of its agent that it has to wait for, if any (see
	// ClaimRequest.Serial).
	Lease  Millis // when its lease ends
	Fence  Fence
	Holder string // what its nonce begins with, half of it: who made it
	Ahead  int64  // Explain, waiting: how many agents of its partition stand before its own
}

// Held is a hold that keeps a task from being claimed.
type Held struct {
	Scope Scoped
	Since Millis
	Until Millis // zero: until it is ended
	Hold  []byte // as given with OpHold
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
