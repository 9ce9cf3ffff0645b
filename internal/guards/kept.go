package main

// The guards of what is kept for runs under way, and for a store that comes back empty.

import "github.com/seed-6f6f2c11/duly/internal/sow"

// keptGuards are those of promises 38 and 44.
var keptGuards = []guard{
	{"38", sow.Fault{
		Name: "reserve", What: "a budget keeps nothing for the runs under way", File: "core/memstore/reserve.go",
		Old: "		b.reserved += most\n", New: "		b.reserved += 0 * most\n",
	}, inCore, "TestABudgetIsExactForEqualRuns$"},
	{"38", sow.Fault{
		Name: "reserve-on-redis", What: "a budget keeps nothing for the runs under way", File: "core/redisstore/scripts/limits.lua",
		Old: "if u then b.reserved = b.reserved + u[2] else", New: "if u then b.reserved = b.reserved + 0 else",
	}, onRedis, "TestContract$/a_budget_keeps"},
	{"38", sow.Fault{
		Name: "reserve-usual", What: "what is kept is what nine in ten use, for those under way too", File: "core/redisstore/scripts/spend.lua",
		Old: "u = { last[math.ceil(#last * 9 / 10)], last[#last] }", New: "u = { last[math.ceil(#last * 9 / 10)], last[math.ceil(#last * 9 / 10)] }",
	}, onRedis, "TestContract$/a_budget_is_exceeded"},
	{"38", sow.Fault{
		Name: "unreserve", What: "what was kept for a run stays so when it has ended", File: "core/redisstore/scripts/tasks.lua",
		Old: "else all = math.max(all - amount, 0) end", New: "end",
	}, onRedis, "TestContract$/what_was_kept"},
	{"38", sow.Fault{
		Name: "reserve-spanning", What: "a budget over partitions keeps nothing for the runs under way", File: "core/redisstore/scripts/permit.lua",
		Old: "n = math.min(n, with_room(b)) end", New: "n = math.min(n, math.max(n, with_room(b))) end",
	}, onRedis, "TestABudgetOverPartitionsIsExact$"},
	{"44", sow.Fault{
		Name: "stamp", What: "a claim leases tasks to a process whose definitions are lost", File: "core/memstore/claim.go",
		Old: "still := r.Limit == 0 || unstamped ||", New: "still := r.Limit == 0 ||",
	}, inCore, "TestAnEmptyStoreGetsItsLimitsBackFirst$"},
	{"44", sow.Fault{
		Name: "stamp-on-redis", What: "a claim leases tasks to a process whose definitions are lost", File: "core/redisstore/scripts/claim.lua",
		Old: "if own.unstamped then limit = 0 end", New: "if own.unstamped then limit = limit end",
	}, onRedis, "TestContract$/definitions_are_stamped"},
	{"44", sow.Fault{
		Name: "stamp-plain", What: "a plain claim does not ask for the stamp", File: "core/redisstore/scripts/plainclaim.lua",
		Old: "if not string.find(counters[3] or '', sub(seen, -24), 1, true) then return ODD end", New: "",
	}, onRedis, "TestContract$/definitions_are_stamped"},
	{"44", sow.Fault{
		Name: "stamp-start", What: "an urgent task starts although the definitions are lost", File: "core/redisstore/scripts/plainstart.lua",
		Old: "if not string.find(counters[5] or '', sub(seen, -24), 1, true) then return ODD end", New: "",
	}, onRedis, "TestContract$/definitions_are_stamped"},
	{"44", sow.Fault{
		Name: "stamp-idle", What: "a process that claims nothing never asks for its stamp", File: "core/declared.go",
		Old: "if now.Sub(d.asked) < stampEvery {", New: "if now.Sub(d.asked) >= 0 {",
	}, inCore, "TestAnEmptyStoreGetsItsTasksBack$"},
}
