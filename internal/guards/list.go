package main

import (
	"slices"

	"github.com/seed-6f6f2c11/duly/internal/sow"
)

const (
	inCore   = "core"
	inMemory = "core/memstore"
	onRedis  = "core/redisstore"
)

// guards has one for each promise that has a single place in the code which keeps it.
var guards = append([]guard{
	{"1", sow.Fault{
		Name: "nonce", What: "a repeated claim takes other tasks", File: "core/redisstore/scripts/claim.lua",
		Old: "if before then", New: "if before == '' then",
	}, onRedis, "TestLostAnswers$"},
	{"2", sow.Fault{
		Name: "unknown-kind", What: "a task of an unknown kind is claimed", File: "core/memstore/visit.go",
		Old: "} else if !slices.Contains(c.r.Kinds, t.Kind) {", New: "} else if len(t.Kind) == 0 {",
	}, inCore, "TestUnknownKindsWait$"},
	{"2", sow.Fault{
		Name: "odd", What: "no full script follows where a plain one is not enough", File: "core/redisstore/plain.go",
		Old: "			c.makeFull()\n			odd = append(odd, i)\n", New: "			c.makeFull()\n",
	}, onRedis, "TestAnOddAnswerIsFollowedByTheFullScript$"},
	{"2", sow.Fault{
		Name: "odd-unchanged", What: "a plain claim takes tasks out of the agenda before it finds out that it is not enough", File: "core/redisstore/scripts/plainclaim.lua",
		Old: "if n > 0 and ORDERS then\n", New: "if n > 0 and ORDERS then\nredis.call('ZREM', KEYS[1], unpack(gone))\n",
	}, onRedis, "TestOddAnswersComeBeforeAllWrites$"},
	{"3", sow.Fault{
		Name: "crash-recorded", What: "a crash leaves no reason in the task's runs", File: "core/internal/decide/verdict.go",
		Old: "for range d.Claimed.Crashes {", New: "for range 0 {",
	}, inCore, "TestCrashesAreCountedApart$"},
	{"4", sow.Fault{
		Name: "fence", What: "a stale run is settled", File: "core/memstore/settle.go",
		Old: "|| c.runs[r.Index].lost {", New: "{",
	}, inMemory, "TestContract$/expired_leases"},
	{"4", sow.Fault{
		Name: "fence-seen", What: "a fence is not above what the claimer has seen", File: "core/redisstore/claim.go",
		Old: "letters += strconv.FormatInt(int64(r.Fence), 10)", New: "letters += strconv.Itoa(0)",
	}, onRedis, "TestContract$/fences_grow_past"},
	{"4", sow.Fault{
		Name: "plain-fence-seen", What: "a plain claim's fence is not above what the claimer has seen", File: "core/redisstore/plainclaim.go",
		Old: "stamped(r.Fence, r.Stamp).", New: "stamped(0, r.Stamp).",
	}, onRedis, "TestFencesGrowAcrossAFailover$"},
	{"5", sow.Fault{
		Name: "recovery", What: "expired leases are not taken back", File: "core/redisstore/scripts/expired.lua",
		Old: "take_back(agent, live, id, member, refs[3 * i], died_under)", New: "",
	}, onRedis, "TestContract$/expired_leases"},
	{"5", sow.Fault{
		Name: "plain-recovery", What: "a plain claim goes on although a lease has ended", File: "core/redisstore/scripts/plainclaim.lua",
		Old: "if lease and tonumber(lease) <= now or redis.call", New: "if redis.call",
	}, onRedis, "TestContract$/expired_leases"},
	{"6", sow.Fault{
		Name: "early", What: "an agent is visited half a second early", File: "core/memstore/partition.go",
		Old: "		s.visit = at\n		p.agenda.add(s)\n", New: "		s.visit = at - 500\n		p.agenda.add(s)\n",
	}, inMemory, "TestContract$/never_before_due"},
	{"7", sow.Fault{
		Name: "order", What: "the lowest level comes first", File: "core/memstore/visit.go",
		Old: "return level(a) < level(b)", New: "return level(a) > level(b)",
	}, inMemory, "TestContract$/order_within_an_agent"},
	{"7", sow.Fault{
		Name: "flood", What: "200 tasks of one agent are in the agenda by themselves", File: "core/memstore/submit.go",
		Old: "const few = 32", New: "const few = 200",
	}, inMemory, "TestContract$/a_flood_delays_others"},
	{"7", sow.Fault{
		Name: "flood-on-redis", What: "200 tasks of one agent are in the agenda by themselves", File: "core/redisstore/preflight.go",
		Old: "const inAgenda = 32", New: "const inAgenda = 200",
	}, onRedis, "TestContract$/a_flood_delays_others"},
	{"7", sow.Fault{
		Name: "flood-plain", What: "a plain submit lets one task too many into the agenda", File: "core/redisstore/scripts/plainsubmit.lua",
		Old: "live >= few or live >= most", New: "live > few or live >= most",
	}, onRedis, "TestContract$/a_flood_delays_others"},
	{"7", sow.Fault{
		Name: "loud", What: "a plain settlement wakes nobody for what is due earlier", File: "core/redisstore/scripts/plainsettle.lua",
		Old: "LOUD, earliest = ARGV[5] ~= '1', math.huge", New: "LOUD, earliest = false, math.huge",
	}, onRedis, "TestContract$/no_wake-up_for_a_quiet"},
	{"7", sow.Fault{
		Name: "quiet", What: "a plain settlement wakes everybody for what its caller takes", File: "core/redisstore/scripts/plainsettle.lua",
		Old: "LOUD, earliest = ARGV[5] ~= '1', math.huge", New: "LOUD, earliest = true, math.huge",
	}, onRedis, "TestContract$/no_wake-up_for_a_quiet"},
	{"7", sow.Fault{
		Name: "quiet-in-memory", What: "a settlement wakes everybody for what its caller takes", File: "core/memstore/settle.go",
		Old: "	if !r.Quiet {\n", New: "	if due >= 0 {\n",
	}, inMemory, "TestContract$/no_wake-up_for_a_quiet"},
	{"8", sow.Fault{
		Name: "margin", What: "a pull does not end before its context's deadline", File: "core/pull.go",
		Old: "time.Until(deadline) - p.s.config.Margin)", New: "time.Until(deadline))",
	}, inCore, "TestStuckAtTheEnd$|TestAStoreThatHangsEndsInTime$"},
	{"9", sow.Fault{
		Name: "unknown-field", What: "a field of a newer binary is not passed over", File: "core/internal/record/table.go",
		Old: "if number < uint64(len(t.by)) && t.by[number] != nil {", New: "if t.by[number] != nil {",
	}, "core/internal/record", "TestUnknownFieldsArePassedOver$"},
	{"10", sow.Fault{
		Name: "out-of-memory", What: "a settle begins with a write that full memory refuses", File: "core/redisstore/scripts/settle.lua",
		Old: "redis.call('ZREM', KEYS[6], '')", New: "",
	}, onRedis, "TestFullMemory$"},
	{"10", sow.Fault{
		Name: "plain-out-of-memory", What: "a plain settle begins with a write that full memory refuses", File: "core/redisstore/scripts/plainsettle.lua",
		Old: "if #closed > 0 then\nredis.call('ZREM', KEYS[6], unpack(closed))\n",
		New: "redis.call('HSET', KEYS[5], unpack(marks))\nif #closed > 0 then\nredis.call('ZREM', KEYS[6], unpack(closed))\n",
	}, onRedis, "TestFullMemory$"},
	{"10", sow.Fault{
		Name: "plain-claim-out-of-memory", What: "a plain claim begins with a write that full memory refuses", File: "core/redisstore/scripts/plainclaim.lua",
		Old: "if many then\nlocal moved", New: "if n > 0 then redis.call('HINCRBY', KEYS[7], 'clock', '0') end\nif many then\nlocal moved",
	}, onRedis, "TestFullMemory$"},
	{"10", sow.Fault{
		Name: "full-owed", What: "the delivery of a callback is refused when memory is full", File: "core/redisstore/scripts/submit.lua",
		Old: "if sub(ARGV[2], -1) == 'o' then redis.call('ZREM', base .. 'leases', '') end", New: "",
	}, onRedis, "TestAFullRedisKeepsGuardsAndEnds$"},
	{"10", sow.Fault{
		Name: "full-limit", What: "a limit cannot be set when memory is full", File: "core/redisstore/scripts/limit.lua",
		Old: "redis.call('ZREM', KEYS[5], '')", New: "",
	}, onRedis, "TestAFullRedisKeepsGuardsAndEnds$"},
	{"10", sow.Fault{
		Name: "full-open", What: "no store opens when memory is full", File: "core/redisstore/probe.go",
		Old: "if err == nil || !errors.Is(wrap(\"open\", err), store.ErrFull) {", New: "if err == nil || !errors.Is(wrap(\"open\", err), store.ErrFull) || true {",
	}, onRedis, "TestAFullRedisKeepsGuardsAndEnds$"},
	{"11", sow.Fault{
		Name: "pause", What: "what is paused is claimed", File: "core/memstore/visit.go",
		Old: "c.p.keptBy(t, c.now); ok {", New: "c.p.keptBy(t, c.now); ok && s.name == \"?\" {",
	}, inCore, "TestPauseAndResume$"},
	{"11", sow.Fault{
		Name: "pause-again", What: "a pause that is given again does not hold what was told to run", File: "core/redisstore/scripts/hold.lua",
		Old: "local since = command == 'prolong' and lasting(old)", New: "local since = lasting(old)",
	}, onRedis, "TestContract$/run_now_ends_with_the_pause"},
	{"11", sow.Fault{
		Name: "plain-pauses", What: "a pause of a task outlives it if its end is plain", File: "core/redisstore/scripts/plainsettle.lua",
		Old: "redis.call('HDEL', base .. 'holds', unpack(scopes_)) > 0", New: "redis.call('HLEN', base .. 'holds') < 0",
	}, onRedis, "TestContract$/a_hold_ends_with_its_task"},
	{"12", sow.Fault{
		Name: "cancel-is-final", What: "a run ends as it likes although its task was cancelled", File: "core/memstore/order.go",
		Old: "case t.order.op == orderCancel && r.Verb != store.VerbCancel:", New: "case t.order.op == orderCancel && r.Verb == store.VerbRelease:",
	}, inMemory, "TestContract$/a_cancelled_run_ends"},
	{"12", sow.Fault{
		Name: "plain-orders", What: "a plain claim does not tell that a task was cancelled during its last run", File: "core/redisstore/scripts/plainclaim.lua",
		Old: "if order then return ODD end", New: "if not order then order = 1 end",
	}, onRedis, "TestContract$/a_cancelled_run_crashes"},
	{"13", sow.Fault{
		Name: "replace", What: "a replaced task keeps its old payload", File: "core/memstore/submit.go",
		Old: "	t.Submission, t.state, t.pulse = sub, state, nil\n", New: "	sub.Body = t.Body\n	t.Submission, t.state, t.pulse = sub, state, nil\n",
	}, inMemory, "TestContract$/replace_what_waits"},
	{"14", sow.Fault{
		Name: "overlap", What: "an occurrence that fell due during a run is not recorded as skipped", File: "core/internal/decide/occurrence.go",
		Old: "\td.skipped(overlapped, plan.SkipOverlap)\n", New: "",
	}, inCore, "TestOverlap$"},
	{"15", sow.Fault{
		Name: "explain", What: "explain does not name the pause", File: "core/inspect/explain.go",
		Old: "e.Because(model.BecausePaused, store.MillisOf(p.Until), \"%s\", text)", New: "_, _ = p, text",
	}, inCore, "TestPauseAndResume$"},
	{"16", sow.Fault{
		Name: "audit", What: "an audit does not repair what was lost", File: "core/redisstore/scripts/audit.lua",
		Old: "fault(agent, id, 'lost')\nif not repair then return end", New: "fault(agent, id, 'lost')\nif repair then return end",
	}, onRedis, "TestAuditRepairsWhatIsDamaged$"},
	{"16", sow.Fault{
		Name: "plain-groups", What: "a plain settlement leaves the counts of a group as they are", File: "core/redisstore/scripts/plainsettle.lua",
		Old: "{ 'orders', 'groups', 'pulse',", New: "{ 'orders', 'pulse',",
	}, onRedis, "TestContract$/a_task_changes_its_group"},
	{"16", sow.Fault{
		Name: "plain-first", What: "a plain submit stores the first task of an agent with few once more", File: "core/redisstore/scripts/plainsubmit.lua",
		Old: "if high + low > 0 and", New: "if high + low < 0 and",
	}, onRedis, "TestContract$/submit_keeps_the_first"},
	{"17", sow.Fault{
		Name: "retry-after", What: "a run is repeated sooner than its handler asked for", File: "core/internal/decide/retryafter.go",
		Old: "pause := max(asked, kind.Backoff)", New: "pause := max(0, kind.Backoff)",
	}, inCore, "TestRetryAfterHoldsForEverySchedule$"},
	{"18", sow.Fault{
		Name: "process-group", What: "nobody ends a program whose process was killed", File: "handlers/exec/group_unix.go",
		Old: "	if guard.Start() != nil {\n", New: "	if guard.Stdin == r {\n",
	}, "handlers/exec", "TestProgramsDieWithTheProcessThatRunsThem$"},
	{"19", sow.Fault{
		Name: "address", What: "a webhook calls private addresses", File: "handlers/webhook/guard.go",
		Old: "addr.IsLoopback() || public(addr) {", New: "addr.IsLoopback() || addr.IsValid() {",
	}, "handlers/webhook", "TestGuard$"},
	{"20", sow.Fault{
		Name: "history-cap", What: "one finished task too many is kept", File: "core/memstore/history.go",
		Old: "			most = kept\n", New: "			most = kept + 1\n",
	}, inMemory, "TestContract$/history_is_capped"},
	{"21", sow.Fault{
		Name: "known-ids", What: "the id of a dropped task is forgotten", File: "core/memstore/history.go",
		Old: "	ok = ok && f.at > now-p.knownFor()\n", New: "	ok = false\n",
	}, inMemory, "TestContract$/a_dropped_id_stays_known"},
	{"23", sow.Fault{
		Name: "input", What: "an id of any length is taken", File: "core/internal/check/id.go",
		Old: "\tif len(s) > most {\n", New: "\tif most < 0 {\n",
	}, inCore, "TestSubmitRefuses$"},
	{"24", sow.Fault{
		Name: "serial", What: "an agent gives a second task while one of it runs", File: "core/memstore/visit.go",
		Old: "if c.r.Serial && (c.p.serial[a.name] != nil || c.got[a] > 0) {", New: "if c.r.Serial && a.name == \"\" {",
	}, inMemory, "TestContract$/one_run_of_an_agent_at_a_time"},
	{"25", sow.Fault{
		Name: "away-is-named", What: "partitions that are away are not named", File: "core/target.go",
		Old: "			away, err = append(away, t.partition), cmp.Or(err, t.away)\n", New: "			err = cmp.Or(err, t.away)\n",
	}, "adapters/http", "TestPartitionsThatAreAwayAreNamed$"},
	{"26", sow.Fault{
		Name: "suspects", What: "a process runs any number of tasks whose processes have died", File: "core/round.go",
		Old: "Suspects: g.SuspectsFor(p.turn+i, len(due)),", New: "",
	}, inCore, "TestPoisonousTasksDieAlone$"},
	{"26", sow.Fault{
		Name: "lived", What: "what a process has lost that lives counts as its crash", File: "core/memstore/suspect.go",
		Old: "		if t.crashes--; t.crashes == 0 {\n			p.cleared(t)\n		}\n", New: "",
	}, inMemory, "TestContract$/a_process_that_lived_takes_its_runs_back"},
	{"4", sow.Fault{
		Name: "begun-elsewhere", What: "a process takes a run back that somebody has claimed since", File: "core/memstore/suspect.go",
		Old: "		claimed := t.lost.claimed\n", New: "		claimed := false\n",
	}, inMemory, "TestContract$/a_process_that_lived_takes_its_runs_back"},
	{"26", sow.Fault{
		Name: "leaves", What: "a process that has said that it ends leaves suspects behind", File: "core/memstore/extend.go",
		Old: "		c.term.leaving = c.term.leaving || leases[i].Leave\n", New: "",
	}, inMemory, "TestContract$/a_process_leaves"},
	{"5", sow.Fault{
		Name: "notice", What: "a lease that ended while the store was away is taken back before its process can extend it", File: "core/redisstore/scripts/suspects.lua",
		Old: "if notice == 0 or ", New: "if notice > 0 or ",
	}, onRedis, "TestContract$/a_lease_is_given_notice"},
	{"7", sow.Fault{
		Name: "hidden", What: "many suspects hide what is behind them in the queue", File: "core/round.go",
		Old: "		case t.suspects(now):", New: "		case t.suspects(now) && false:",
	}, inCore, "TestManySuspectsHideNobody$"},
	{"29", sow.Fault{
		Name: "weight", What: "a claim reads any number of large tasks", File: "core/redisstore/scripts/weigh.lua",
		Old: "local full = read >= 512", New: "local full = read < 0",
	}, onRedis, "TestContract$/claims_of_large_tasks"},
	{"30", sow.Fault{
		Name: "waits", What: "one credential may wait any number of times", File: "adapters/internal/waits/waits.go",
		Old: "	case w.each[who] >= most:\n", New: "	case w.each[who] < 0:\n",
	}, "adapters/http", "TestWaitsAreBounded$"},
	{"31", sow.Fault{
		Name: "limit", What: "an agent gets one task more than its limit", File: "core/memstore/submit.go",
		Old: "p.liveOf(t.Agent)+also.tasks >= limit", New: "p.liveOf(t.Agent)+also.tasks > limit",
	}, inMemory, "TestContract$/submit_is_all_or_nothing"},
	{"31", sow.Fault{
		Name: "plain-limit", What: "a plain submit gives an agent one task more than its limit", File: "core/redisstore/scripts/plainsubmit.lua",
		Old: "live >= few or live >= most", New: "live >= few or live > most",
	}, onRedis, "TestContract$/submit_to_the_limit"},
	{"32", sow.Fault{
		Name: "grant", What: "a credential for some agents reaches all", File: "adapters/http/auth.go",
		Old: "	case !g.covers(what.Agent):\n", New: "	case len(g.Agents) < 0 && !g.covers(what.Agent):\n",
	}, "adapters/http", "TestACredentialReachesNobodyElseByAnyName$"},
	{"33", sow.Fault{
		Name: "overtaken", What: "a repartition that was frozen goes on after another has taken over", File: "core/redisstore/scripts/repartition.lua",
		Old: "if last > attempt or last < attempt and what ~= 'take' then return { now, 0 } end\n", New: "",
	}, onRedis, "TestRepartitionIsTakenOver$"},
	{"33", sow.Fault{
		Name: "undone", What: "a repartition whose copies count drops them, as the answer was lost that they do", File: "core/redisstore/repartition.go",
		Old: "	if err := m.next(ctx, undoing); err != nil {\n		return err\n	}\n", New: "",
	}, onRedis, "TestRepartitionSurvivesKills$"},
	{"34", sow.Fault{
		Name: "limit-memory", What: "a limit lets one run more at once", File: "core/memstore/limit.go",
		Old: "b.runs >= b.rule.limit.Concurrency", New: "b.runs > b.rule.limit.Concurrency",
	}, inMemory, "TestContract$/a_limit_of_runs"},
	{"34", sow.Fault{
		Name: "limit-runs", What: "a limit lets one run more at once", File: "core/redisstore/scripts/limits.lua",
		Old: "return b.rule.runs and b.runs >= b.rule.runs", New: "return b.rule.runs and b.runs > b.rule.runs",
	}, onRedis, "TestContract$/a_limit_of_runs"},
	{"34", sow.Fault{
		Name: "limit-rate", What: "a start is not counted in a rate", File: "core/redisstore/scripts/limits.lua",
		Old: "math.max(b.empty, now) + b.gap", New: "math.max(b.empty, now)",
	}, onRedis, "TestContract$/a_limit_of_starts"},
	{"34", sow.Fault{
		Name: "bounds-tenant", What: "a tenant may change what bounds its agent", File: "core/operate/bounds.go",
		Old: "if forbidden == nil {", New: "if true || forbidden == nil {",
	}, "core", "TestATenantKeepsItsBounds$"},
	{"34", sow.Fault{
		Name: "bounds-settled", What: "a plan that is complete forgets the limits of its profile", File: "core/internal/base/replan.go",
		Old: "s.ProfileChange(agent, data, done)", New: "store.ProfileChange{Agent: agent, Was: data, Now: s.ProfileChange(agent, data, done).Now}",
	}, "core", "TestAProfileBoundsItsAgent$"},
	{"34", sow.Fault{
		Name: "spanning-runs", What: "the home of a limit lets one run more at once", File: "core/redisstore/scripts/permit.lua",
		Old: "n = math.min(n, b.rule.runs - b.runs)", New: "n = math.min(n, b.rule.runs - b.runs + 1)",
	}, onRedis, "TestALimitSpansPartitions$"},
	{"34", sow.Fault{
		Name: "spanning-back", What: "a permit may be given back twice", File: "core/redisstore/scripts/permit.lua",
		Old: "if back <= e.back then return e, b end", New: "if back < e.back then return e, b end\n  e.back = math.min(e.back, back - 1)",
	}, onRedis, "TestALimitSpansPartitions$"},
	{"34", sow.Fault{
		Name: "spanning-silent", What: "nobody asks for the permits of the dead", File: "core/redisstore/scripts/permit.lua",
		Old: "if e.number > e.back and", New: "if false and",
	}, onRedis, "TestPermitsThatNobodyReportedAreAskedFor$"},
	{"34", sow.Fault{
		Name: "spanning-permit", What: "a start under a limit over partitions needs no permit", File: "core/redisstore/scripts/limits.lua",
		Old: "if b.spans then return not span.asking and span.hand(b.name) <= 0 end", New: "if b.spans then return false end",
	}, onRedis, "TestALimitSpansPartitions$"},
	{"38", sow.Fault{
		Name: "spanning-unused", What: "a permit that was not used stays charged", File: "core/redisstore/scripts/permit.lua",
		Old: "local more = tonumber(first) == e.first and", New: "local more = tonumber(first) == nil and",
	}, onRedis, "TestRacingProcessesUseABudgetUp$"},
	{"34", sow.Fault{
		Name: "spanning-nonce", What: "a question whose answer was lost gets permits twice", File: "core/redisstore/scripts/permit.lua",
		Old: "if e.nonce == ARGV[2] then return", New: "if false then return",
	}, onRedis, "TestLostAnswersOfEveryScript$"},
	{"38", sow.Fault{
		Name: "budget-hold", What: "a budget that is used up lets more start", File: "core/memstore/limit.go",
		Old: "b.spentAt(now) >= b.rule.budget.Amount", New: "b.spentAt(now) > b.rule.budget.Amount",
	}, inCore, "TestRacingProcessesKeepABudget"},
	{"38", sow.Fault{
		Name: "budget-period", What: "what was used in a period stays used in the next", File: "core/memstore/budget.go",
		Old: "b.spent, b.ends = 0, budget", New: "b.ends = budget",
	}, inCore, "TestADaysBudgetEndsAtLocalMidnight"},
	{"39", sow.Fault{
		Name: "adaptive-probe", What: "after a refusal all ask again at once", File: "core/memstore/limit.go",
		Old: "k.probe == probeOut || ", New: "",
	}, "adapters/daemon", "TestAnAdaptiveLimitFindsAQuota"},
	{"34", sow.Fault{
		Name: "limit-turns", What: "an agent keeps its place in a line when it was served", File: "core/memstore/line.go",
		Old: "s.turn = b.line.last()\n			b.line.agents = append(b.line.agents, s)", New: "b.line.agents = append([]*standing{s}, b.line.agents...)",
	}, inMemory, "TestContract$/agents_behind_a_limit_take_turns"},
	{"35", sow.Fault{
		Name: "start-held", What: "a task starts although its key, kind or agent is paused", File: "core/redisstore/scripts/plainstart.lua",
		Old: "if held then return ODD end", New: "",
	}, onRedis, "TestContract$/a_task_that_may_not_start_waits"},
	{"35", sow.Fault{
		Name: "start-order", What: "a task starts although another of its agent has waited for longer", File: "core/redisstore/scripts/plainstart.lua",
		Old: "if next_due ~= '' and tonumber(next_due) <= now then return ODD end", New: "",
	}, onRedis, "TestContract$/a_task_that_may_not_start_waits"},
	{"35", sow.Fault{
		Name: "start-lease", What: "a task that starts is not leased for long enough to be found", File: "core/redisstore/scripts/plainstart.lua",
		Old: "redis.call('ZADD', KEYS[10], till, fence)\n", New: "",
	}, onRedis, "TestContract$/a_task_is_started_as_it_is_stored"},
	{"35", sow.Fault{
		Name: "start-lost", What: "a start whose answer was lost is not found again", File: "core/redisstore/start.go",
		Old: "r.Agents, r.New = []string{r.New.Agent}, nil", New: "r.Agents, r.New, r.Nonce = []string{r.New.Agent}, nil, newNonce()",
	}, onRedis, "TestLostAnswersOfEveryScript$"},
	{"35", sow.Fault{
		Name: "start-slots", What: "urgent tasks take slots that a pull waits for", File: "core/internal/slots/slots.go",
		Old: "if usual || w.urgent {", New: "if w == nil {",
	}, "core/internal/slots", "TestSpareSlotsAreThoseThatNobodyWaitsFor$"},
	{"37", sow.Fault{
		Name: "breaker-depth", What: "runs submit tasks at one depth more", File: "core/origin.go",
		Old: "most > 0 && o.Depth > most", New: "most > 0 && o.Depth > most+1",
	}, inCore, "TestWithParent$"},
	{"37", sow.Fault{
		Name: "breaker-grows", What: "what a run submits is no deeper than its own task", File: "core/origin.go",
		Old: "o.Root, o.Depth = own.Root, own.Depth+1", New: "o.Root, o.Depth = own.Root, own.Depth",
	}, inCore, "TestOriginsAreKept$"},
	{"37", sow.Fault{
		Name: "breaker-number", What: "a root has one task more submitted", File: "core/memstore/root.go",
		Old: "	if have < root.Most {\n		return nil\n	}\n	//", New: "	if have <= root.Most {\n		return nil\n	}\n	//",
	}, inMemory, "TestContract$/a_root_has"},
	{"37", sow.Fault{
		Name: "breaker-number-on-redis", What: "a root has one task more submitted", File: "core/redisstore/scripts/submit.lua",
		Old: "if have < rule.room then return nil end", New: "if have <= rule.room then return nil end",
	}, onRedis, "TestContract$/a_root_has"},
	{"37", sow.Fault{
		Name: "breaker-plain", What: "a task with a root takes the plain script, which counts nothing", File: "core/redisstore/plainsubmit.go",
		Old: "t.Group == \"\" && t.Root == nil && !t.Owed", New: "t.Group == \"\" && !t.Owed",
	}, onRedis, "TestContract$/a_root_has"},
}, slices.Concat(hostGuards, keptGuards)...)
