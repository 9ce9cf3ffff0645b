package store

// Look and Claim: when work is due, and taking it.

import "time"

// ClaimRequest asks one partition for due tasks.
type ClaimRequest struct {
	Partition int
	Nonce     string   // NonceLen bytes, new for each request and the same when the request is repeated
	Agents    []string // whose tasks to take, each named once; nil for any agent
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
	// many agents that have nothing for it: the next one like it continues where Claim.Passed says.
	After    Millis
	Limit    int           // most tasks, 1 to MaxClaim
	PerAgent int           // most tasks of one agent; 0 for as many as there is room for
	Lease    time.Duration // how long the claim holds its tasks
	// New is a task that is stored first, as [Queue].Submit stores it. The claim is made only if that creates it, and then for its
	// agent: Agents is nil, Kinds has its kind. Where nothing else of the agent is due and nothing is out of the ordinary, both are
	// one step, in which nobody else can take it. Claim.Submitted says what became of it.
	New *Submission
	// Fence is the largest fence that the caller has seen of the partition; 0 for none. That of this claim is larger, even if
	// the store has forgotten its last writes and its clock is behind, as after a failover.
	Fence Fence
	Tell  bool // say which tasks it parks
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

// LookRequest asks one partition when it is due.
type LookRequest struct {
	Partition int
	Agents    []string // whose tasks; nil for any agent
	Kinds     []string // a parked task of these kinds is due now
}

// Look is what one partition says of when it is due.
type Look struct {
	Partition int
	Now       Millis // the store's clock at the step
	NextDue   Millis // when the next of the agents asked for is due; not after Now if more is due; zero: never
	NextLease Millis // when the next lease of the partition ends; zero: none is held
	// AgentsDue is, for each of the agents asked for, when it is due next; zero: never, as far as its queue says. A parked
	// task that may be taken makes NextDue now, but not these.
	AgentsDue []Millis
	Err       error // why this partition could not answer, while others of the call did
}

// Claim is the answer of one partition: what a look says of what is left, and what was taken.
type Claim struct {
	Look

	// Passed says that a picky request (see ClaimRequest.After) had to stop its search before it had looked at every due
	// agent: of those that have waited since this time or before, none has anything left for it, but for what another claim
	// or a settlement has put there since, and for agents of the very same millisecond. Zero: it has looked at all.
	Passed Millis
	Left   int // tasks that this step found due and left, as their kind is in Leave
	Parked int // tasks that this step parked
	// Aside are those tasks, if the request says Tell: the first MostAside.
	Aside     []Aside
	Recovered int   // tasks whose lease had expired and that this step put back
	Fence     Fence // of all tasks of this claim; zero if there are none
	Tasks     []Claimed
	Crossed   []Crossing // budgets of starts that are used up by this claim
	// Submitted is what became of the New of the request; nil if it had none, or failed.
	Submitted *Submitted
}

// Aside is a task that a claim has parked, and why.
type Aside struct {
	Agent, ID string
	Why       Why
}

// MostAside is how many parked tasks a claim tells.
const MostAside = 50

// Why a task is parked.
type Why byte

// Why a task is parked: it is held, no kind that is asked for is its own, or a limit or a budget has no room.
const (
	WhyHeld      Why = 'h'
	WhyNoHandler Why = 'k'
	WhyLimit     Why = 'l'
	WhyBudget    Why = 'b'
)

// Fence numbers the claims of a partition. It only grows and is never used twice.
type Fence int64

// Run names one attempt at a task: the task, and the claim that holds it.
type Run struct {
	Partition int
	Fence     Fence
	Index     int // the task's place in its claim
	Agent, ID string
	// Ref is the store's own name of the agent, if it has one: it gives it with the claim, and is spared from making it again
	// when the run is settled or reports. A Run without it means the same run.
	Ref string
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
	// Cancelled is set when the task was cancelled while a run that has crashed held it: it is to be settled with
	// VerbCancel, and Order is what the command said.
	Cancelled bool
	Order     []byte
	Profile   []byte // that its agent has now; empty for none
	// Lined says that it comes out of the line for a limit or a budget: it is late as it had to wait there. A claim that is repeated
	// may not know it any more.
	Lined bool
}
