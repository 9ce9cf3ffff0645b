package core

import (
	"context"
	"time"
)

// Store remembers tasks; the [Scheduler] decides what happens to them. Every verb takes a batch. What it says is
// atomic holds for each partition by itself: a partition is the slice of all agents that one step of the store can
// change at once.
//
// The store's clock is the only one that decides whether something is due or a lease has run out. Time in this
// interface is [Millis] of that clock.
//
// Bytes handed to a store belong to it, and bytes it returns belong to the caller. Errors mean that the outcome is
// unknown; repeating the same call is always safe. [ErrStoreFull] means that nothing was written.
//
// Package storetest is this contract as tests.
type Store interface {
	// Partitions is the number of partitions, a power of two that never changes. [PartitionOf] places an agent.
	Partitions() int

	// Submit stores new tasks, all or none of them. A task whose (agent, id) is live, or finished and still
	// remembered, is left as it is. It returns one Placed for each submission, in order. Fails with a
	// *[LimitError] if an agent would have more live tasks than the store allows. With several partitions the
	// limit is checked in all of them first; a failure after that may leave a part stored, and the same call again
	// completes it.
	Submit(ctx context.Context, tasks []Submission) ([]Placed, error)

	// Claim leases due tasks, or, with Limit 0, only looks. Each request is one atomic step in its partition: it
	// takes back the tasks of expired leases, visits the agents that have waited longest, takes an equal share from
	// each, and leases what it took under one new fence. A request with a nonce that was seen before returns the
	// tasks of that claim that still run. It returns one Claim for each request, in order; when some partitions fail and
	// others do not, the error is in their Claim, so that no claimed task is dropped.
	Claim(ctx context.Context, requests []ClaimRequest) ([]Claim, error)

	// Settle ends runs. A run that lost its lease changes nothing and gets [ErrLeaseLost] in its Settled; a run that
	// is settled already is left as it is, without an error. It works when the store is full. Runs of one partition
	// are settled in one atomic step for each hundred. When some steps fail and others do not, the error is in their
	// Settled.
	Settle(ctx context.Context, runs []Settlement) ([]Settled, error)

	// Extend moves the ends of leases and stores the progress of their runs. It returns for each extension whether
	// its lease is still held.
	Extend(ctx context.Context, leases []Extension) ([]bool, error)

	// Control changes tasks by an operator's will. It returns one Placed for each command: Created is false where
	// there was nothing to change.
	Control(ctx context.Context, commands []Command) ([]Placed, error)

	// Read returns tasks of one agent: those with the ids asked for, or the next page in the order of their ids.
	Read(ctx context.Context, query Query) (Page, error)

	// Stats are the counters of the whole store; reading them costs the same however many tasks there are.
	Stats(ctx context.Context) (Stats, error)
}

// Waker is implemented by stores that can tell when work falls due earlier than the last look said.
type Waker interface {
	// Wakeups subscribes until ctx is done, then closes the channel. A wake-up may be lost, for instance while
	// the connection is down: it saves waiting, and nothing depends on it.
	Wakeups(ctx context.Context) (<-chan Wakeup, error)
}

// Wakeup says that a partition has work that falls due at a time.
type Wakeup struct {
	Partition int
	Due       Millis
}

// Millis is a time in milliseconds since the Unix epoch, by the store's clock. Zero is no time.
type Millis int64

// Time is m as a time.Time in UTC; the zero time for no time.
func (m Millis) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(m)).UTC()
}

// Add is m later by d, cut to milliseconds.
func (m Millis) Add(d time.Duration) Millis { return m + Millis(d.Milliseconds()) }

// Sub is the duration from o to m.
func (m Millis) Sub(o Millis) time.Duration { return time.Duration(m-o) * time.Millisecond }

// MillisOf is t in milliseconds, rounded up, so that nothing is early.
func MillisOf(t time.Time) Millis {
	if t.IsZero() {
		return 0
	}
	return Millis(t.Add(time.Millisecond - 1).UnixMilli())
}

// When is a time that the store works out: At, or After from the moment of the store's step if At is zero. A submission
// whose At has passed is due now.
type When struct {
	At    Millis
	After time.Duration
}

// Status is where a task is in its life.
type Status string

// The life of a task: waiting -> in_progress -> completed, failed or cancelled. A task that recurs, is retried or is
// given back goes from in_progress to waiting.
const (
	StatusWaiting    Status = "waiting"
	StatusInProgress Status = "in_progress"
	StatusCompleted  Status = "completed"
	StatusFailed     Status = "failed"
	StatusCancelled  Status = "cancelled"
)

// Finished reports whether s is an end.
func (s Status) Finished() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCancelled
}

// Level is a priority: 1 is served before 2 before 3 among the due tasks of one agent.
type Level int

// The levels.
const (
	LevelHigh   Level = 1
	LevelMedium Level = 2
	LevelLow    Level = 3
)

// RaiseAfter is how long a due task waits before it is served as if it had level 1, so that none starves.
const RaiseAfter = time.Minute

// Submission is a task as a store gets it. Body is the part of the task that never changes, opaque to the store.
type Submission struct {
	Agent, ID, Kind, Group string
	Level                  Level
	Due                    When
	Body                   []byte
}

// Placed is where a submission or command left a task.
type Placed struct {
	Created bool
	Due     Millis // when it is due; zero if it was not created
}

// ClaimRequest asks one partition for due tasks.
type ClaimRequest struct {
	Partition int
	Nonce     string        // NonceLen bytes, new for each request and the same when the request is repeated
	Agents    []string      // whose tasks to take; nil for any agent
	Kinds     []string      // kinds to take; tasks of a kind in neither list are parked until somebody asks for it
	Leave     []string      // kinds to leave where they are
	Limit     int           // most tasks, at most MaxClaim; 0 only looks, and Agents and Nonce are not used
	PerAgent  int           // most tasks of one agent; 0 for as many as there is room for
	Lease     time.Duration // how long the claim holds its tasks
}

