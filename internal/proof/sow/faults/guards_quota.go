package faults

// The guards of quotas.

import "github.com/seed-6f6f2c11/duly/internal/proof/sow"

// quotaGuards are those of promise 48: in the stores, then in the checks before them.
var quotaGuards = []Guard{
	{"49", sow.Fault{
		Name: "quota-mark", What: "a task is stored that was checked by another quota than its agent has", Change: sow.Never,
	}, inMemory, "TestContract$/a_quota_that_has"},
	{"49", sow.Fault{
		Name: "quota-live", What: "an agent may have any number of live tasks", Change: sow.Never,
	}, inMemory, "TestContract$/a_quota_of_live"},
	{"49", sow.Fault{
		Name: "quota-recurring", What: "an agent may have any number of tasks that recur", Change: sow.Never,
	}, inMemory, "TestContract$/a_quota_of_tasks_that"},
	{"49", sow.Fault{
		Name: "quota-submits", What: "an agent may submit any number of tasks a minute", Change: sow.Never,
	}, inMemory, "TestContract$/a_quota_of_submits"},
	{"49", sow.Fault{
		Name: "quota-bytes", What: "an agent may have any number of bytes", Change: sow.Never,
	}, inMemory, "TestContract$/a_quota_of_bytes"},
	{"49", sow.Fault{
		Name: "quota-ended", What: "a task that recurs counts when it has ended", Change: sow.Drop,
	}, inMemory, "TestContract$/a_quota_of_tasks_that"},
	{"49", sow.Fault{
		Name: "quota-touch", What: "a touch makes a task that the quota has no room for", Change: sow.Never,
	}, inMemory, "TestContract$/a_quota,_and"},
	{"49", sow.Fault{
		Name: "quota-replay", What: "a replay makes a task that the quota has no room for", Change: sow.Never,
	}, inMemory, "TestContract$/a_quota,_and"},
	{"49", sow.Fault{
		Name: "quota-mark-on-redis", What: "a task is stored that was checked by another quota than its agent has", Change: sow.Drop,
	}, onRedis, "TestContract$/a_quota_that_has"},
	{"49", sow.Fault{
		Name: "quota-live-on-redis", What: "an agent may have any number of live tasks", Change: sow.Drop,
	}, onRedis, "TestContract$/a_quota_of_live"},
	{"49", sow.Fault{
		Name: "quota-recurring-on-redis", What: "an agent may have any number of tasks that recur", Change: sow.Drop,
	}, onRedis, "TestContract$/a_quota_of_tasks_that"},
	{"49", sow.Fault{
		Name: "quota-submits-on-redis", What: "an agent may submit any number of tasks a minute", Change: sow.Drop,
	}, onRedis, "TestContract$/a_quota_of_submits"},
	{"49", sow.Fault{
		Name: "quota-bytes-on-redis", What: "an agent may have any number of bytes", Change: sow.Drop,
	}, onRedis, "TestContract$/a_quota_of_bytes"},
	{"49", sow.Fault{
		Name: "quota-ended-on-redis", What: "a task that recurs counts when it has ended", Change: sow.Drop,
	}, onRedis, "TestContract$/a_quota_of_tasks_that"},
	{"49", sow.Fault{
		Name: "quota-touch-on-redis", What: "a touch makes a task that the quota has no room for", Change: sow.Swap("if against then", "if false then"),
	}, onRedis, "TestContract$/a_quota,_and"},
	{"49", sow.Fault{
		Name: "quota-replay-on-redis", What: "a replay makes a task that the quota has no room for", Change: sow.Swap("if against then", "if false then"),
	}, onRedis, "TestContract$/a_quota,_and"},
	{"49", sow.Fault{
		Name: "plain-submit-quota", What: "the plain script stores tasks of an agent that has a quota", Change: sow.Drop,
	}, onRedis, "TestContract$/a_quota_that_has"},
	{"49", sow.Fault{
		Name: "quota-enrolled-as-read", What: "what has changed since it was read counts as a task that recurs", Change: sow.Swap("live and redis", "live or redis"),
	}, onRedis, "TestContract$/a_quota_of_tasks_that"},
}

