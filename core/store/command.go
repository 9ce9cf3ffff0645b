package store

// Command is an operator's order. OpHold, OpProlong and OpUnhold are about a scope; the others about the task (Agent, ID).
type Command struct {
	Op    Op
	Scope Scoped // OpHold, OpProlong, OpUnhold
	Hold  []byte // OpHold, OpProlong: who and why, opaque
	Until When   // OpHold, OpProlong: when it ends by itself; zero for never

	Submission        // OpReplay: the task to put back, Due is not used; otherwise Agent, ID and Group
	Record     []byte // OpCancel: what the tracker keeps of the task if it waits with this Version
	Order      []byte // OpCancel: who and why, opaque, for the run under way
	Queue      bool   // OpRun: a task that runs is due once more when its run ends
	Audit      Audit  // OpAudit
}

// Audit is a look at a page of a partition's live tasks: each has to wait where claims look for it, to run under a lease, or
// to be parked where something puts it back. The last pages compare the counters with what the others have counted.
type Audit struct {
	Partition int
	Cursor    string // where the page begins: that of the page before; empty for the first
	Repair    bool   // to put back what is found
}

// Op is what a command does.
type Op string

// The commands.
const (
	OpReplay Op = "replay" // make a dead task live again, due now, with its State
	// OpRun makes a waiting task due now; one that is due in its queue stays as it is. It is claimed although it is held,
	// by holds that had begun by then: a later hold keeps it.
	OpRun    Op = "run"
	OpCancel Op = "cancel" // end a task as cancelled: at once if it waits, else when its run ends; see Store.Control
	OpDelete Op = "delete" // forget a task; a run of it loses its lease
	OpHold   Op = "hold"   // let no task of the scope be claimed
	OpUnhold Op = "unhold" // end that
	// OpProlong is OpHold, but leaves a hold alone that lasts as long or longer.
	OpProlong Op = "prolong"
	OpAudit   Op = "audit" // look whether each task is where it is found again
)

// Scoped names the tasks that a hold is about: one task (Agent and ID), those of an agent, of a kind, those that share a
// key, or, with nothing set, all.
type Scoped struct{ Agent, ID, Kind, Key string }

// Effect is what a command did.
type Effect struct {
	Code EffectCode
	Due  Millis // OpReplay, OpRun: when the task is due

	Audited *Audited // OpAudit
}

// Audited is what an audit of a page found.
type Audited struct {
	Next   string // where the next page begins; empty if this was the last
	Tasks  int    // how many were looked at; a task that is stored anew meanwhile may be counted twice
	Faults []Fault
}

// Fault is something that would have stopped silently. Agent and ID are empty if it is not about one.
type Fault struct {
	Agent string    `json:"agent_id,omitempty"`
	ID    string    `json:"id,omitempty"`
	Code  FaultCode `json:"code"`
}

// FaultCode tells faults apart.
type FaultCode string

// The faults. All but the last two can be repaired.
const (
	FaultLost     FaultCode = "lost"     // a task that neither waits nor runs nor is parked
	FaultStranded FaultCode = "stranded" // a task that is parked where nothing puts it back
	FaultDoubled  FaultCode = "doubled"  // a task that runs and waits, or is parked, as well: it would run twice at once
	// FaultMiscounted is a count that is not of what exists: of what is parked, of an agent's tasks, of the tasks of a group,
	// with its agent, of those of a kind, or of all. Counts of groups, kinds and all are compared if nothing has changed while
	// the audit counted, and nothing else was wrong.
	FaultMiscounted FaultCode = "miscounted"
	FaultAsleep     FaultCode = "asleep"     // an agent or a partition that would be looked at too late
	FaultUnreadable FaultCode = "unreadable" // a record that is not what was written
	FaultGone       FaultCode = "gone"       // an entry whose task is no more: it was lost with all that it was
)

// Faults are all codes.
func Faults() []FaultCode {
	return []FaultCode{FaultLost, FaultStranded, FaultDoubled, FaultMiscounted, FaultAsleep, FaultUnreadable, FaultGone}
}

// Repairable reports whether a repair mends such a fault.
func (c FaultCode) Repairable() bool { return c != FaultUnreadable && c != FaultGone }

// EffectCode tells the effects of commands apart.
type EffectCode byte

// The effects.
const (
	EffectNone    EffectCode = iota // there was nothing to change
	EffectDone                      // it is changed
	EffectOrdered                   // the task runs: the change comes when the run ends
	EffectRunning                   // the task runs: nothing is changed
	EffectChanged                   // OpCancel: the task is not at its Version: read it again
	EffectEnding                    // OpRun: the task was cancelled while it ran and ends: nothing is changed
)