// NonceLen is the length of a claim's nonce; MaxClaim the most tasks that one request can take, so that no step of the
// store is long.
const (
	NonceLen = 16
	MaxClaim = 50
)

// Claim is the answer of one partition.
type Claim struct {
	Partition int
	Now       Millis // the store's clock at the step
	NextDue   Millis // when the next of the agents asked for is due; not after Now if more is due; zero: never
	NextLease Millis // when the next lease of the partition ends; zero: none is held
	Parked    int    // tasks that this step parked
	Recovered int    // tasks whose lease had expired and that this step put back
	Fence     Fence  // of all tasks of this claim; zero if there are none
	Tasks     []Claimed
	Err       error // this partition failed; the others of the call did not
}

// Fence numbers the claims of a partition. It only grows and is never used twice.
type Fence int64

// Run names one attempt at a task: the task, and the claim that holds it.
type Run struct {
	Partition int
	Fence     Fence
	Index     int // the task's place in its claim
	Agent, ID string
}

// Claimed is a task under lease.
type Claimed struct {
	Run
	Kind      string
	Level     Level
	Due       Millis
	Submitted Millis
	Crashes   int    // leases of this task that expired since its state was last written
	Body      []byte // as submitted
	State     []byte // as last settled, nil at first
}

// Verb is what becomes of a task when its run ends.
type Verb byte

// The verbs of a settlement.
const (
	VerbComplete Verb = 'c' // the task is completed
	VerbFail     Verb = 'f' // the task is dead: kept, and can be replayed
	VerbCancel   Verb = 'x' // the task is cancelled
	VerbAgain    Verb = 'r' // the task is due again
	VerbRelease  Verb = 'b' // the task goes back as it was, as if it had not been claimed
)

// Settlement ends one run.
type Settlement struct {
	Run
	Verb   Verb
	Due    When   // VerbAgain: when the task is due again; VerbRelease: Due.At is when it was due
	State  []byte // VerbAgain: the new state; nil leaves the old one
	Record []byte // VerbComplete, VerbFail, VerbCancel: what the tracker keeps
	Group  string // the task's group
}

// Settled is the outcome of a settlement.
type Settled struct {
	Due Millis // VerbAgain, VerbRelease: when the task is due again
	Err error  // nil, ErrLeaseLost, or a *StoreError: unknown, settle it again
}

// Extension moves the end of one claim's lease to Lease from now.
type Extension struct {
	Partition int
	Fence     Fence
	Lease     time.Duration
	Progress  []Progress
}

// Progress is a new state of a task whose run goes on.
type Progress struct {
	Index     int
	Agent, ID string
	State     []byte
}

// Command is an operator's order for one task.
type Command struct {
	Op         Op
	Submission // OpReplay: the task to put back; Due is not used
}

// Op is what a command does.
type Op string

// OpReplay makes a dead task live again, due now, with no state.
const OpReplay Op = "replay"

// Query asks for tasks of one agent.
type Query struct {
	Agent    string
	IDs      []string // the tasks to read; if nil, a page of all
	Statuses []Status // keep only these; nil keeps all
	Group    string   // also return this group's counts
	After    string   // a page begins after this id
	Limit    int      // size of a page
}

// Page is the answer to a query.
type Page struct {
	Now   Millis
	Tasks []Stored // for IDs: one for each, with an empty Status where there is none
	More  bool
	Group GroupCounts
}

// Stored is a task as the store remembers it.
type Stored struct {
	Agent, ID string
	Status    Status
	Parked    bool // waiting for a process that has a handler for its kind
	Kind      string
	Level     Level
	Due       Millis // waiting: when it is due
	Submitted Millis
	Finished  Millis
	Crashes   int
	Body      []byte // live: as submitted
	State     []byte // live: as last settled
	Record    []byte // finished: as settled
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

// Stats are counters of a store. Waiting, InProgress and Parked are of now, Parked being a part of Waiting; the others
// have only grown since the store was first used.
type Stats struct {
	Now        Millis `json:"-"`
	Partitions int    `json:"partitions"`
	Agents     int64  `json:"agents"` // with at least one live task
	Waiting    int64  `json:"waiting"`
	InProgress int64  `json:"in_progress"`
	Parked     int64  `json:"parked"`
	Completed  int64  `json:"completed"`
	Failed     int64  `json:"failed"`
	Cancelled  int64  `json:"cancelled"`
	Submitted  int64  `json:"submitted"`
	Again      int64  `json:"again"`     // runs that ended with the task waiting: retries, snoozes, recurring tasks
	Released   int64  `json:"released"`  // given back unstarted or unfinished, uncharged
	Recovered  int64  `json:"recovered"` // leases that expired
	Replayed   int64  `json:"replayed"`
	Trimmed    int64  `json:"trimmed"`   // finished records dropped for want of room before their time
	Malformed  int64  `json:"malformed"` // records passed over, as they are not what the store wrote
	NextDue    Millis `json:"-"`
}

// PartitionOf is the partition of an agent in a store with that many, a power of two.
func PartitionOf(agent string, partitions int) int {
	// FNV-1a, folded: written out because it runs for each task and must never change.
	h := uint64(14695981039346656037)
	for i := range len(agent) {
		h = (h ^ uint64(agent[i])) * 1099511628211
	}
	return int((h ^ h>>32) & uint64(partitions-1)) //nolint:gosec // the mask is below the number of partitions
}
