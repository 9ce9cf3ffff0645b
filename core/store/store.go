package store

// The interfaces of a store, and the promises of each verb.

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core/store/alarm"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/count"
	"github.com/seed-6f6f2c11/duly/core/store/message"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Store remembers tasks; the scheduler of package core decides what happens to them. It has the verbs of a [Queue], of an
// [Operator], of a [Reader], of [Tenants], of [Bounds], of [Bookings], of [Signals] and of [Messages]. Nearly every verb takes a batch, and returns
// one answer for each request, in order. Atomic means within each partition by itself: a partition is the slice of all agents that one step of the
// store can change at once.
//
// The store's clock is the only one that decides whether something is due or a lease has run out. Time in this package is
// [moment.Millis] of that clock.
//
// Bytes handed to a store belong to it, and bytes it returns belong to the caller. Errors mean that the outcome is unknown;
// repeating the same call is always safe. [ErrFull] means that nothing was written.
//
// Package storetest is this contract as tests.
type Store interface {
	Queue
	Operator
	Reader
	Tenants
	Bounds
	Bookings
	Signals
	Messages
}

// Queue has the verbs that a scheduler needs to take tasks in and run them.
type Queue interface {
	// Partitions is the number of partitions, a power of two that never changes. [PartitionOf] places an agent.
	Partitions() int

	// Submit stores new tasks, all or none of them. The Conflict of a task decides what is done if its (agent, id) is live, or finished and
	// still remembered. Fails with a *[LimitError] if an agent would have more live tasks than the store
	// allows, with a *[ConflictError] where a Conflict demands it or a task to be replaced runs and was cancelled
	// ([ConflictEnding]), with [ErrChanged] if a task to be replaced has changed since it was read, and with a *[breaker.Error] if too many
	// tasks were submitted for the Root of one. With several partitions this is
	// checked in all of them first; a failure after that may leave a part stored, and the same call again completes it.
	Submit(ctx context.Context, tasks []Submission) ([]Submitted, error)

	// Touch notes that something happened for the subjects of activity tasks. Each touch counts by itself: it books the
	// task's next run, or makes the task if it does not exist, which may fail with a *[LimitError].
	Touch(ctx context.Context, touches []Touch) ([]Touched, error)

	// Look returns when partitions are due, and takes nothing. When some fail and others do not, the error is in their Look.
	Look(ctx context.Context, requests []LookRequest) ([]Look, error)

	// Claim leases due tasks. Each request is one atomic step in its partition: it takes back the tasks of expired leases,
	// visits the agents that have waited longest, takes an equal share from each, and leases what it took under one new
	// fence. A request with a nonce that was seen before returns the tasks of that claim that still run, but for those that
	// were replaced meanwhile: no process has begun to run them, so they are requeued with their new definitions. When some
	// fail and others do not, the error is in the Claim of their partition, so that no claimed task is dropped and no healthy
	// partition waits.
	Claim(ctx context.Context, requests []ClaimRequest) ([]Claim, error)

	// Settle ends runs. A run that lost its lease changes nothing and gets [ErrLeaseLost] in its Settled; a run that
	// is settled already stays unchanged, without an error. It works when the store is full. Runs of one partition
	// are settled in atomic steps of at most a hundred, and of fewer that are large. When some steps fail and others do not,
	// the error is in their Settled.
	Settle(ctx context.Context, runs []Settlement) ([]Settled, error)

	// Turn is Settle and Claim in one call, for a scheduler that has outcomes to store when it claims: in each partition the
	// runs end before the claim is made, but for those that have to be tried again. A half that fails loses nothing of the
	// other: the error is in its items then, and the call fails only if nothing was carried out.
	Turn(ctx context.Context, runs []Settlement, requests []ClaimRequest) ([]Settled, []Claim, error)

	// Extend moves the ends of leases and stores the progress of their runs. It returns whether each lease is still held, and
	// which of its runs are to end. When some partitions fail and others do not, the error is in their Extended.
	Extend(ctx context.Context, leases []Extension) ([]Extended, error)
}

