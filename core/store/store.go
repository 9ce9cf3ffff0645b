package store

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

	// Submit stores new tasks, all or none of them. What becomes of a task whose (agent, id) is live, or finished and
	// still remembered, its Conflict says. It returns one Placed for each submission, in order. Fails with a
	// *[LimitError] if an agent would have more live tasks than the store allows, with a *[ConflictError] where a
	// Conflict demands it or a task to be replaced runs and was cancelled ([ConflictEnding]), and with [ErrChanged] if a
	// task to be replaced is not as it was seen. With several partitions
	// this is checked in all of them first; a failure after that may leave a part stored, and the same call again
	// completes it.
	//
	// A submission with a Pulse is a touch: something happened for the subject of an activity task. It books the task's
	// next run, or makes the task if there is none; its Due, State and Conflict are not used. Either all submissions of a
	// call are touches or none is; each touch stands for itself.
	Submit(ctx context.Context, tasks []Submission) ([]Placed, error)

	// Claim leases due tasks, or, if no request has a Limit, only looks. Each request is one atomic step in its
	// partition: it takes back the tasks of expired leases, visits the agents that have waited longest, takes an equal
	// share from each, and leases what it took under one new fence. A request with a nonce that was seen before returns
	// the tasks of that claim that still run, but for those that were replaced meanwhile: nobody has begun to run them, so
	// they are given back as what they were replaced by. It returns one Claim for each request, in order; when some fail
	// and others do not, the error is in the Claim of their partition, so that no claimed task is dropped and no healthy
	// partition waits.
	Claim(ctx context.Context, requests []ClaimRequest) ([]Claim, error)

	// Settle ends runs. A run that lost its lease changes nothing and gets [ErrLeaseLost] in its Settled; a run that
	// is settled already is left as it is, without an error. It works when the store is full. Runs of one partition
	// are settled in atomic steps of at most a hundred, and of fewer that are large. When some steps fail and others do not, the error is in their
	// Settled.
	Settle(ctx context.Context, runs []Settlement) ([]Settled, error)

	// Extend moves the ends of leases and stores the progress of their runs. It returns for each extension whether
	// its lease is still held, and which of its runs are to end. When some partitions fail and others do not, the error
	// is in their Extended.
	Extend(ctx context.Context, leases []Extension) ([]Extended, error)

	// Control carries out an operator's commands, each by itself and in one atomic step for each partition it is about.
	// It returns one Effect for each command. The same command again changes nothing more. An audit may be repeated or
	// cut off at any page.
	//
	// Orders for a task that runs are kept until its run ends, or dies:
	//   - A cancel is final: whatever the run returns, the task ends as cancelled, unless its end was settled before the
	//     cancel was stored. Until then the task is neither replaced nor made due once more: both are refused. Its process
	//     being dead, the next claim that may take its kind returns it as Cancelled, also if it is held.
	//   - Of several definitions that replace it the last one counts. It is not disturbed by how the run ends, and is due
	//     when it says. What was cancelled afterwards is that definition, and the task with it.
	//   - An order to run once more makes a definition that replaces the task later no earlier; one that comes after it
	//     makes the definition due when the run ends.
	Control(ctx context.Context, commands []Command) ([]Effect, error)

	// Read returns tasks of one agent: those with the ids asked for, or the next page of all. Pages go through the places
	// where tasks are: first those that wait, by due time, then those that run, those that are parked, and those that have
	// finished. A task that stays where it is until the last page is in exactly one of them, one that runs meanwhile in
	// at least one; one that is paused, resumed or replayed meanwhile may be missing or come twice. A page has at most Limit
	// tasks and PageBytes bytes, may have fewer, and has none only if it is the last. A query without an agent gets a page of
	// the agents with live tasks, or of the holds in force. A page takes a bounded time, however many tasks there are.
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

// KnownFor is how long the id of a finished task stays known at least, or for as long as records are kept if that is
// shorter: also when its record has to make room for those of later tasks.
const KnownFor = 24 * time.Hour

// ClaimRequest asks one partition for due tasks.
type ClaimRequest struct {
	Partition int
	Nonce     string   // NonceLen bytes, new for each request and the same when the request is repeated; not used by a look
	Agents    []string // whose tasks to take; nil for any agent
	Kinds     []string // kinds to take; tasks of a kind in neither list are parked until somebody asks for it
	// Most bounds how many tasks of some of Kinds are taken; with 0 they are left where they are. Kinds that are not in
	// it have no bound but Limit.
	Most  map[string]int
	Leave []string // kinds to leave where they are, and to count as Left
	// Urgent takes tasks of level 1 only. What has waited for so long that it counts as level 1 stays where it is.
	Urgent bool
	// Serial takes one task of an agent, and none while a task of it runs that was taken so.
	Serial bool
	// After passes over agents that have waited since this time or before. With Most, Leave or Urgent a claim may look at
	// many agents that have nothing for it: the next one like it goes on where Claim.Passed says.
	After    Millis
	Limit    int           // most tasks, at most MaxClaim; 0 only looks
	PerAgent int           // most tasks of one agent; 0 for as many as there is room for
	Lease    time.Duration // how long the claim holds its tasks
	// Fence is the largest fence that the caller has seen of the partition; 0 for none. That of this claim is larger, even if
	// the store has forgotten its last writes and its clock is behind, as after a failover.
	Fence Fence
}

// NonceLen is the length of a claim's nonce; MaxClaim the most tasks that one request can take, so that no step of the
// store is long. For the same reason a request looks at a task whose body has 4 KiB or more only while the bodies of those that
// it has looked at before have less than ClaimBytes: else the task stays where it is, with what its agent has behind it. What is
// parked and can be put back is bounded in the same way.
const (
	NonceLen   = 16
	MaxClaim   = 50
	ClaimBytes = 512 << 10
)

// Claim is the answer of one partition.
type Claim struct {
	Partition int
	Now       Millis // the store's clock at the step
	NextDue   Millis // when the next of the agents asked for is due; not after Now if more is due; zero: never
	NextLease Millis // when the next lease of the partition ends; zero: none is held
	// AgentsDue is, for each of the agents asked for, when it is due next; zero: never, as far as its queue says. A parked
	// task that may be taken makes NextDue now, but not these.
	AgentsDue []Millis
	// Passed says that a picky request (see ClaimRequest.After) had to stop its search before it had looked at every due
	// agent: of those that have waited since this time or before, none has anything left for it, but for what another claim
	// or a settlement has put there since, and for agents of the very same millisecond. Zero: it has looked at all.
	Passed    Millis
	Left      int   // tasks that this step found due and left, as their kind is in Leave
	Parked    int   // tasks that this step parked
	Recovered int   // tasks whose lease had expired and that this step put back
	Fence     Fence // of all tasks of this claim; zero if there are none
	Tasks     []Claimed
	Err       error // why this partition could not answer, while others of the call did
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
	// Crashes is how many runs of this task have lost their process since its state was last written: the first, and those
	// that were counted by [Progress] before they began.
	Crashes int
	Body    []byte // as submitted
	State   []byte // as last settled, nil at first
	// Cancelled is set when the task was told to end while a run that has crashed held it: it is to be settled with
	// VerbCancel, and Order is what the command said.
	Cancelled bool
	Order     []byte
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
