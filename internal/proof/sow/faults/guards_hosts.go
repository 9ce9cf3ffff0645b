package faults

// The guards of alarms, signals and callbacks.

import "github.com/seed-6f6f2c11/duly/internal/proof/sow"

// hostGuards are those of promises 40 to 42.
var hostGuards = []Guard{
	{"40", sow.Fault{
		Name: "alarm-booked", What: "an alarm is set for each pull, although one is booked", Change: sow.Without(2),
	}, inCore, "TestOneAlarmIsBooked$"},
	{"40", sow.Fault{
		Name: "alarm-next", What: "a pull books no alarm for what is due next", Change: sow.After("due = made"),
	}, inCore, "TestOneAlarmIsBooked$"},
	{"40", sow.Fault{
		Name: "alarm-running", What: "no alarm is booked while a run takes long", Change: sow.Always,
	}, inCore, "TestAlarmsWhileARunTakesLong$"},
	{"40", sow.Fault{
		Name: "alarm-guard", What: "a pull starts work without a guard", Change: sow.Always,
	}, inCore, "TestAPullBooksAGuardBeforeItStartsWork$"},
	{"40", sow.Fault{
		Name: "alarm-believed", What: "an alarm is known before the clock has confirmed it",
		Change: sow.Swap("booked.By", "booked.Set"),
	}, inCore, "TestAClockThatHangs$"},
	{"40", sow.Fault{
		Name: "alarm-for-others", What: "an alarm that others have waited for, and that may have rung, serves what is due later",
		Change: sow.Swap("a.wanted > now.Add(2*alarm.SureAfter)", "a.wanted != 0"),
	}, inCore, "TestAnAlarmForOthersServesNothingLater$"},
	{"40", sow.Fault{
		Name: "alarm-own-time", What: "an alarm is booked with the context of the caller",
		Change: sow.Swap("context.WithoutCancel(ctx)", "ctx"),
	}, inCore, "TestAnAlarmHasItsOwnTime$"},
	{"40", sow.Fault{
		Name: "alarm-gathers", What: "each submit that is due earlier sets an alarm", Change: sow.Never,
	}, inCore, "TestSubmitsThatAreDueEverEarlier$"},
	{"41", sow.Fault{
		Name: "signal-twice", What: "a task is told again", Change: sow.Without(1),
	}, inMemory, "TestContract$/a_signal_to_many"},
	{"41", sow.Fault{
		Name: "signal-early", What: "a signal that comes first is lost", Change: sow.Drop,
	}, onRedis, "TestContract$/a_signal_that_comes_first"},
	{"41", sow.Fault{
		Name: "answer-late", What: "the answer to a question is told to another wait", At: "answer", Change: sow.Without(2),
	}, onRedis, "TestContract$/a_signal_to_one_wait"},
	{"41", sow.Fault{
		Name: "approval-by-anybody", What: "a run approves what waits for an approval",
		At: "approval", Change: sow.Swap("}, false", "}, approves"),
	}, inCore, "TestOnlyAnApprovalCounts$"},
	{"50", sow.Fault{
		Name: "reply-approval", What: "the answer of a caller who may not approve is lost in silence", Change: sow.Never,
	}, inMCP, "TestATaskAsksTheUser$"},
	{"50", sow.Fault{
		Name: "mcp-reply", What: "a model that may only look answers what a task asks", Change: sow.Drop,
	}, inMCP, "TestATaskAsksAnybody$"},
	{"50", sow.Fault{
		Name: "mcp-scopes", What: "a model has all that its credential has, in spite of its address", Change: sow.Never,
	}, inMCP, "TestTheAddressBoundsTheModel$"},
	{"50", sow.Fault{
		Name: "mcp-rights", What: "a model may do more than its credential", Change: sow.Swap("m.may(ctx, t.action)", "error(nil)"),
	}, inMCP, "TestTheAgentIsThatOfTheCredential$"},
	{"32", sow.Fault{
		Name: "a2a-rights", What: "a client of A2A may do more than its credential", Change: sow.Never,
	}, inA2A, "TestWhoMayCall$"},
	{"32", sow.Fault{
		Name: "a2a-reads", What: "a client of A2A that may only write gets the results", Change: sow.Never,
	}, inA2A, "TestAResultIsForReaders$"},
	{"32", sow.Fault{
		Name: "a2a-tasks", What: "a client of A2A gets tasks that no message has made", Change: sow.Never,
	}, inA2A, "TestOtherTasksAreNotFound$"},
	{"41", sow.Fault{
		Name: "a2a-reply", What: "a client of A2A that may only look answers what a task asks", Change: sow.Drop,
	}, inA2A, "TestAnAnswerNeedsARight$"},
	{"41", sow.Fault{
		Name: "a2a-once", What: "an answer that is sent again answers the next question", Change: sow.Swap("core.ReceptionDuplicate", `"none"`),
	}, inA2A, "TestAMessageToATaskIsAnAnswer$"},
	{"41", sow.Fault{
		Name: "signal-heard", What: "what a run was told is gone when it is repeated", Change: sow.Before("d.heard(v)"),
	}, inCore, "TestWhatWasHeardIsNotLost$"},
	{"41", sow.Fault{
		Name: "signal-wakes", What: "who sleeps is not woken by a signal", Change: sow.Swap("(now)", "(now, true)"),
	}, onRedis, "TestContract$/a_signal_wakes"},
	{"42", sow.Fault{
		Name: "callback-foretold", What: "an end is stored before its callback", Change: sow.Always,
	}, inCore, "TestEachEndIsToldWhateverDies$"},
	{"42", sow.Fault{
		Name: "callback-looks", What: "a callback is delivered although nothing has ended like that",
		Change: sow.Swap("== t.ID", `!= ""`),
	}, inCore, "TestEachEndIsToldWhateverDies$"},
	{"42", sow.Fault{
		Name: "callback-undone", What: "an end is undone before anybody is sure that it is told", Change: sow.Always,
	}, inCore, "TestEachEndIsToldWhateverDies$"},
	{"42", sow.Fault{
		Name: "callback-again", What: "a URL that is no longer allowed is called", At: "callback-allowed", Change: sow.Never,
	}, inCore, "TestWhatMayNotBeCalledIsRefused$"},
	{"42", sow.Fault{
		Name: "callback-owed", What: "an agent that has all the tasks it may have gets no callback",
		At: "limit", Change: sow.Without(2),
	}, inMemory, "TestContract$/what_is_owed"},
	{"42", sow.Fault{
		Name: "callback-owed-on-redis", What: "an agent that has all the tasks it may have gets no callback",
		Change: sow.Without(4),
	}, onRedis, "TestContract$/what_is_owed"},
	{"42", sow.Fault{
		Name: "callback-path", What: "a path with dots is allowed", Change: sow.Swap(` || part == ".."`, ""),
	}, "handlers/webhook", "TestOnlyWhatIsAllowedMayBeCalled$"},
	{"14", sow.Fault{
		Name: "loser-waits", What: "all processes claim what one is enough for", Change: sow.Never,
	}, inDaemon, "TestOneOfSeveralDaemonsClaims$"},
	{"15", sow.Fault{
		Name: "waits-once", What: "a process leaves to others for ever what has no time of its own", Change: sow.Swap(" && !t.stood", ""),
	}, "core/internal/horizon", "TestAProcessStandsBackOnce$"},
	{"14", sow.Fault{
		Name: "loaded-waits", What: "one process takes all runs that last, until it is full", Change: sow.Drop,
	}, inDaemon, "TestSeveralDaemonsShareTheLoad$"},
	{"14", sow.Fault{
		Name: "newcomer", What: "a process that has just started leaves everything to those that do not know of it", Change: sow.Swap("base.LiveEvery", "0"),
	}, "core/internal/presence", "TestANewcomerStandsBackForNone$"},
}