// Operator is what people change by hand, and what keeps a store whole. Each request is carried out by itself, in one atomic
// step for each partition that it is about; the same request again changes nothing more.
//
// Orders for a task that runs are kept until its run ends, or dies:
//   - A cancel is final: regardless of the run's result the task ends as cancelled, unless its end was settled before the
//     cancel was stored. Until then the task is neither replaced nor made due again: both are refused. Its process
//     being dead, the next claim that may take its kind returns it as Cancelled, also if it is held.
//   - Of several definitions that replace it the last one counts. It is not disturbed by how the run ends, and is due
//     when it says. A later cancel cancels that definition, and the task with it.
//   - An order to run again makes a definition that replaces the task later no earlier; one that comes after it
//     makes the definition due when the run ends.
type Operator interface {
	// Replay makes dead tasks live again, due now.
	Replay(ctx context.Context, tasks []Replay) ([]Effect, error)

	// RunNow makes waiting tasks due now; one that is due in its queue stays unchanged. Such a task is claimed although it is
	// held, by holds that had begun by then: a later hold keeps it.
	RunNow(ctx context.Context, tasks []RunNow) ([]Effect, error)

	// Cancel ends tasks as cancelled: at once those that wait, and those that run when their runs end.
	Cancel(ctx context.Context, tasks []Cancellation) ([]Effect, error)

	// Delete forgets tasks. A run of one loses its lease.
	Delete(ctx context.Context, tasks []Deletion) ([]Effect, error)

	// Hold lets no task of some targets be claimed. A single task has to be live.
	Hold(ctx context.Context, holds []Hold) ([]Effect, error)

	// Unhold ends holds.
	Unhold(ctx context.Context, targets []Target) ([]Effect, error)

	// Audit looks at pages of live tasks: each has to wait where claims look for it, to run under a lease, or to be parked
	// where something puts it back. The last pages of a partition compare the counters with what the others have counted. An
	// audit may be repeated or cut off at any page.
	Audit(ctx context.Context, pages []audit.Page) ([]audit.Result, error)
}

// Reader shows what is stored. Each call takes a bounded time, regardless of the number of tasks.
type Reader interface {
	// Get returns tasks of one agent by their ids, one for each, with an empty Status if it does not exist.
	Get(ctx context.Context, query Get) (Found, error)

	// List returns the next page of an agent's tasks. Pages go through the places where tasks are: first those that wait, by
	// due time, then those that run, those that are parked, and those that have finished. A task that stays where it is until
	// the last page is in exactly one of them, one that runs meanwhile in at least one; one that is paused, resumed or
	// replayed meanwhile may be missing or come twice. A page has at most Limit tasks and PageBytes bytes, may have fewer, and
	// has none only if it is the last.
	List(ctx context.Context, query List) (Page, error)

	// Find returns the next page of the tasks of all agents that are at a place, in the order of [Place]. A task that is there from
	// the first page to the last is in at least one of them; tasks that come and go meanwhile may be missing. A page has at
	// most Limit tasks and PageBytes bytes and may have none although more follow, as the search for one page is bounded. A task of PlaceAwaiting
	// may be missing from all pages, or appear twice, if a great many come or go meanwhile.
	Find(ctx context.Context, query Find) (Page, error)

	// Group returns how many tasks of a group there are, by where they are.
	Group(ctx context.Context, agent, group string) (GroupCounts, error)

	// Agents returns a page of the agents with live tasks, in no order.
	Agents(ctx context.Context, page PageOf) (AgentPage, error)

	// Holds returns a page of the holds in force, in no order.
	Holds(ctx context.Context, page PageOf) (HoldPage, error)

	// Stats are the counters of the whole store; reading them costs the same however many tasks there are.
	Stats(ctx context.Context) (count.Stats, error)
}

// Tenants keeps data of agents themselves, whether or not they have tasks: opaque profiles, which each claim and submit returns.
type Tenants interface {
	// Profile sets and deletes profiles of agents, each if it is unchanged since it was read: otherwise EffectChanged. Sent again it changes nothing.
	// Claims and submits return the profile of an agent from then on.
	Profile(ctx context.Context, changes []ProfileChange) ([]Effect, error)

	// Replan gives waiting tasks other due times and states. One that runs, or that has an order to run or to end
	// (EffectRunning), and one that is not as it was seen (EffectChanged) stay unchanged.
	Replan(ctx context.Context, tasks []Replan) ([]Effect, error)

	// Forget drops a page of the remains of an agent whose tasks were deleted, and returns where the next page begins: empty after
	// the last one.
	Forget(ctx context.Context, r Remains) (next string, err error)

	// ProfileOf is the profile of an agent; empty if it has none.
	ProfileOf(ctx context.Context, agent string) ([]byte, error)

	// Profiles returns a page of the agents with profiles, in no order.
	Profiles(ctx context.Context, page PageOf) (ProfilePage, error)
}