// wallGuards are those of promise 48 before the store is called.
var wallGuards = []Guard{
	{"49", sow.Fault{
		Name: "quota-kinds", What: "an agent may submit any kind", Change: sow.Never,
	}, inCore, "TestQuotasRefuseWhatTheyNeverAllow$/kinds"},
	{"49", sow.Fault{
		Name: "quota-interval", What: "a task may recur as often as it likes", Change: sow.Never,
	}, inCore, "TestQuotasRefuseWhatTheyNeverAllow$/interval"},
	{"49", sow.Fault{
		Name: "quota-horizon", What: "a task may be due at any time", Change: sow.Never,
	}, inCore, "TestQuotasRefuseWhatTheyNeverAllow$/horizon"},
	{"49", sow.Fault{
		Name: "quota-depth", What: "runs submit tasks at any depth", Change: sow.Never,
	}, inCore, "TestAPromptThatSchedulesItselfStops$"},
	{"49", sow.Fault{
		Name: "quota-spawned", What: "runs below a root submit any number of tasks", Change: sow.Never,
	}, inCore, "TestQuotasOfSpawnedTasks$"},
	{"49", sow.Fault{
		Name: "quota-next-in", What: "a run may set any interval", Change: sow.Never,
	}, inCore, "TestIntervalsOfRunsAndEditsArePutOff$"},
	{"49", sow.Fault{
		Name: "quota-edited", What: "an edit brings the next run as near as it likes", Change: sow.Never,
	}, inCore, "TestIntervalsOfRunsAndEditsArePutOff$"},
}

