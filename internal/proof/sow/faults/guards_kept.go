package faults

// The guards of what is kept for runs under way, and for a store that comes back empty.

import "github.com/seed-6f6f2c11/duly/internal/proof/sow"

// keptGuards are those of promises 38 and 44.
var keptGuards = []Guard{
	{"38", sow.Fault{
		Name: "reserve", What: "a budget keeps nothing for the runs under way", Change: sow.Drop,
	}, inCore, "TestABudgetIsExactForEqualRuns$"},
	{"38", sow.Fault{
		Name: "reserve-on-redis", What: "a budget keeps nothing for the runs under way", Change: sow.Swap("+ u[2]", "+ 0"),
	}, onRedis, "TestContract$/a_budget_keeps"},
	{"38", sow.Fault{
		Name: "reserve-usual", What: "what is kept is what nine in ten use, for those under way too",
		Change: sow.Swap("last[#last] }", "last[math.ceil(#last * 9 / 10)] }"),
	}, onRedis, "TestContract$/a_budget_is_exceeded"},
	{"38", sow.Fault{
		Name: "unreserve", What: "what was kept for a run stays so when it has ended", Change: sow.Swap("all - amount", "all"),
	}, onRedis, "TestContract$/what_was_kept"},
	{"38", sow.Fault{
		Name: "reserve-spanning", What: "a budget over partitions keeps nothing for the runs under way",
		Change: sow.Swap("with_room(b)", "math.max(n, with_room(b))"),
	}, onRedis, "TestABudgetOverPartitionsIsExact$"},
	{"38", sow.Fault{
		Name: "charged-once-on-redis", What: "what a run was charged while it went on is charged again at its end", Change: sow.Swap("used[unit] - (before[unit] or 0)", "used[unit]"),
	}, onRedis, "TestContract$/what_goes_on"},
	{"38", sow.Fault{
		Name: "budget-given-back", What: "a budget counts a run that was given back and has not begun", Change: sow.Never,
	}, inMemory, "TestContract$/^claims_ahead_leave_room"},
	{"38", sow.Fault{
		Name: "budget-given-back-on-redis", What: "a budget counts a run that was given back and has not begun", Change: sow.Always,
	}, onRedis, "TestContract$/^claims_ahead_leave_room"},
	{"38", sow.Fault{
		Name: "budget-cuts", What: "a run that has used its budget up has failed", Change: sow.Drop,
	}, inCore, "TestASaveChargesBudgets$"},
	{"45", sow.Fault{
		Name: "late-state-on-redis", What: "a state that comes late undoes a later one", Change: sow.Swap("number >= last", "true"),
	}, onRedis, "TestContract$/progress"},
	{"46", sow.Fault{
		Name: "file-sync", What: "an answer does not wait for the disk", Change: sow.Drop,
	}, inFolder, "TestAnswersWaitForTheDisk$"},
	{"46", sow.Fault{
		Name: "file-seen", What: "a read shows what is not on the disk yet", Change: sow.Never,
	}, inFolder, "TestAnswersWaitForTheDisk$"},
	{"46", sow.Fault{
		Name: "file-full", What: "a full disk takes new tasks in, out of what is kept for ends", Change: sow.Never,
	}, inFolder, "TestAFullDisk$"},
	{"46", sow.Fault{
		Name: "file-room", What: "a snapshot takes the room of what calls write on a full disk", Change: sow.Without(2),
	}, inFolder, "TestAFullDisk$"},
	{"46", sow.Fault{
		Name: "file-snapshot-room", What: "a snapshot is begun that the disk has no room for", Change: sow.Always,
	}, inFolder, "TestASnapshotNeedsRoom$"},
	{"46", sow.Fault{
		Name: "file-damaged", What: "damage is taken for a tail that was cut off", Change: sow.Never,
	}, inFolder, "TestDamageIsNamed$"},
	{"46", sow.Fault{
		Name: "file-mended", What: "a flipped bit stays flipped", Change: sow.Never,
	}, inFolder, "TestAFlippedBit$"},
	{"46", sow.Fault{
		Name: "file-fingerprint", What: "calls that are answered in another way than before are not noticed", Change: sow.Never,
	}, inFolder, "TestOtherAnswersAreNamed$"},
	{"46", sow.Fault{
		Name: "file-lock", What: "two processes have a folder", Change: sow.Never,
	}, inFolder, "TestOneProcessAtATime$"},
	{"46", sow.Fault{
		Name: "file-orphans", What: "tasks of a killed process wait for their leases although the lock says that it is dead", Change: sow.Never,
	}, inFolder, "TestADeadProcessHoldsNothing$"},
	{"47", sow.Fault{
		Name: "lent-unasked", What: "runs are lent to a caller that has gone, and wait for their leases", Change: sow.Never,
	}, inCore, "TestNothingIsLentWithoutACaller$"},
	{"47", sow.Fault{
		Name: "lent-stays", What: "a run that was lent ends here", Change: sow.Never,
	}, inCore, "TestALentRun$"},
	{"47", sow.Fault{
		Name: "lent-timeout", What: "a worker holds a run for ever", Change: sow.Never,
	}, inCore, "TestALentRunIsToEnd$"},
	{"47", sow.Fault{
		Name: "lent-elsewhere", What: "an end undoes what the run has saved through another server", Change: sow.Never,
	}, inCore, "TestALentTaskIsReadOnce$"},
	{"47", sow.Fault{
		Name: "lent-unknown", What: "a worker whose outcome could not be stored yet hears that its run is lost", Change: sow.Never,
	}, inCore, "TestAnEndWhileTheStoreIsAway$"},
	{"47", sow.Fault{
		Name: "lent-late", What: "a worker begins a run whose lease has ended before it heard of it", Change: sow.Never,
	}, inCore, "TestALoanFromASlowStore$"},
	{"47", sow.Fault{
		Name: "lent-late-back", What: "a run that its worker never heard of waits for its lease, and has crashed then", Change: sow.Never,
	}, inCore, "TestALoanThatCannotBeKept$"},
	{"47", sow.Fault{
		Name: "lent-lingers", What: "what a worker has ended waits beside an alarm for what falls due next", Change: sow.Never,
	}, inCore, "TestATurnBesideAnAlarm$"},
	{"47", sow.Fault{
		Name: "lent-failures", What: "a worker is refused as another task has failed", Change: sow.Swap("p.scope.loan == nil && ", ""),
	}, inCore, "TestAFailureIsNoMatterOfTheWorker$"},
	{"6", sow.Fault{
		Name: "ahead-in-line", What: "a task that is looked at before its time waits in the line of a rate, from which it starts too early", Change: sow.Swap("c.take(s.task)", "c.settleIn(s.task)"),
	}, inMemory, "TestContract$/claims_ahead_count_under_a_rate_at_their_time"},
	{"51", sow.Fault{
		Name: "late-lost", What: "a process that was frozen while it looked tells that a task is late which is not any more", Change: sow.Never,
	}, inCore, "TestALookThatWasFrozenTellsNothing$"},
	{"15", sow.Fault{
		Name: "explain-silence", What: "explain does not say that the process of a run has gone silent", Change: sow.Never,
	}, inCore, "TestExplainSaysThatAProcessIsSilent$"},
	{"47", sow.Fault{
		Name: "lent-busy", What: "a worker that is busy with long runs is not there for explain and the doctor", Change: sow.Drop,
	}, inCore, "TestABusyWorkerIsThere$"},
	{"47", sow.Fault{
		Name: "ended-before", What: "a worker whose answer was lost hears that its run is lost", Change: sow.Never,
	}, inCore, "TestAnEndThatIsSentAgain$"},
	{"47", sow.Fault{
		Name: "turn-held", What: "what a worker's claim brings, and ends at once, waits for another claim", Change: sow.Drop,
	}, inCore, "TestATurnThatBringsWhatIsSkipped$"},
	{"47", sow.Fault{
		Name: "unsent-messages", What: "a run whose message could not be sent waits for its lease", Change: sow.Never,
	}, "adapters/http/rpc", "TestRunsThatCannotBeSent$"},
	{"47", sow.Fault{
		Name: "ticket-seal", What: "a ticket that was made up ends the run of another", Change: sow.Never,
	}, "adapters/http", "TestAWorkerOverHTTP$"},
	{"47", sow.Fault{
		Name: "ticket-grant", What: "a worker ends the run of an agent that its credential does not cover", Change: sow.Never,
	}, "adapters/http", "TestATicketOfAnotherCredential$"},
	{"47", sow.Fault{
		Name: "unsent-runs", What: "runs whose answer cannot be sent wait for their leases", Change: sow.Never,
	}, "adapters/http", "TestRunsThatCannotBeSent$"},
	{"44", sow.Fault{
		Name: "stamp", What: "a claim leases tasks to a process whose definitions are lost", Change: sow.Without(2),
	}, inCore, "TestAnEmptyStoreGetsItsLimitsBackFirst$"},
	{"44", sow.Fault{
		Name: "stamp-on-redis", What: "a claim leases tasks to a process whose definitions are lost", Change: sow.Drop,
	}, onRedis, "TestContract$/definitions_are_stamped"},
	{"44", sow.Fault{
		Name: "stamp-plain", What: "a plain claim does not ask for the stamp", Change: sow.Drop,
	}, onRedis, "TestContract$/definitions_are_stamped"},
	{"44", sow.Fault{
		Name: "stamp-start", What: "an urgent task starts although the definitions are lost", Change: sow.Drop,
	}, onRedis, "TestContract$/definitions_are_stamped"},
	{"44", sow.Fault{
		Name: "stamp-idle", What: "a process that claims nothing never asks for its stamp", Change: sow.Always,
	}, inCore, "TestAnEmptyStoreGetsItsTasksBack$"},
	{"44", sow.Fault{
		Name: "stamp-alone", What: "a call that asks a slow store for the stamp keeps all others waiting", Change: sow.Never,
	}, inCore, "TestASlowStampHoldsUpNoOther$"},
	{"44", sow.Fault{
		Name: "stamp-kept", What: "a process takes for stored what the store did not keep the stamp of", Change: sow.Never,
	}, inCore, "TestALimitThatIsLostBeforeItsStamp$"},
	{"44", sow.Fault{
		Name: "stamp-of-what-is-set", What: "a stamp stands for limits that the store has lost", Change: sow.Drop,
	}, onRedis, "TestContract$/a_stamp_is_kept_only_of_what_is_set"},
	{"44", sow.Fault{
		Name: "stamp-in-memory", What: "the model of the stores keeps a stamp that stands for limits which are lost", Change: sow.Never,
	}, inCore, "TestALimitThatIsLostBeforeItsStamp$"},
	{"7", sow.Fault{
		Name: "passed-within-a-time", What: "a search passes over agents of the very millisecond at which it stopped", Change: sow.Drop,
	}, onRedis, "TestContract$/a_search_that_goes_on"},
	{"7", sow.Fault{
		Name: "passed-within-a-time-in-memory", What: "a search looks for ever at the first agents of one millisecond", Change: sow.Never,
	}, inCore, "TestAKindThatIsBusyHidesNoOtherOfItsTime$"},
	{"7", sow.Fault{
		Name: "callback-slots", What: "a receiver that does not answer keeps all slots", Change: sow.Drop,
	}, inCore, "TestCallbacksLeaveHalfOfTheSlots$"},
	{"5", sow.Fault{
		Name: "ends-go-on", What: "pauses that end together end a few a second, and leases as slowly", Change: sow.Never,
	}, inCore, "TestPausesThatEndTogether$|TestRunsThatDiedTogether$"},
	{"48", sow.Fault{
		Name: "hook-verified", What: "a message is carried out whose signature is wrong", Change: sow.Never,
	}, ofHooks, "TestTheVectorsOfTheProviders$"},
	{"48", sow.Fault{
		Name: "hook-fresh", What: "a signature of last year is good", Change: sow.Never,
	}, ofHooks, "TestOldSignatures$"},
	{"48", sow.Fault{
		Name: "hook-agents", What: "a hook whose agent comes from the message acts for each", Change: sow.Never,
	}, ofHooks, "TestTheAgentsOfAHook$"},
	{"48", sow.Fault{
		Name: "hook-rights", What: "a hook sends signals to agents that are none of its own", Change: sow.Never,
	}, ofHooks, "TestTheAgentsOfAHook$"},
	{"48", sow.Fault{
		Name: "hook-task-id", What: "a message that is carried out again submits another task", Change: sow.Never,
	}, ofHooks, "TestATaskIsSubmittedOnceThoughItsMessageIsForgotten$"},
	{"48", sow.Fault{
		Name: "signal-once", What: "a message that is carried out again sends its signal again", Change: sow.Never,
	}, onRedis, "TestContract$/a_message_sends"},
	{"51", sow.Fault{
		Name: "watched-first", What: "a task is watched only once it has run", Change: sow.Drop,
	}, inCore, "TestATaskThatNeverRanIsTold$"},
	{"51", sow.Fault{
		Name: "watched-afresh", What: "what is expected of a task and is edited counts from the next look on", Change: sow.Swap("watched, true", "nil, true"),
	}, inCore, "TestAnExpectationIsEdited$"},
	{"51", sow.Fault{
		Name: "watched-late", What: "a task is not watched that was stored by a process without the settings of its kind", Change: sow.Drop,
	}, inCore, "TestAMissingWorkerIsTold$"},
	{"51", sow.Fault{
		Name: "watches-of-named", What: "a fleet that pulls for named agents runs no watches", Change: sow.Never,
	}, inCore, "TestATaskThatNeverRanIsTold$"},
	{"51", sow.Fault{
		Name: "expect-of-kind", What: "a kind expects more often a success than a task of it runs", Change: sow.Never,
	}, inCore, "TestAnExpectationIsPossible$"},
	{"51", sow.Fault{
		Name: "expect-too-short", What: "a task may be expected to succeed more often than it runs", Change: sow.Never,
	}, inCore, "TestAnExpectationIsPossible$"},
	{"51", sow.Fault{
		Name: "late-children", What: "the success of an occurrence that is a task of its own counts with the next occurrence only", Change: sow.Never,
	}, inCore, "TestNothingIsToldFalselyInAYear$"},
	{"51", sow.Fault{
		Name: "late-notified", What: "nothing is notified of a task that is late", Change: sow.Swap("l.Notify(ctx, w, t)", "ctx.Err()"),
	}, inCore, "TestASilentFailureIsTold$"},
	{"51", sow.Fault{
		Name: "watched-by-the-store", What: "a watch is due by the clock of the process that submits a task", Change: sow.Swap("b.AskedNow(ctx)", "b.StoreNow(), error(nil)"),
	}, inCore, "TestAWatchGoesByTheClockOfTheStore$"},
	{"51", sow.Fault{
		Name: "late-refused", What: "a task whose notice is refused is never late", Change: sow.Swap("code == model.CodeUnavailable || code == model.CodeStoreFull", "code != \"\""),
	}, inCore, "TestARefusedNoticeHidesNothing$"},
	{"51", sow.Fault{
		Name: "watched-refused", What: "a submit that is refused leaves a watch", Change: sow.Always,
	}, inCore, "TestWatchesEndWithTheirTasks$"},
	{"51", sow.Fault{
		Name: "watched-ended", What: "a task that has ended leaves its watch", Change: sow.Drop,
	}, inCore, "TestWatchesEndWithTheirTasks$"},
	{"51", sow.Fault{
		Name: "watched-undone", What: "a task that was cancelled or deleted leaves its watch", Change: sow.Drop,
	}, inCore, "TestWatchesEndWithTheirTasks$"},
	{"51", sow.Fault{
		Name: "late-tires", What: "the watch of a task that stays late never looks less often", Change: sow.Swap("late/4, ", ""),
	}, inCore, "TestAWatchTires$"},
	{"51", sow.Fault{
		Name: "watch-crashes", What: "a watch, or the signal of an end, is given up whose processes have died", At: "crashes", Change: sow.Swap("!slices.Contains(check.Everywhere, c.Kind)", `c.Kind+check.KindWatch != ""`),
	}, inCore, "Test(AWatch|ATell)OutlivesItsProcesses$"},
	{"51", sow.Fault{
		Name: "not-before-its-claim", What: "a run ends before it was claimed, as an answer of the store was late", Change: sow.Swap("max(s.base.StoreNow(), claimed)", "s.base.StoreNow()"),
	}, inCore, "TestALateAnswerMovesNoRun$"},
	{"7", sow.Fault{
		Name: "outcome-undone", What: "a task whose outcome is lost waits for the others of its claim", Change: sow.Swap("e.Running <= c.asked || ", "true || "),
	}, inCore, "TestALostOutcomeWaitsForNoOther$"},
	{"7", sow.Fault{
		Name: "linger", What: "a pull that waits for what falls due claims nothing that a run has made room for", Change: sow.Swap("case <-news:", "case <-(chan struct{})(nil):"),
	}, inCore, "TestRoomIsUsedWhileAPullWaits$"},
	{"7", sow.Fault{
		Name: "outcome-asked", What: "a save gives back runs whose outcomes are there", Change: sow.Drop,
	}, inCore, "TestALostOutcomeWaitsForNoOther$"},
}