// Bounds limit which tasks may run at all, over all processes. A store has at most [bound.MostLimits] of both sorts together.
type Bounds interface {
	// Limit sets and lifts limits. Tasks that one lets go are claimed from the next claim on; runs under way stay. EffectNone reports that
	// a limit was so already.
	Limit(ctx context.Context, changes []bound.LimitChange) ([]Effect, error)

	// Limits are the limits in force, ordered by kind, key and Each, and how much of each is used.
	Limits(ctx context.Context) ([]bound.LimitUse, error)

	// Budget sets and lifts budgets, from the next claim on. What was used in the current period counts in a budget that is set
	// again; runs before its first setting do not count. EffectNone reports that a budget was so already.
	Budget(ctx context.Context, changes []bound.BudgetChange) ([]Effect, error)

	// Budgets are the budgets in force, ordered by their targets, and how much of each is used.
	Budgets(ctx context.Context) ([]bound.BudgetUse, error)

	// Stamp notes in every partition that the definitions which a stamp names are stored: limits, budgets, and everything else that a process
	// needs to have stored before it starts anything. The last [bound.MostStamps] are known; a store that loses the definitions loses the stamp. A
	// stamp has [bound.StampLen] digits and capital letters. It works when the store is full.
	//
	// of are the limits, without a Unit, and the budgets among the definitions. A partition in which one of them is not set notes nothing, and false
	// is returned: the store fell back, or one was lifted, since the caller set them. In each partition that is atomic.
	Stamp(ctx context.Context, stamp string, of ...bound.BudgetTarget) (bool, error)

	// Stamped reports whether a partition has a stamp.
	Stamped(ctx context.Context, partition int, stamp string) (bool, error)
}

// Bookings is what a store remembers of the alarms of hosts without a process of their own: which ones an external clock has confirmed, and which ones
// are owed, as it has not. It is for the whole store together, so that a hundred processes book one alarm, and the next caller settles the debt of a
// process that died.
type Bookings interface {
	// Book owes an alarm, unless a confirmed one serves it, or another process is setting such a one; see [alarm.Booked]. The caller may get
	// to set another one that is owed, whose process had its time and has not confirmed it. Without At nothing new is owed, and without For either nothing is
	// changed. The same booking again gets the same answer.
	Book(ctx context.Context, b alarm.Booking) (alarm.Booked, error)

	// Confirm notes that the external clock is going to ring at a time, which was set with the tag of a booking: that tag owes nothing more until then.
	Confirm(ctx context.Context, b alarm.Booking) error
}

// Messages is what a store remembers of messages, for all processes.
type Messages interface {
	// Receive notes the state of a message, in one atomic step. [message.Begun] takes it for a delivery, unless another one has: it returns
	// what is known of that, and changes nothing then. [message.Done] records that it was carried out, and [message.Dropped] forgets
	// it if the same delivery has taken it. The same request again changes nothing more.
	Receive(ctx context.Context, r message.Receipt) (message.Received, error)
}

// Waker is implemented by stores that can signal when work falls due earlier than the last look reported.
type Waker interface {
	// Wakeups subscribes until ctx is done, then closes the channel. A wake-up may be lost, for instance while
	// the connection is down: it saves waiting, and nothing depends on it.
	Wakeups(ctx context.Context) (<-chan Wakeup, error)
}

// Wakeup announces that a partition has work that falls due at a time.
type Wakeup struct {
	Partition int
	Due       moment.Millis
	// Withdrawn says, in place of a due time, that a command may be about tasks that were claimed ahead of their time: who has such tasks
	// gives them back, and claims again what is still to be started.
	Withdrawn bool
	// Urgent says, in place of a due time, that a task of level 1 may be had that is due before the [Claim.UrgentNext] of an answer: who waits
	// until then asks at once.
	Urgent bool
}