// tenantGuards are those of promise 53: in the scripts, then in memory.
var tenantGuards = []Guard{
	{"53", sow.Fault{
		Name: "lanes-laned", What: "each claim puts all that is due into lines, and forgets whose turn it was", Change: sow.Never,
	}, onRedis, "TestContract$/tenants_share"},
	{"53", sow.Fault{
		Name: "lanes-stale", What: "what runs already has its turn in a line", Change: sow.Always,
	}, onRedis, "TestContract$/turns_of_tenants"},
	{"53", sow.Fault{
		Name: "lanes-by-age", What: "no claim goes by age", Change: sow.Swap("visit % BY_AGE ~= 0", "true"),
	}, onRedis, "TestWhatALaneMissesComesByAge$"},
	{"53", sow.Fault{
		Name: "lanes-quota", What: "agents with many tasks give any number for their tenant", Change: sow.Swap("lane.free)", "lane.free) * 1000"),
	}, onRedis, "TestContract$/tenants_share"},
	{"53", sow.Fault{
		Name: "lanes-kept", What: "what agents with many tasks may give for their tenant goes to others", Change: sow.Never,
	}, onRedis, "TestContract$/tenants_share"},
	{"53", sow.Fault{
		Name: "lanes-turns", What: "a tenant that had its turn stays in front", Change: sow.Never,
	}, onRedis, "TestContract$/tenants_share"},
	{"53", sow.Fault{
		Name: "lanes-late", What: "a run that was lost waits in no line", Change: sow.Never,
	}, onRedis, "TestContract$/turns_of_tenants"},
	{"53", sow.Fault{
		Name: "lanes-move", What: "an agent with another tenant waits in no line", Change: sow.Drop,
	}, onRedis, "TestContract$/turns_of_tenants"},
	{"53", sow.Fault{
		Name: "lanes-passed", What: "a picky claim looks at the same tenants for ever", Change: sow.Swap("or alone and ALL or", "or"),
	}, onRedis, "TestContract$/tenants_and_a_picky"},
	{"53", sow.Fault{
		Name: "plain-claim-tenants", What: "the plain script knows no tenants", Change: sow.Never,
	}, onRedis, "TestContract$/agents_of_a_tenant"},
	{"28", sow.Fault{
		Name: "plain-claim-few", What: "a claim of few tasks knows no tenants", Change: sow.Swap("and not tenants", ""),
	}, onRedis, "TestContract$/tenants_share"},
	{"53", sow.Fault{
		Name: "lanes-of-urgent", What: "a claim of urgent tasks alone takes the turns of tenants", Change: sow.Swap("not URGENT and", ""),
	}, onRedis, "TestContract$/urgent_claims"},
	{"53", sow.Fault{
		Name: "lanes-of-urgent-in-memory", What: "a claim of urgent tasks alone takes the turns of tenants", Change: sow.Swap("c.r.Urgent || ", ""),
	}, inMemory, "TestContract$/urgent_claims"},
	{"7", sow.Fault{
		Name: "urgent-announced", What: "no process with slots for urgent tasks alone hears of one that is stored", Change: sow.Drop,
	}, onRedis, "TestContract$/urgent_tasks_are_announced"},
	{"7", sow.Fault{
		Name: "plain-submit-urgent", What: "no process with slots for urgent tasks alone hears of one that a plain submit stores", Change: sow.Drop,
	}, onRedis, "TestContract$/urgent_tasks_are_announced"},
	{"7", sow.Fault{
		Name: "plain-settle-urgent", What: "no process with slots for urgent tasks alone hears of one that a plain settlement makes due", Change: sow.Drop,
	}, onRedis, "TestContract$/urgent_tasks_are_announced"},
	{"7", sow.Fault{
		Name: "urgent-in-queues", What: "an urgent task behind another one of its agent is asked for too late", Change: sow.Drop,
	}, onRedis, "TestContract$/urgent_tasks_are_asked"},
	{"7", sow.Fault{
		Name: "urgent-announced-in-memory", What: "no process with slots for urgent tasks alone hears of one that is stored", Change: sow.Never,
	}, inMemory, "TestContract$/urgent_tasks_are_announced"},
	{"7", sow.Fault{
		Name: "urgent-in-queues-in-memory", What: "an urgent task behind another one of its agent is asked for too late", Change: sow.Never,
	}, inMemory, "TestContract$/urgent_tasks_are_asked"},
	{"7", sow.Fault{
		Name: "urgent-heard", What: "a daemon does not ask for an urgent task that it hears of", Change: sow.Swap("news != u.heard || ", ""),
	}, inDaemon, "TestAFullDaemonAsks"},
	{"7", sow.Fault{
		Name: "urgent-paced", What: "a daemon asks as often as a caller has urgent tasks announced", Change: sow.Swap("u.asked.Add(Every)", "u.asked"),
	}, inDaemon, "TestAFullDaemonIsNotDriven"},
	{"7", sow.Fault{
		Name: "urgent-search-ends", What: "a search for urgent tasks begins again whenever one is announced, and never ends", Change: sow.Swap("u.whole && ", ""),
	}, "core/internal/search", "TestASearchComesToItsEnd"},
	{"53", sow.Fault{
		Name: "partitions-in-turn", What: "a tenant waits behind all that is due for longer in other partitions", Change: sow.Never,
	}, inDaemon, "TestATenantIsNotStarved$"},
	{"53", sow.Fault{
		Name: "lanes-passed-in-memory", What: "a picky claim looks at the same tenants for ever", Change: sow.Never,
	}, inMemory, "TestContract$/tenants_and_a_picky"},
	{"53", sow.Fault{
		Name: "lanes-kept-in-memory", What: "what agents with many tasks may give for their tenant goes to others", Change: sow.Never,
	}, inMemory, "TestContract$/tenants_share"},
	{"53", sow.Fault{
		Name: "lanes-quota-in-memory", What: "agents with many tasks give any number for their tenant", Change: sow.Swap("l.free)", "l.free) * 1000"),
	}, inMemory, "TestContract$/tenants_share"},
}