// outputGuards are those of promise 52.
var outputGuards = []Guard{
	{"52", sow.Fault{
		Name: "output-fence-in-memory", What: "a run that was taken over writes over the output of the next one", Change: sow.Never,
	}, inMemory, "TestContract$/output"},
	{"52", sow.Fault{
		Name: "output-deleted-in-memory", What: "a deleted task leaves its output", Change: sow.Never,
	}, inMemory, "TestContract$/output"},
	{"52", sow.Fault{
		Name: "output-deleted-on-redis", What: "a deleted task leaves its output", Change: sow.Drop,
	}, onRedis, "TestContract$/output"},
	{"52", sow.Fault{
		Name: "output-bound", What: "a worker that prints little for long fills a store", Change: sow.Never,
	}, onRedis, "TestContract$/output"},
	{"52", sow.Fault{
		Name: "output-bound-in-memory", What: "a worker that prints little for long fills a store", Change: sow.Swap("c.Bound &&", "false &&"),
	}, inMemory, "TestContract$/output"},
	{"52", sow.Fault{
		Name: "output-part", What: "pieces that overlap fill a store with a run", Change: sow.Swap(" || len(s.Text) > Part", ""),
	}, inMemory, "TestContract$/output"},
	{"52", sow.Fault{
		Name: "lent-output-held", What: "a worker whose run was taken over prints on", Change: sow.Always,
	}, inCore, "TestALentRunPrints"},
}
