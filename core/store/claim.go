package store

// Look and Claim: when work is due, and taking it.

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// ClaimRequest asks one partition for due tasks.
type ClaimRequest struct {
	Partition int
	// Nonce has NonceLen bytes; it is new for each request, and the same when the request is repeated. One that begins with w is of a worker whose
	// runs do not end with the process that claims them.
	Nonce  string
	Agents []string // whose tasks to take, each named once; nil for any agent
	Kinds  []string // kinds to take; tasks of a kind in neither list are parked until a claim asks for it
	// Most bounds how many tasks of some of Kinds are taken; with 0 they are left where they are. Kinds that are not in
	// it have no bound but Limit.
	Most  map[string]int
	Leave []string // kinds to leave where they are, and to count as Left
	// Urgent takes tasks of level 1 only. Tasks that have waited for so long that they count as level 1 stay in their places.
	Urgent bool
	// Serial takes one task of an agent, and none while a task of it runs that was taken so.
	Serial bool
	// After passes over agents that have waited since this time or before; with AfterName, of those of the very same time only the ones up to that, or
	// none if it is no longer there. With Most, Leave or Urgent a claim may look at many agents that have nothing for it: the next one like it
	// continues where Claim.Passed and PassedName say.
	After     moment.Millis
	AfterName string
	Limit     int           // most tasks, 1 to MaxClaim
	PerAgent  int           // most tasks of one agent; 0 for as many as there is room for
	Lease     time.Duration // how long the claim holds its tasks
	// Leases are the kinds of Kinds whose tasks are held for another time. A claim has one lease: it takes the tasks that are held as long as
	// the first one that it takes, and leaves the others in their places.
	Leases map[string]time.Duration
	// Notice is how long the holder of a lease that is over is given to extend it, from the first claim that finds it so: a process
	// that lives keeps its runs when the store has been away for longer than a lease. Zero takes their tasks back at once.
	Notice time.Duration
	// Suspects is how many tasks are taken whose last run lost its process, whose last two did, and whose last three or more did; a
	// claim takes tasks of one of these sorts only. Claim.Suspects says how many were left in their places. Nil for no bound.
	Suspects *[SuspectSorts]int
	// MaxCrashes is how many crashes a task may have that still runs: one with more is claimed to be ended, and no suspect. Zero for any.
	MaxCrashes int
	// Ahead also takes tasks that fall due within so long; the caller starts each of them at its time. AheadMost is how many at most; they come
	// besides Limit, once all that is due is taken. A store takes them only where nothing about them is out of the ordinary: nothing holds
	// them, half of what bounds them is free with them, no order or signal is meant for them, their due time does not move with activity,
	// they are not of level 1, and no process has died of them. It may take fewer, or none. AheadLease is how long a claim that has such tasks holds all of its tasks, if
	// its lease would be longer: if the caller dies before they begin, they are late by that and its notice.
	Ahead      time.Duration
	AheadMost  int
	AheadLease time.Duration
	// New is a task that is stored first, as [Queue].Submit stores it. The claim is made only if that creates it, and then for its
	// agent: Agents is nil, Kinds has its kind. Where nothing else of the agent is due and nothing is out of the ordinary, both are
	// one step, in which no other claim can take it. Claim.Submitted has the outcome.
	New *Submission
	// Fence is the largest fence that the caller has seen of the partition; 0 for none. This claim's own is larger, even if
	// the store has forgotten its last writes and its clock is behind, as after a failover.
	Fence Fence
	Tell  bool // return which tasks it parks
	// Expect is the expected use of runs whose use is not known yet: see [bound.Budget].
	Expect []bound.Expected
	// Stamp, if it is set, names definitions that have to be stored before the caller starts anything: see [Bounds]. A partition without
	// that stamp leases nothing to it, and reports that.
	Stamp string
}

// SuspectSorts are the sorts of tasks whose processes died: of one run in a row, of two, of three or more.
const SuspectSorts = 3

// SuspectSort is the sort, from 0 on, of a task with so many crashes; -1 for none.
func SuspectSort(crashes int) int { return min(crashes, SuspectSorts) - 1 }

