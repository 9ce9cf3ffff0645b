package store

// Settle and Extend: how a run ends, and how it keeps its lease.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Verb is how a task ends or continues when its run ends.
type Verb byte

// The verbs of a settlement.
const (
	VerbComplete Verb = 'c' // the task is completed
	VerbFail     Verb = 'f' // the task is dead: kept, and can be replayed
	VerbCancel   Verb = 'x' // the task is cancelled
	VerbAgain    Verb = 'r' // the task is due again
	VerbRelease  Verb = 'b' // the task is requeued as if it had not been claimed
	VerbRest     Verb = 'z' // an activity task waits to be touched, or is due again if it was touched meanwhile
)

// Ends reports whether the verb ends the task for good.
func (v Verb) Ends() bool { return v == VerbComplete || v == VerbFail || v == VerbCancel }

// Settlement ends one run.
type Settlement struct {
	Run
	Verb Verb
	// Renewed declares that the state takes into account that the task was replaced: see ErrReplaced.
	Renewed bool
	// Quiet is placed here to take no room. It declares that the caller knows from the answer when the task is due again, and is going to take it: a
	// store that wakes others for what has become due earlier need not do it for this.
	Quiet bool
	Due   moment.When // VerbAgain: when the task is due again; VerbRelease: Due.At is when it was due; VerbRest: when it has rested
	// Waited is how long the outcome has waited for others, in whole milliseconds: no part of a delay in Due, which counts from the end of the run.
	Waited time.Duration
	State  []byte // VerbAgain, VerbRest, VerbRelease: the new state; nil leaves the old one; VerbRelease keeps its crashes counted
	// Unrun declares that the run has not begun, so that crashes stay counted for the other verbs too, and VerbRelease gives a budget of runs back what
	// it has counted at the claim, if its period goes on.
	Unrun bool
	// Recurs declares that the task is one that recurs, for a verb that ends it.
	Recurs  bool
	Record  []byte   // VerbComplete, VerbFail, VerbCancel: the tracker's record
	Group   string   // the task's group, as it was claimed or cancelled; see Submission.OldGroup
	Kind    string   // as it was claimed
	BodyLen int      // bytes of the task's body, as it was claimed: a store bounds its reads in one step by it
	Hold    []byte   // VerbAgain, VerbRest: also pause the task, as Hold does
	Spent   *Spent   // nil for nothing, and for a run that was served
	Floor   *Floor   // VerbAgain, VerbRest of an activity task
	Await   *Await   // how the task waits for signals from now on; nil if nothing changes
	Tally   *RunStat // added to the statistics of the run's kind; nil for nothing
}

// DueAgain is when the task is due again: what the outcome has waited is taken off a delay.
func (s *Settlement) DueAgain() moment.When {
	// guard: waited
	return moment.When{At: s.Due.At, After: max(s.Due.After-s.Waited, 0)}
}

// Floor bounds when an activity task may run next.
type Floor struct {
	At     moment.Millis // its next run is not due before this
	Reason Reason        // why: ReasonInterval or ReasonCooling
	Pulse                // of a run that follows because the task was touched while it ran
}

// RunStat is a run as the statistics of its kind count it.
type RunStat struct {
	Kind     string
	Schedule ScheduleType
	Failed   bool
	Duration time.Duration // how long it ran
	Lag      time.Duration // how long after its due time it was claimed
	Failure  []byte        // of a failed run: opaque, kept among the last of its kind
}

// Spent is the use of a run, for the budgets that it counts in, and how it was answered: adaptive limits learn from that.
type Spent struct {
	Used []bound.Used
	Busy time.Duration // how long the called service asked it to stay away
	Idle bool          // it has called no service; one that is released teaches nothing either
}

// ScheduleType distinguishes the schedules.
type ScheduleType string

// The types of a schedule.
const (
	ScheduleAt       ScheduleType = "at"
	ScheduleEvery    ScheduleType = "every"
	ScheduleCron     ScheduleType = "cron"
	ScheduleActivity ScheduleType = "activity"
	ScheduleManual   ScheduleType = "manual" // statistics count its runs with those of ScheduleAt
)

// Settled is the outcome of a settlement.
type Settled struct {
	Due moment.Millis // VerbAgain, VerbRelease, VerbRest: when the task is due again
	// Freed reports that a claim is worth it now: tasks wait in line for the run's share of a limit, or its agent, which has one run at
	// a time, has another that is due.
	Freed   bool
	Crossed *bound.Crossed // budgets that are used up by this run; nil for none, as for nearly all
	// Opened are partitions in which a claim is worth it now: tasks wait there in line for the share that the run, or another one of the same
	// call, had of a limit that spans partitions.
	Opened []int
	// Err is nil, ErrLeaseLost, a *Error (unknown: settle it again), or, with nothing changed: ErrReplaced, a new
	// definition waits for the run to end; *EndingError, the task was cancelled, and only VerbCancel ends its run.
	Err error
}

// Extension moves the end of one claim's lease to Lease from now.
type Extension struct {
	Partition int
	Fence     Fence
	Lease     time.Duration
	Progress  []Progress
	// Leave announces that the process is about to end: what its claim still holds when the lease is over is released, and counts as no
	// crash.
	Leave bool
	// Back are the runs of a lost lease that their process still has, sent again with Nonce, which is as long as a claim's: the
	// crashes that were counted for them are taken back, and those that were not claimed since are leased again under a new fence.
	// It is for leases whose Extended was not Held. With a Lease of zero none is leased again.
	Back  []Run
	Nonce string
}

// Extended is the answer to an extension.
type Extended struct {
	Held  bool
	Ended []Ended // runs of the claim that are to end
	// Running is how many runs of the claim the store has as running if they are more than one, and Holder is then the half of the claim's nonce
	// that names its process.
	Running int
	Holder  string
	Back    []Run // runs of Extension.Back that are leased again: each with its new fence and index
	// Crossed are budgets that are used up by what was charged; nil for none.
	Crossed *bound.Crossed
	Err     error // a *Error: its partition could not answer, so whether it is held is unknown
}

// Ended is a run whose task an operator has cancelled or deleted.
type Ended struct {
	Index   int
	Deleted bool   // the task is gone, and with it the run's lease
	Spent   bool   // a budget that the run counts in is used up, by what Used has charged or before
	Order   []byte // the note of the command, if the task was cancelled
}

// Progress is a new state of a task whose run continues. Its partition and fence are those of the extension it comes with.
type Progress struct {
	Run
	State []byte
	// Number grows with each state of a run: one that comes behind a later one, as its call was held up on the way, is passed over. One of zero
	// is always stored.
	Number int64
	// Used is what the run has used so far, for the budgets that it counts in: what was not charged before is charged now, and not again when the
	// run ends. What a budget counts over several partitions is charged then.
	Used []bound.Used
}
