package faults

import "github.com/seed-6f6f2c11/duly/internal/proof/sow"

// The sown faults: real ones of earlier versions, those that users of other schedulers report, and what a slip would make.

// The faults of the store in memory come first, then those of the scheduler,
// then those of the scripts.
var plain = []sow.Fault{
	{
		Name: "no-fence-check", What: "A settlement of a run that lost its lease is taken.",
		At: "fence", Change: sow.Without(4),
	},
	{
		Name: "lease-not-extended", What: "A heartbeat is answered, and the lease ends all the same.",
		At: "extend", Change: sow.Swap("now.Add(leases[i].Lease)", "c.term.end"),
	},
	{
		Name: "agenda-late", What: "An agent that gets something earlier keeps its place in the agenda.",
		At: "agenda", Change: sow.Never,
	},
	{
		Name: "nonce-ignored", What: "A repeated claim takes other tasks.", At: "nonce-in-memory", Change: sow.Never,
	},
	{
		Name: "hold-not-looked-at", What: "A claim takes what is paused.", At: "pause", Change: sow.Never,
	},
	{
		Name: "replace-keeps-payload", What: "A replaced task keeps its old payload.",
		At: "replace", Change: sow.Before("sub.Body = t.Body"),
	},
	{
		Name: "cancel-forgotten", What: "A run ends as it likes although its task was cancelled.",
		At: "cancel-is-final", Change: sow.Swap("!= store.VerbCancel", "== store.VerbRelease"),
	},
	{
		Name: "group-counted-twice", What: "A completed task counts twice in its group.", At: "group", Change: sow.Twice,
	},
	{
		Name: "retention-not-applied", What: "Finished tasks are known for ever.", At: "retention", Change: sow.Without(2),
	},
	{
		Name: "cap-off-by-one", What: "One finished task too many is kept.", At: "history-cap", Change: sow.After("most++"),
	},
	{
		Name: "resume-without-requeue", What: "A resume leaves what was put aside where it is.",
		At: "resume", Change: sow.Before("return true"),
	},
	{
		Name: "pause-end-without-requeue", What: "A pause that is over leaves what was put aside where it is.",
		At: "pause-end", Change: sow.Instead("p.forget(t.scope)"),
	},
	{
		Name: "crash-not-counted", What: "A lost lease leaves no crash.", At: "crash-counted", Change: sow.Drop,
	},
	{
		Name: "early", What: "An agent is visited half a second early.", Change: sow.After("s.visit -= 500"),
	},
	{
		Name: "due-rounded-down", What: "A time between two milliseconds is rounded down.",
		At: "due-rounded-up", Change: sow.Swap(".Add(time.Millisecond - 1)", ""),
	},
	{
		Name: "order-turned", What: "Within an agent the lowest level comes first.", At: "order", Change: sow.Swap("<", ">"),
	},
	{
		Name: "throttle-debounces", What: "Further activity puts a throttled run off.",
		At: "throttle", Change: sow.Both(sow.Or("rule.Delay > 0"), sow.Inside("rule.MaxWait = 10 * rule.Delay")),
	},
	{
		Name: "limit-off-by-one", What: "An agent gets one task more than the limit.",
		At: "limit", Change: sow.Swap(">=", ">"),
	},
	{
		Name: "pause-outlives-task", What: "A pause of a task stays when the task has ended.",
		At: "pause-of-task", Change: sow.Drop,
	},
	{
		Name: "stale-hint", What: "A look does not see that the next lease ends.", At: "hint", Change: sow.Never,
	},
	{
		Name: "deleted-run-goes-on", What: "A delete leaves the run its lease.",
		At: "deleted-run", Change: sow.Instead("c.runs[i].lost = false"),
	},
	// From here on the faults are those of the scheduler, which any store would show.
	{
		Name: "double-spawn", What: "A recurring task whose process dies while it books an occurrence books it twice.",
		At: "spawn-once", Change: sow.Swap("occurrence", "s.base.StoreNow()"),
	},
	{
		Name: "attempt-not-counted", What: "A failed attempt is not counted.", At: "attempt", Change: sow.Drop,
	},
	{
		Name: "waits-since-ever", What: "An outcome has waited since the first one of its process.",
		At: "waits-not-twice", Change: sow.Swap("now-r.decided", "now"),
	},
	{
		Name: "waited", What: "What an outcome has waited comes on top of the delay until its task is due again.", Change: sow.Swap("s.Due.After-s.Waited", "s.Due.After"),
	},
	{
		Name: "crash-is-failure", What: "A crash counts as a failed attempt.",
		At: "crash-is-no-failure", Change: sow.Before("d.State.Attempt++"),
	},
	{
		Name: "retry-after-charged", What: "RetryAfter is charged at once.", Change: sow.Swap("> kind.MaxRetryAfters", "> 0"),
	},
	{
		Name: "retry-after-early", What: "RetryAfter is repeated before its time.",
		At: "retry-after", Change: sow.Swap("max(", "min("),
	},
	{
		Name: "release-charged", What: "A run that its process gives back costs an attempt.",
		At: "release", Change: sow.Before("d.State.Attempt++"),
	},
	{
		Name: "no-stretch", What: "Failures do not stretch the interval.",
		At: "stretch", Change: sow.Swap("d.State.Failures", "0"),
	},
	{
		Name: "pause-late", What: "A task that keeps failing is paused one failure late.",
		At: "pause-after", Change: sow.After("n--"),
	},
	{
		Name: "occurrence-lost", What: "The next occurrence of a cron is passed over.",
		At: "occurrence", Change: sow.After("next = d.after(next, interval)"),
	},
	{
		Name: "nothing-learned", What: "A pull that has got nothing asks again at once.",
		At: "nothing-found", Change: sow.Drop,
	},
	{
		Name: "waits-too-long", What: "A process whose claim has found nothing leaves what falls due to others, of which there may be none.",
		At: "loser-waits", Change: sow.Swap("behindLoser", "behindLoser * 1_000_000"),
	},
	{
		Name: "waits-for-ever", What: "A process leaves to others for ever what is due whenever that is asked.",
		At: "waits-once", Change: sow.Swap(" && !t.stood", ""),
	},
	{
		Name: "frozen-starts", What: "A process that was frozen past its leases starts what it had claimed.",
		At: "frozen", Change: sow.Always,
	},
	{
		Name: "suspects-unbounded", What: "A process runs any number of tasks whose last runs died with their processes.",
		At: "suspects", Change: sow.Swap(" Suspects: g.SuspectsFor(p.turn+i, len(due)),", ""),
	},
	{
		Name: "no-notice", What: "A lease that is over is taken back at once.",
		At: "notice-given", Change: sow.Swap("leases.Notice(shortest)", "0"),
	},
	{
		Name: "crash-of-the-living", What: "The crashes of a process that lives stay counted.", At: "lived", Change: sow.Drop,
	},
	{
		Name: "crashes-off-by-one", What: "A poisonous task gets one more try.", At: "crashes", Change: sow.Swap(">", "> 1 +"),
	},
	{
		Name: "kind-slots-ignored", What: "The slots of a kind do not bound it.", At: "kind-slots", Change: sow.Drop,
	},
	{
		Name: "min-interval-ignored", What: "The minimum interval of a task is not kept.",
		At: "min-interval", Change: sow.Always,
	},
	{
		Name: "result-lost", What: "What was kept of a task goes when it is replaced.",
		At: "result-kept", Change: sow.Swap("Result: s.Result, ", ""),
	},
	{
		Name: "failures-not-cleared", What: "A success does not clear the failures in a row.",
		At: "failures-cleared", Change: sow.Drop,
	},
	// A kind would then be left for lack of time by a process that has never completed a run of
	// it.
	{
		Name: "learn-from-cut-offs", What: "Runs that were cut off are learned from.", At: "learn", Change: sow.Without(1, 3),
	},
	// It panics, as an earlier version did: no invariant is named for that.
	{
		Name: "release-of-nothing", What: "A release that is refused, as its task was replaced, ends the process.",
		At: "refused-release", Change: sow.After("d = decide.Decision{}"),
	},
	{
		Name: "given-up-is-kept", What: "Heartbeats extend the lease of a run that was given up.",
		At: "given-up", Change: sow.Instead("if result.Err == nil { p.heartbeat.Release(c, true) }"),
	},
	{
		Name: "claims-after-stop", What: "A process that is asked to end claims on.",
		At: "stop-claims", Change: sow.Swap("p.ctx", "context.WithoutCancel(p.ctx)"),
	},
	{
		Name: "timeout-ignored", What: "A handler is not told that its time is up.",
		At: "timeout", Change: sow.Swap("c.Cancel(ErrTimeout)", ""),
	},
	{
		Name: "cancel-not-told", What: "A run is not told that its task was cancelled.",
		At: "cancel-reaches-run", Change: sow.Drop,
	},
	{
		Name: "file-forgets", What: "A call is answered, and is in no file.", At: "file-journal", Change: sow.Drop,
	},
	// From here on the faults are in scripts, and are tried with a Redis. Several have
	// counterparts above, as both stores have to give the same answers.
	{
		Name: "lua-lease-not-extended", What: "A script answers a heartbeat, and the lease ends all the same.",
		At: "extend-on-redis", Change: sow.After("till = now"),
	},
	{
		Name: "lua-nonce-ignored", What: "A script takes other tasks when a claim is repeated.",
		At: "nonce", Change: sow.Never,
	},
	{
		Name: "lua-hold-not-looked-at", What: "A script takes all although everything is paused.",
		At: "holds-on-redis", Change: sow.After("HOLDS = false"),
	},
	{
		Name: "lua-replacement-early", What: "A replaced task is due at once when its run ends.",
		At: "replacement", Change: sow.Instead("due = now"),
	},
	{
		Name: "lua-group-counted-twice", What: "A script counts the end of a task twice in its group.",
		At: "group-on-redis", Change: sow.Twice,
	},
	// Found by histories of real processes, and kept here since.
	{
		Name: "run-now-while-stopped", What: "A task is told to run while everything is paused, and waits silently.",
		Change: sow.Never,
	},
	{
		Name: "lua-pause-moves", What: "A pause that is given again does not begin again.",
		At: "pause-again", Change: sow.Swap("command == 'prolong' and ", ""),
	},
	{
		Name: "lua-crash-keeps-count", What: "A script does not count tasks that it takes back.",
		At: "recovered", Change: sow.Drop,
	},
	{
		Name: "lua-progress-lost", What: "A script drops the progress that comes with a heartbeat.",
		At: "progress", Change: sow.Drop,
	},
	// From here on the faults are in the plain scripts, and in what becomes of an agent that gets queues.
	{
		Name: "plain-claim-holds", What: "A plain claim takes what is paused by itself, or whose agent or kind is.",
		At: "plain-claim-kinds", Change: sow.Without(2),
	},
	{
		Name: "plain-claim-nonce", What: "A plain claim that is repeated takes other tasks.",
		At: "plain-recovery", Change: sow.Without(2),
	},
	{
		Name: "plain-claim-leaves", What: "A plain claim leaves the first task that it takes in the agenda.",
		Change: sow.Swap("unpack(gone)", "'', unpack(gone, 2)"),
	},
	{
		Name: "plain-claim-leases-one", What: "A plain claim leases the first of its tasks alone.",
		At: "plain-claim-leases", Change: sow.Swap("RUNNING, n", "RUNNING, 1"),
	},
	{
		Name: "plain-claim-second", What: "A plain claim gives the second task of an agent with few as the first.",
		Change: sow.After("lives[at_tasks[k]], refs[at_tasks[k]] = lives[at_tasks[k] - 1] or live, refs[at_tasks[k] - 1] or tasks[k]"),
	},
	{
		Name: "plain-claim-kinds", What: "A plain claim takes tasks that nobody has a handler for.",
		Change: sow.Before("per[kind] = per[kind] or 0"),
	},
	{
		Name: "plain-claim-hint", What: "After a plain claim nobody knows when its lease ends.", Change: sow.Drop,
	},
	{
		Name: "plain-settle-hint", What: "A plain settlement does not tell that something is due earlier than all others.", Change: sow.Drop,
	},
	{
		Name: "plain-settle-marks", What: "A plain settlement takes a run that lost its lease.",
		Change: sow.Swap("all[at] ~= byte(RUNNING)", "not all[at]"),
	},
	{
		Name: "plain-settle-open", What: "A plain settlement does not close the claim.", Change: sow.Drop,
	},
	{
		Name: "plain-settle-name", What: "A plain settlement leaves the name of a task that has ended with its agent.",
		Change: sow.Swap(", from - 1) .. sub(value, from + #name)", ")"),
	},
	{
		Name: "plain-settle-member", What: "What is due again waits at the place of the first task of its agent.",
		Change: sow.Swap(" or sub(values[agent], 6, 12) ~= sub(place, 2)", ""),
	},
	{
		Name: "plain-settle-orders", What: "A plain settlement does not see what was ordered.",
		At: "plain-rare", Change: sow.Swap("'orders', ", ""),
	},
	{
		Name: "plain-settle-records", What: "A plain settlement drops the earlier records of an agent.", Change: sow.Never,
	},
	{
		Name: "plain-settle-history", What: "A plain settlement keeps no record of an agent's second end.", Change: sow.Drop,
	},
	{
		Name: "plain-submit-finished", What: "A plain submit does not see that the id has ended.", Change: sow.Never,
	},
	{
		Name: "plain-submit-history", What: "A plain submit does not look for the id among several that have ended.",
		Change: sow.Before("if kept == HISTORY then kept = false end"),
	},
	{
		Name: "plain-submit-hint", What: "A plain submit does not tell that something is due earlier.", Change: sow.Without(2),
	},
	{
		Name: "spread-loses", What: "A task that waits is lost when its agent gets queues.",
		At: "spread-queue", Change: sow.Drop,
	},
	{
		Name: "spread-late", What: "An agent that gets queues is visited no earlier than its first task was due.",
		At: "spread-agenda", Change: sow.After("agenda_adds[#agenda_adds - 1], agenda_adds[#agenda_adds] = nil, nil"),
	},
	{
		Name: "spread-keeps-memory", What: "An agent that gets queues keeps the places that its tasks had in the agenda.",
		At: "spread-in-memory", Change: sow.Drop,
	},
}