// NonceLen is the length of a claim's nonce; MaxClaim the most tasks that one request can take, so that no step of the
// store is long. For the same reason a request looks at a task whose body has 4 KiB or more only while the bodies of those that
// it has looked at before have less than ClaimBytes: otherwise the task stays in its place, with what its agent has behind it. Parked
// tasks that can be put back are bounded in the same way.
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

// Look is the report of one partition on when it is due.
type Look struct {
	Partition int
	Now       moment.Millis // the store's clock at the step
	NextDue   moment.Millis // when the next of the agents asked for is due; not after Now if more is due; zero: never
	NextLease moment.Millis // when the next lease of the partition ends; zero: none is held
	// AgentsDue is, for each of the requested agents, when it is due next, by its queue; zero: never. A parked
	// task that may be taken makes NextDue now, but not these.
	AgentsDue []moment.Millis
	Err       error // why this partition could not answer, while others of the call did
}

// Claim is the answer of one partition: a look at what is left, and what was taken.
type Claim struct {
	Look

	// Passed is set if a picky request (see ClaimRequest.After) had to stop its search before it had looked at every due
	// agent: of those that have waited since this time or before, none has anything left for it, but for what another claim
	// or a settlement has put there since. Zero: it has looked at all. Where it stopped between agents of the very same time, PassedName is the last of them,
	// by a name of the store's own: all may be due at nine.
	Passed     moment.Millis
	PassedName string
	Left       int // tasks that this step found due and left, as their kind is in Leave
	Noticed    int // leases that are over and that it has given notice of: see ClaimRequest.Notice
	Suspects   int // tasks that it left as ClaimRequest.Suspects had no room for them
	Parked     int // tasks that this step parked
	// Aside are those tasks, if the request says Tell: the first MostAside.
	Aside     []Aside
	Recovered int // tasks whose lease had expired and that this step put back
	// From is how many of these each process had, by the beginning of the nonces of its claims: half of one.
	From    map[string]int
	Fence   Fence // of all tasks of this claim; zero if there are none
	Tasks   []Claimed
	Crossed []bound.Crossing // budgets of starts that are used up by this claim
	// Submitted is the outcome for the New of the request; nil if it had none, or failed.
	Submitted *Submitted
	// Unstamped reports that nothing was leased as the partition lacks the Stamp of the request: the store has lost those definitions. A claim
	// that finds nothing due need not report it.
	Unstamped bool
	// Turns reports that tenants have taken turns, as more is due than this claim may take: when the next is due says little about who waits then. Only of
	// a claim that has tasks.
	Turns bool
	// UrgentNext is, for a claim that asked for tasks of level 1 and found none, when it is worth asking again: when something is due next that was not
	// due now, and no later than a second from then; where Passed is set, as far as it has looked. A store that is a [Waker] sends a wake-up if one is
	// placed that is due before. Zero: it is worth asking at any time.
	UrgentNext moment.Millis
	// Ahead is until when due times were looked at for ClaimRequest.Ahead; zero if they were not, as something is out of the ordinary.
	Ahead moment.Millis
}

// Aside is a task that a claim has parked, and why.
type Aside struct {
	Agent, ID string
	Why       Why
}

// MostAside is how many parked tasks a claim returns.
const MostAside = 50

// Why a task is parked.
type Why byte

// Why a task is parked: it is held, its kind is not among those asked for, or a limit or a budget has no room.
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
	Due       moment.Millis
	Submitted moment.Millis
	// Crashes is how many runs of this task in a row have died with their process: those whose leases ended without notice of a
	// [Extension.Leave], and that no process has taken back by [Extension.Back]. A settlement with a state clears it.
	Crashes int
	Body    []byte // as submitted
	State   []byte // as last settled, nil at first
	// Cancelled is set when the task was cancelled while a run that has crashed held it: it is to be settled with
	// VerbCancel, and Order is the note of the command.
	Cancelled bool
	Order     []byte
	Profile   []byte // that its agent has now; empty for none
	// Lined reports that it comes out of the line for a limit or a budget: it is late as it had to wait there. A claim that is repeated
	// may have lost that.
	Lined bool
}
