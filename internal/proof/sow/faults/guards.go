package faults

import (
	"slices"

	"github.com/seed-6f6f2c11/duly/internal/proof/sow"
)

const (
	inCore   = "core"
	inMCP    = "adapters/mcp"
	inA2A    = "adapters/http/a2a"
	inMemory = "core/memstore"
	inFolder = "core/filestore"
	ofHooks  = "adapters/hooks"
	onRedis  = "core/redisstore"
	inDaemon = "adapters/daemon"
)

// Guard is what keeps a promise: the fault is the promise without it.
type Guard struct {
	Promise string // its number in docs/guarantees.md
	sow.Fault

	Folder string // of the test
	Test   string // a pattern for go test -run
}

// Guards has one for each promise that has a single place in the code which keeps it.
var Guards = append([]Guard{
	{"1", sow.Fault{
		Name: "nonce", What: "a repeated claim takes other tasks", Change: sow.Never,
	}, onRedis, "TestLostAnswers$"},
	{"2", sow.Fault{
		Name: "unknown-kind", What: "a task of an unknown kind is claimed", Change: sow.Never,
	}, inCore, "TestUnknownKindsWait$"},
	{"2", sow.Fault{
		Name: "odd", What: "no full script follows where a plain one is not enough", Change: sow.Drop,
	}, onRedis, "TestAnOddAnswerIsFollowedByTheFullScript$"},
	{"2", sow.Fault{
		Name: "odd-unchanged", What: "a plain claim takes tasks out of the agenda before it finds out that it is not enough",
		Change: sow.Inside("redis.call('ZREM', KEYS[1], unpack(gone))"),
	}, onRedis, "TestOddAnswersComeBeforeAllWrites$"},
	{"3", sow.Fault{
		Name: "crash-recorded", What: "a crash leaves no reason in the task's runs", Change: sow.Drop,
	}, inCore, "TestCrashesAreCountedApart$"},
	{"4", sow.Fault{
		Name: "fence", What: "a stale run is settled", Change: sow.Without(4),
	}, inMemory, "TestContract$/expired_leases"},
	{"4", sow.Fault{
		Name: "fence-seen", What: "a fence is not above what the claimer has seen", Change: sow.Swap("int64(r.Fence)", "0"),
	}, onRedis, "TestContract$/fences_grow_past"},
	{"4", sow.Fault{
		Name: "plain-fence-seen", What: "a plain claim's fence is not above what the claimer has seen",
		Change: sow.Swap("r.Fence", "0"),
	}, onRedis, "TestFencesGrowAcrossAFailover$"},
	{"5", sow.Fault{
		Name: "recovery", What: "expired leases are not taken back", Change: sow.Drop,
	}, onRedis, "TestContract$/expired_leases"},
	{"5", sow.Fault{
		Name: "plain-recovery", What: "a plain claim goes on although a lease has ended", Change: sow.Without(1),
	}, onRedis, "TestContract$/expired_leases"},
	{"5", sow.Fault{
		Name: "ahead-short", What: "what a dead process had claimed ahead is late by its whole lease", Change: sow.Drop,
	}, inDaemon, "TestADeathDelaysWhatHadNotBegunByAMoment$"},
	{"28", sow.Fault{
		Name: "ahead-together", What: "each outcome of what one claim has taken ahead is stored by itself", Change: sow.Never,
	}, inDaemon, "TestOutcomesOfAMomentTravelTogether$"},
	{"28", sow.Fault{
		Name: "waits-not-twice", What: "what an outcome waits comes on top of the delay until its task is due again", Change: sow.Drop,
	}, inDaemon, "TestOutcomesOfAMomentTravelTogether$"},
	{"28", sow.Fault{
		Name: "plain-claim-beyond", What: "a task that was not taken ahead is not known as the next one",
		Change: sow.Swap(" and n - ndue == #early / 2", ""),
	}, onRedis, "TestAClaimAheadTellsWhatIsNext$"},
	{"6", sow.Fault{
		Name: "ahead-repeated", What: "a claim whose answer was lost starts early what it had taken ahead", Change: sow.Never,
	}, inDaemon, "TestARepeatedClaimStartsNothingEarly$"},
	{"11", sow.Fault{
		Name: "pause-waits", What: "a pause returns while another process may still start what it has claimed ahead", Change: sow.Drop,
	}, inDaemon, "TestAPauseReturnsWhenNothingStartsAnyMore$"},
	{"6", sow.Fault{
		Name: "early", What: "an agent is visited half a second early", Change: sow.After("s.visit -= 500"),
	}, inMemory, "TestContract$/never_before_due"},
	{"7", sow.Fault{
		Name: "order", What: "the lowest level comes first", Change: sow.Swap("<", ">"),
	}, inMemory, "TestContract$/order_within_an_agent"},
	{"7", sow.Fault{
		Name: "flood", What: "200 tasks of one agent are in the agenda by themselves", Change: sow.Swap("32", "200"),
	}, inMemory, "TestContract$/a_flood_delays_others"},
	{"7", sow.Fault{
		Name: "flood-on-redis", What: "200 tasks of one agent are in the agenda by themselves", Change: sow.Swap("32", "200"),
	}, onRedis, "TestContract$/a_flood_delays_others"},
	{"7", sow.Fault{
		Name: "flood-plain", What: "a plain submit lets one task too many into the agenda",
		At: "plain-limit", Change: sow.Swap("live >= few", "live > few"),
	}, onRedis, "TestContract$/a_flood_delays_others"},
	{"7", sow.Fault{
		Name: "loud", What: "a plain settlement wakes nobody for what is due earlier", Change: sow.After("LOUD = false"),
	}, onRedis, "TestContract$/no_wake-up_for_a_quiet"},
	{"7", sow.Fault{
		Name: "quiet", What: "a plain settlement wakes everybody for what its caller takes",
		At: "loud", Change: sow.After("LOUD = true"),
	}, onRedis, "TestContract$/no_wake-up_for_a_quiet"},
	{"7", sow.Fault{
		Name: "quiet-in-memory", What: "a settlement wakes everybody for what its caller takes", Change: sow.Always,
	}, inMemory, "TestContract$/no_wake-up_for_a_quiet"},
	{"8", sow.Fault{
		Name: "margin", What: "a pull does not end before its context's deadline",
		Change: sow.Swap(" - p.s.config.Margin", ""),
	}, inCore, "TestStuckAtTheEnd$|TestAStoreThatHangsEndsInTime$"},
	{"9", sow.Fault{
		Name: "unknown-field", What: "a field of a newer binary is not passed over", Change: sow.Without(1),
	}, "core/internal/record", "TestUnknownFieldsArePassedOver$"},
	{"10", sow.Fault{
		Name: "out-of-memory", What: "a settle begins with a write that full memory refuses", Change: sow.Drop,
	}, onRedis, "TestFullMemory$"},
	{"10", sow.Fault{
		Name: "plain-out-of-memory", What: "a plain settle begins with a write that full memory refuses",
		Change: sow.Before("redis.call('HSET', KEYS[5], unpack(marks))"),
	}, onRedis, "TestFullMemory$"},
	{"10", sow.Fault{
		Name: "plain-claim-out-of-memory", What: "a plain claim begins with a write that full memory refuses",
		Change: sow.Before("if n > 0 then redis.call('HINCRBY', KEYS[7], 'clock', '0') end"),
	}, onRedis, "TestFullMemory$"},
	{"28", sow.Fault{
		Name: "plain-settle-followed", What: "what is due again is known to nobody if the claim behind its settlement is lost",
		Change: sow.Swap("string.format('%.0f', next_)", "ms"),
	}, onRedis, "TestASettlementWhoseClaimIsLost$"},
	{"10", sow.Fault{
		Name: "full-owed", What: "the delivery of a callback is refused when memory is full", Change: sow.Drop,
	}, onRedis, "TestAFullRedisKeepsGuardsAndEnds$"},
	{"10", sow.Fault{
		Name: "full-limit", What: "a limit cannot be set when memory is full", Change: sow.Drop,
	}, onRedis, "TestAFullRedisKeepsGuardsAndEnds$"},
	{"10", sow.Fault{
		Name: "full-open", What: "no store opens when memory is full", Change: sow.Always,
	}, onRedis, "TestAFullRedisKeepsGuardsAndEnds$"},
	{"11", sow.Fault{
		Name: "pause", What: "what is paused is claimed", Change: sow.Never,
	}, inCore, "TestPauseAndResume$"},
	{"11", sow.Fault{
		Name: "pause-again", What: "a pause that is given again does not hold what was told to run",
		Change: sow.Swap("command == 'prolong' and ", ""),
	}, onRedis, "TestContract$/run_now_ends_with_the_pause"},
	{"11", sow.Fault{
		Name: "plain-pauses", What: "a pause of a task outlives it if its end is plain", Change: sow.Drop,
	}, onRedis, "TestContract$/a_hold_ends_with_its_task"},
	{"12", sow.Fault{
		Name: "cancel-is-final", What: "a run ends as it likes although its task was cancelled",
		Change: sow.Swap("!= store.VerbCancel", "== store.VerbRelease"),
	}, inMemory, "TestContract$/a_cancelled_run_ends"},
	{"12", sow.Fault{
		Name: "plain-orders", What: "a plain claim does not tell that a task was cancelled during its last run",
		Change: sow.Drop,
	}, onRedis, "TestContract$/a_cancelled_run_is_left"},
	{"13", sow.Fault{
		Name: "replace", What: "a replaced task keeps its old payload", Change: sow.Before("sub.Body = t.Body"),
	}, inMemory, "TestContract$/replace_what_waits"},
	{"14", sow.Fault{
		Name: "overlap", What: "an occurrence that fell due during a run is not recorded as skipped", Change: sow.Drop,
	}, inCore, "TestOverlap$"},
	{"15", sow.Fault{
		Name: "explain", What: "explain does not name the pause", Change: sow.Drop,
	}, inCore, "TestPauseAndResume$"},
	{"16", sow.Fault{
		Name: "plain-claim-vain", What: "a plain claim that finds nothing leaves it told that something is due",
		Change: sow.Swap("hint ~= stands", "n > 0"),
	}, onRedis, "TestAClaimThatFindsNothingTellsWhatIsNext$"},
	{"16", sow.Fault{
		Name: "audit", What: "an audit does not repair what was lost", Change: sow.Negate,
	}, onRedis, "TestAuditRepairsWhatIsDamaged$"},
	{"16", sow.Fault{
		Name: "plain-charge", What: "a plain claim takes tasks beyond a limit, and counts none", Change: sow.Drop,
	}, onRedis, "TestALimitWithRoomLeavesClaimsPlain$"},
	{"16", sow.Fault{
		Name: "plain-charge-runs", What: "a plain claim takes more tasks than a limit lets run", Change: sow.Drop,
	}, onRedis, "TestALimitWithRoomLeavesClaimsPlain$"},
	{"7", sow.Fault{
		Name: "plain-ahead-limit", What: "what is claimed ahead of its time uses up a limit", Change: sow.Drop,
	}, onRedis, "TestContract$/^claims_ahead_leave_room"},
	{"7", sow.Fault{
		Name: "plain-ahead-rate", What: "what is claimed ahead of its time uses up a rate", Change: sow.Drop,
	}, onRedis, "TestContract$/^claims_ahead_leave_room"},
	{"34", sow.Fault{
		Name: "ahead-rate-starts", What: "a rate counts a start when its task is claimed, which is before it starts", Change: sow.Swap(", float64(t.due)", ""),
	}, inMemory, "TestContract$/^claims_ahead_count"},
	{"34", sow.Fault{
		Name: "plain-ahead-rate-starts", What: "a rate counts a start when its task is claimed, which is before it starts", Change: sow.Swap("math.max(empties[at], its.due)", "empties[at]"),
	}, onRedis, "TestContract$/^claims_ahead_count"},
	{"16", sow.Fault{
		Name: "plain-charge-spent", What: "a plain claim takes a task that uses a budget up, and pauses nothing", Change: sow.Drop,
	}, onRedis, "TestALimitWithRoomLeavesClaimsPlain$"},
	{"16", sow.Fault{
		Name: "plain-charge-many", What: "a plain claim counts in more buckets than a command of a script can name", Change: sow.Swap("n <= MOST_BUCKETS", "true"),
	}, onRedis, "TestManyLimitsOfManyAgents$"},
	{"16", sow.Fault{
		Name: "plain-return-many", What: "a plain settlement gives back more buckets than a command of a script can name, and stops halfway", Change: sow.Drop,
	}, onRedis, "TestManyLimitsOfManyAgents$"},
	{"16", sow.Fault{
		Name: "bucket-of-any-id", What: "the budget of a task with a | in its id is charged nothing", Change: sow.Swap("'^([^|]*|[^|]*|[^|]*)|(.*)$'", "'^(.*)|([^|]*)$'"),
	}, onRedis, "TestABudgetOfATaskWithAnyID$"},
	{"16", sow.Fault{
		Name: "plain-return", What: "a plain settlement gives back nothing of a limit", Change: sow.Drop,
	}, onRedis, "TestALimitWithRoomLeavesClaimsPlain$"},
	{"16", sow.Fault{
		Name: "plain-return-lines", What: "a plain settlement lets nobody in who waits for what it gives back", Change: sow.Drop,
	}, onRedis, "TestALimitWithRoomLeavesClaimsPlain$"},
	{"16", sow.Fault{
		Name: "plain-groups", What: "a plain settlement leaves the counts of a group as they are",
		At: "plain-rare", Change: sow.Swap("'groups', ", ""),
	}, onRedis, "TestContract$/a_task_changes_its_group"},
	{"16", sow.Fault{
		Name: "plain-first", What: "a plain submit stores the first task of an agent with few once more", Change: sow.Drop,
	}, onRedis, "TestContract$/submit_keeps_the_first"},
	{"28", sow.Fault{
		Name: "plain-long-alone", What: "a plain submit has a long task held with its agent", Change: sow.Swap("INLINE_MOST", "9999"),
	}, onRedis, "TestALongTaskIsNotHeldWithItsAgent$"},
	{"28", sow.Fault{
		Name: "start-long-alone", What: "a start has a long task held with its agent", Change: sow.Swap("INLINE_MOST", "9999"),
	}, onRedis, "TestALongTaskIsNotHeldWithItsAgent$"},
	{"28", sow.Fault{
		Name: "long-alone", What: "a submit has a long task held with its agent", Change: sow.Swap("INLINE_MOST", "9999"),
	}, onRedis, "TestALongTaskIsNotHeldWithItsAgent$"},
	{"17", sow.Fault{
		Name: "retry-after", What: "a run is repeated sooner than its handler asked for",
		Change: sow.Swap("max(asked,", "max(0,"),
	}, inCore, "TestRetryAfterHoldsForEverySchedule$"},
	{"18", sow.Fault{
		Name: "process-group", What: "nobody ends a program whose process was killed", Change: sow.Always,
	}, "handlers/exec", "TestProgramsDieWithTheProcessThatRunsThem$"},
	{"19", sow.Fault{
		Name: "address", What: "a webhook calls private addresses", Change: sow.Always,
	}, "handlers/webhook", "TestGuard$"},
	{"20", sow.Fault{
		Name: "history-cap", What: "one finished task too many is kept", Change: sow.After("most++"),
	}, inMemory, "TestContract$/history_is_capped"},
	{"21", sow.Fault{
		Name: "known-ids", What: "the id of a dropped task is forgotten", Change: sow.Never,
	}, inMemory, "TestContract$/a_dropped_id_stays_known"},
	{"23", sow.Fault{
		Name: "input", What: "an id of any length is taken", Change: sow.Never,
	}, inCore, "TestSubmitRefuses$"},
	{"24", sow.Fault{
		Name: "serial", What: "an agent gives a second task while one of it runs", Change: sow.Never,
	}, inMemory, "TestContract$/one_run_of_an_agent_at_a_time"},
	{"25", sow.Fault{
		Name: "away-is-named", What: "partitions that are away are not named",
		Change: sow.Swap("append(away, t.Partition)", "away"),
	}, "adapters/http", "TestPartitionsThatAreAwayAreNamed$"},
	{"26", sow.Fault{
		Name: "suspects", What: "a process runs any number of tasks whose processes have died",
		Change: sow.Swap(" Suspects: g.SuspectsFor(p.turn+i, len(due)),", ""),
	}, inCore, "TestPoisonousTasksDieAlone$"},
	{"26", sow.Fault{
		Name: "lived", What: "what a process has lost that lives counts as its crash", Change: sow.Drop,
	}, inMemory, "TestContract$/a_process_that_lived_takes_its_runs_back"},
	{"4", sow.Fault{
		Name: "begun-elsewhere", What: "a process takes a run back that somebody has claimed since",
		Change: sow.After("claimed = false"),
	}, inMemory, "TestContract$/a_process_that_lived_takes_its_runs_back"},
	{"26", sow.Fault{
		Name: "leaves", What: "a process that has said that it ends leaves suspects behind", Change: sow.Drop,
	}, inMemory, "TestContract$/a_process_leaves"},
	{"5", sow.Fault{
		Name: "notice", What: "a lease that ended while the store was away is taken back before its process can extend it",
		Change: sow.Swap("== 0", "> 0"),
	}, onRedis, "TestContract$/a_lease_is_given_notice"},
	{"7", sow.Fault{
		Name: "hidden", What: "many suspects hide what is behind them in the queue", Change: sow.Never,
	}, inCore, "TestManySuspectsHideNobody$"},
	{"29", sow.Fault{
		Name: "weight", What: "a claim reads any number of large tasks", Change: sow.After("full = false"),
	}, onRedis, "TestContract$/claims_of_large_tasks"},
	{"30", sow.Fault{
		Name: "waits", What: "one credential may wait any number of times", Change: sow.Never,
	}, "adapters/http", "TestWaitsAreBounded$"},
	{"31", sow.Fault{
		Name: "limit", What: "an agent gets one task more than its limit", Change: sow.Swap(">=", ">"),
	}, inMemory, "TestContract$/submit_is_all_or_nothing"},
	{"31", sow.Fault{
		Name: "plain-limit", What: "a plain submit gives an agent one task more than its limit",
		Change: sow.Swap("live >= most", "live > most"),
	}, onRedis, "TestContract$/submit_to_the_limit"},
	{"32", sow.Fault{
		Name: "grant", What: "a credential for some agents reaches all", Change: sow.Never,
	}, "adapters/http", "TestACredentialReachesNobodyElseByAnyName$"},
	{"33", sow.Fault{
		Name: "overtaken", What: "a repartition that was frozen goes on after another has taken over", Change: sow.Drop,
	}, onRedis, "TestRepartitionIsTakenOver$"},
	{"33", sow.Fault{
		Name: "undone", What: "a repartition whose copies count drops them, as the answer was lost that they do",
		Change: sow.Drop,
	}, onRedis, "TestRepartitionSurvivesKills$"},
	{"34", sow.Fault{
		Name: "limit-memory", What: "a limit lets one run more at once", Change: sow.Swap(">=", ">"),
	}, inMemory, "TestContract$/a_limit_of_runs"},
	{"34", sow.Fault{
		Name: "limit-runs", What: "a limit lets one run more at once", Change: sow.Swap(">=", ">"),
	}, onRedis, "TestContract$/a_limit_of_runs"},
	{"34", sow.Fault{
		Name: "limit-rate", What: "a start is not counted in a rate", Change: sow.Swap("counting.started(b.empty, b.gap)", "math.max(b.empty, now)"),
	}, onRedis, "TestContract$/a_limit_of_starts"},
	{"34", sow.Fault{
		Name: "bounds-tenant", What: "a tenant may change what bounds its agent", Change: sow.Always,
	}, "core", "TestATenantKeepsItsBounds$"},
	{"34", sow.Fault{
		Name: "bounds-settled", What: "a plan that is complete forgets the limits of its profile",
		Change: sow.Swap("b.ProfileChange(agent, data, done)", "store.ProfileChange{Agent: agent, Was: data, Now: b.ProfileChange(agent, data, done).Now}"),
	}, "core", "TestAProfileBoundsItsAgent$"},
	{"34", sow.Fault{
		Name: "spanning-runs", What: "the home of a limit lets one run more at once",
		Change: sow.Swap("- b.runs", "- b.runs + 1"),
	}, onRedis, "TestALimitSpansPartitions$"},
	{"34", sow.Fault{
		Name: "spanning-back", What: "a permit may be given back twice",
		Change: sow.Both(sow.Swap("<=", "<"), sow.After("e.back = math.min(e.back, back - 1)")),
	}, onRedis, "TestALimitSpansPartitions$"},
	{"34", sow.Fault{
		Name: "spanning-silent", What: "nobody asks for the permits of the dead", Change: sow.Never,
	}, onRedis, "TestPermitsThatNobodyReportedAreAskedFor$"},
	{"34", sow.Fault{
		Name: "spanning-permit", What: "a start under a limit over partitions needs no permit",
		Change: sow.Swap("not span.asking", "false"),
	}, onRedis, "TestALimitSpansPartitions$"},
	{"38", sow.Fault{
		Name: "spanning-unused", What: "a permit that was not used stays charged", Change: sow.After("more = 0"),
	}, onRedis, "TestRacingProcessesUseABudgetUp$"},
	{"34", sow.Fault{
		Name: "spanning-nonce", What: "a question whose answer was lost gets permits twice", Change: sow.Never,
	}, onRedis, "TestAPermitIsGivenOnce$"},
	{"38", sow.Fault{
		Name: "budget-hold", What: "a budget that is used up lets more start", Change: sow.Swap(">=", ">"),
	}, inCore, "TestRacingProcessesKeepABudget"},
	{"38", sow.Fault{
		Name: "budget-period", What: "what was used in a period stays used in the next",
		Change: sow.Swap("= 0,", "= b.spent,"),
	}, inCore, "TestADaysBudgetEndsAtLocalMidnight"},
	{"39", sow.Fault{
		Name: "adaptive-probe", What: "after a refusal all ask again at once", Change: sow.Swap("k.probe == probeOut || ", ""),
	}, inDaemon, "TestAnAdaptiveLimitFindsAQuota"},
	{"34", sow.Fault{
		Name: "limit-turns", What: "an agent keeps its place in a line when it was served",
		Change: sow.After("b.line.agents = append([]*standing{s}, b.line.agents[:len(b.line.agents)-1]...)"),
	}, inMemory, "TestContract$/agents_behind_a_limit_take_turns"},
	{"35", sow.Fault{
		Name: "start-held", What: "a task starts although its key, kind or agent is paused", Change: sow.Drop,
	}, onRedis, "TestContract$/a_task_that_may_not_start_waits"},
	{"35", sow.Fault{
		Name: "start-order", What: "a task starts although another of its agent has waited for longer", Change: sow.Drop,
	}, onRedis, "TestContract$/a_task_that_may_not_start_waits"},
	{"35", sow.Fault{
		Name: "start-lease", What: "a task that starts is not leased for long enough to be found", Change: sow.Drop,
	}, onRedis, "TestContract$/a_task_is_started_as_it_is_stored"},
	{"35", sow.Fault{
		Name: "start-lost", What: "a start whose answer was lost is not found again",
		Change: sow.After("r.Nonce = newNonce()"),
	}, onRedis, "TestLostAnswersOfEveryScript$"},
	{"35", sow.Fault{
		Name: "start-slots", What: "urgent tasks take slots that a pull waits for", Change: sow.Never,
	}, "core/internal/slots", "TestSpareSlotsAreThoseThatNobodyWaitsFor$"},
	{"37", sow.Fault{
		Name: "breaker-depth", What: "runs submit tasks at one depth more", Change: sow.Swap("Depth >", "Depth > 1 +"),
	}, inCore, "TestWithParent$"},
	{"37", sow.Fault{
		Name: "breaker-grows", What: "what a run submits is no deeper than its own task", Change: sow.Swap("+1", ""),
	}, inCore, "TestOriginsAreKept$"},
	{"37", sow.Fault{
		Name: "breaker-number", What: "a root has one task more submitted", Change: sow.Swap("<", "<="),
	}, inMemory, "TestContract$/a_root_has"},
	{"37", sow.Fault{
		Name: "breaker-number-on-redis", What: "a root has one task more submitted", Change: sow.Swap("<", "<="),
	}, onRedis, "TestContract$/a_root_has"},
	{"37", sow.Fault{
		Name: "breaker-plain", What: "a task with a root takes the plain script, which counts nothing",
		Change: sow.Swap("t.Root == nil", "true"),
	}, onRedis, "TestContract$/a_root_has"},
}, slices.Concat(hostGuards, keptGuards, outputGuards, quotaGuards, wallGuards, tenantGuards)...)
