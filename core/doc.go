// Package core runs due tasks for AI agents: it decides what is due, claims it, runs it and records the outcome.
// Where tasks are kept is a [Store]'s affair (core/redisstore, core/memstore); what calls a pull is a host's.
//
// # The story
//
// A program makes a [Scheduler] on a store and registers a handler for each kind of task with [Handle]. Anyone submits
// tasks with [Scheduler.Submit]: due at once, at a time, after a delay, or again and again. Whenever the host has a
// moment - a timer, a scheduled function, an HTTP request - it calls [Scheduler.RunDueTasks] for some agents or
// [Scheduler.RunDue] for all: one batched fetch of what is due, then one tick for each agent. The call returns when
// everything that it claimed is recorded or released, with a [Report] that says when to come back.
//
//	             submit                    claim                     complete, fail, cancel
//	(none) ----------------> waiting ----------------> in_progress ------------------------> finished
//	                            ^                           |                                   |
//	                            |   retry, snooze, yield,   |                                   |
//	                            +--- next occurrence, ------+                                   |
//	                            |   release, lost lease                                         |
//	                            +------------------------- replay (of a failed one) ------------+
//
// # One noun for each stage
//
// A program submits a [NewTask] and gets a [Submitted]. A claim leases it as a [Claimed]. A handler has it as a [Task], whose
// [RunInfo] is the part that does not depend on its payload's type. Later callers read a [TaskInfo], whose Runs are
// [model.TaskRun]s: one for each attempt. A store sees the same task as a store.Submission answered by a store.Submitted, the
// same Claimed, a store.Settlement answered by a store.Settled, and hands it out as store.Stored.
//
// # What holds
//
// Once Submit has returned nil the task is not lost by a crash of any process. A claim puts tasks under a lease with a
// fence; heartbeats extend it while the process lives. If the process dies the lease ends and the next claim, by
// any process, takes its tasks back: they start again, which is counted as a crash and not as a failed attempt. A run whose
// lease was lost changes nothing any more. So a task runs at least once, and every further start has a reason in
// [TaskInfo.Runs]. Time is the store's: the clocks of workers may be wrong by any amount.
//
// Not promised: that a task runs exactly once, and any order between agents. docs/guarantees.md has all promises, each
// with its test.
//
// # Steering
//
// A handler returns nil, an error (another attempt, with backoff), [SkipRetry], [Cancel], [Snooze], [RetryAfter],
// [NextIn] or [Yield]. A panic, runtime.Goexit, a timeout and a handler that ignores its context are failed attempts.
//
// A gate, registered with [Gate], is asked before each run of its kind whether there is anything to do: only then the handler
// starts. While there is nothing, it is asked less and less often; see [IdleBackoff].
package core
