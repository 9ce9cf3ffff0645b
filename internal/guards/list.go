package main

import "github.com/seed-6f6f2c11/duly/internal/sow"

const (
	inCore   = "core"
	inMemory = "core/memstore"
	onRedis  = "core/redisstore"
)

// guards has one for each promise that has a single place in the code which keeps it.
var guards = []guard{
	{"1", sow.Fault{
		Name: "nonce", What: "a repeated claim takes other tasks", File: "core/redisstore/scripts/claim.lua",
		Old: "if before then", New: "if before == '' then",
	}, onRedis, "TestLostAnswers$"},
	{"2", sow.Fault{
		Name: "unknown-kind", What: "a task of an unknown kind is claimed", File: "core/memstore/visit.go",
		Old: "} else if !slices.Contains(c.r.Kinds, t.Kind) {", New: "} else if len(t.Kind) == 0 {",
	}, inCore, "TestUnknownKindsWait$"},
	{"3", sow.Fault{
		Name: "crash-recorded", What: "a crash leaves no reason in the task's runs", File: "core/verdict.go",
		Old: "for range d.claimed.Crashes {", New: "for range 0 {",
	}, inCore, "TestCrashesAreCountedApart$"},
	{"4", sow.Fault{
		Name: "fence", What: "a stale run is settled", File: "core/memstore/settle.go",
		Old: "|| c.runs[r.Index].lost {", New: "{",
	}, inMemory, "TestContract$/expired_leases"},
	{"4", sow.Fault{
		Name: "fence-seen", What: "a fence is not above what the claimer has seen", File: "core/redisstore/claim.go",
		Old: "letters += strconv.FormatInt(int64(r.Fence), 10)", New: "letters += strconv.Itoa(0)",
	}, onRedis, "TestFencesGrowAcrossAFailover$"},
	{"5", sow.Fault{
		Name: "recovery", What: "expired leases are not taken back", File: "core/redisstore/scripts/expired.lua",
		Old: "if live then crashed(", New: "if not live then crashed(",
	}, onRedis, "TestContract$/expired_leases"},
	{"6", sow.Fault{
		Name: "early", What: "an agent is visited half a second early", File: "core/memstore/visit.go",
		Old: "return a.visit <= c.now })", New: "return a.visit <= c.now+500 })",
	}, inMemory, "TestContract$/never_before_due"},
	{"7", sow.Fault{
		Name: "order", What: "the lowest level comes first", File: "core/memstore/visit.go",
		Old: "return level(a) < level(b)", New: "return level(a) > level(b)",
	}, inMemory, "TestContract$/order_within_an_agent"},
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
	{"11", sow.Fault{
		Name: "pause", What: "what is paused is claimed", File: "core/memstore/visit.go",
		Old: "c.p.keptBy(t, c.now); ok {", New: "c.p.keptBy(t, c.now); ok && s.name == \"?\" {",
	}, inCore, "TestPauseAndResume$"},
	{"11", sow.Fault{
		Name: "pause-again", What: "a pause that is given again does not hold what was told to run", File: "core/redisstore/scripts/hold.lua",
		Old: "local since = command == 'prolong' and lasting(old)", New: "local since = lasting(old)",
	}, onRedis, "TestContract$/run_now_ends_with_the_pause"},
	{"12", sow.Fault{
		Name: "cancel-is-final", What: "a run ends as it likes although its task was cancelled", File: "core/memstore/order.go",
		Old: "case t.order.op == orderCancel && r.Verb != store.VerbCancel:", New: "case t.order.op == orderCancel && r.Verb == store.VerbRelease:",
	}, inMemory, "TestContract$/a_cancelled_run_ends"},
	{"13", sow.Fault{
		Name: "replace", What: "a replaced task keeps its old payload", File: "core/memstore/submit.go",
		Old: "	t.Submission, t.state, t.pulse = sub, state, nil\n", New: "	sub.Body = t.Body\n	t.Submission, t.state, t.pulse = sub, state, nil\n",
	}, inMemory, "TestContract$/replace_what_waits"},
	{"14", sow.Fault{
		Name: "overlap", What: "an occurrence that fell due during a run is not recorded as skipped", File: "core/occurrence.go",
		Old: "	d.skipped(overlapped, skipOverlap)\n", New: "",
	}, inCore, "TestOverlap$"},
	{"15", sow.Fault{
		Name: "explain", What: "explain does not name the pause", File: "core/explain.go",
		Old: "e.because(BecausePaused, store.MillisOf(p.Until), \"%s\", text)", New: "_, _ = p, text",
	}, inCore, "TestPauseAndResume$"},
	{"16", sow.Fault{
		Name: "audit", What: "an audit does not repair what was lost", File: "core/redisstore/scripts/audit.lua",
		Old: "fault(agent, id, 'lost')\nif not repair then return end", New: "fault(agent, id, 'lost')\nif repair then return end",
	}, onRedis, "TestAuditRepairsWhatIsDamaged$"},
	{"17", sow.Fault{
		Name: "retry-after", What: "a run is repeated sooner than its handler asked for", File: "core/retryafter.go",
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
		Name: "input", What: "an id of any length is taken", File: "core/id.go",
		Old: "	if len(s) > most {\n", New: "	if most < 0 {\n",
	}, inCore, "TestSubmitRefuses$"},
	{"24", sow.Fault{
		Name: "serial", What: "an agent gives a second task while one of it runs", File: "core/memstore/visit.go",
		Old: "if c.r.Serial && c.p.serial[a.name] != nil {", New: "if c.r.Serial && a.name == \"\" {",
	}, inMemory, "TestContract$/one_run_of_an_agent_at_a_time"},
	{"25", sow.Fault{
		Name: "away-is-named", What: "partitions that are away are not named", File: "core/target.go",
		Old: "			away, err = append(away, t.partition), cmp.Or(err, t.away)\n", New: "			err = cmp.Or(err, t.away)\n",
	}, "adapters/http", "TestPartitionsThatAreAwayAreNamed$"},
	{"26", sow.Fault{
		Name: "suspects", What: "what lost its process runs beside others again", File: "core/run.go",
		Old: "	case c.Crashes > 0:\n", New: "	case c.Crashes > 1<<20:\n",
	}, inCore, "TestAPoisonousTaskDiesAlone$"},
	{"29", sow.Fault{
		Name: "weight", What: "a claim reads any number of large tasks", File: "core/redisstore/scripts/weigh.lua",
		Old: "local full = read >= 512", New: "local full = read < 0",
	}, onRedis, "TestContract$/claims_of_large_tasks"},
	{"30", sow.Fault{
		Name: "waits", What: "one credential may wait any number of times", File: "adapters/http/memos/looks.go",
		Old: "	case w.each[who] >= most:\n", New: "	case w.each[who] < 0:\n",
	}, "adapters/http", "TestWaitsAreBounded$"},
	{"31", sow.Fault{
		Name: "limit", What: "an agent gets one task more than its limit", File: "core/memstore/submit.go",
		Old: "live+also.tasks >= limit", New: "live+also.tasks > limit",
	}, inMemory, "TestContract$/submit_is_all_or_nothing"},
	{"32", sow.Fault{
		Name: "grant", What: "a credential for some agents reaches all", File: "adapters/http/auth.go",
		Old: "		if !slices.Contains(g.Agents, agent) {\n", New: "		if len(g.Agents) < 0 && !slices.Contains(g.Agents, agent) {\n",
	}, "adapters/http", "TestACredentialReachesNobodyElseByAnyName$"},
}
