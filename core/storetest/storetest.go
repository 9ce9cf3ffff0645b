// Package storetest is the contract of [store.Store] as tests. Every store runs all of them, under a clock that the tests
// move; [Equal] drives two stores with the same calls and demands the same answers.
package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Options are the settings of a store that the tests vary. Zero means the store's default.
// Each test sets only what it is about.
type Options struct {
	Partitions int
	Retention  time.Duration
	Kept       int
	KeptBytes  int
	MaxTasks   int
	MaxBytes   int
}

// Factory makes an empty store whose clock is the given one, and that lives as long as the test.
// The store's own clock must follow the given one in every decision, also inside a script.
type Factory func(t *testing.T, clock *Clock, o Options) store.Store

// Clock is a store's clock that stands still until it is moved.
// It never moves by itself, so that "a millisecond before" and "a millisecond after" can be tested.
type Clock struct {
	mu  sync.Mutex
	now time.Time
	// set are the listeners of OnSet.
	set []func(now time.Time)
}

// NewClock is a clock at some time in 2026.
// Any fixed time would do; one that is not now shows a store that reads another clock.
func NewClock() *Clock {
	return &Clock{now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
}

// Now is the time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// AfterFunc is the machine's: stores drive no timers.
func (*Clock) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }

// Advance moves the clock on.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	// Under the lock, so that no reader sees a time that a store has not got yet.
	for _, set := range c.set {
		set(c.now)
	}
}

// OnSet calls set with the time, now and whenever it changes: for stores whose clock is elsewhere.
func (c *Clock) OnSet(set func(now time.Time)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set = append(c.set, set)
	set(c.now)
}

// contract are the tests, by name.
// They run in parallel, each on a store of its own. docs/guarantees.md names some of
// them: a new name has to be changed there.
var contract = []struct {
	name string
	test func(t *testing.T, b *bench)
}{
	{"life of a task", testLife},
	{"submit keeps what is there", testSubmitKeeps},
	{"submit keeps the first of several", testSubmitKeepsFirst},
	{"submit is all or nothing", testSubmitLimit},
	{"what is owed passes the limits", testSubmitOwed},
	{"submit to the limit", testSubmitLimitEach},
	{"a budget keeps what runs usually use", testReserve},
	{"a budget is exceeded by one run's error", testReserveUnequal},
	{"what was kept and not used", testReserveUnused},
	{"each agent's budget keeps by itself", testReserveEach},
	{"definitions are stamped", testStamps},
	{"the last stamps are known", testManyStamps},
	{"a root has so many tasks submitted", testRoot},
	{"a root has room again after an hour", testRootWindow},
	{"a root counts in each partition", testRootOfPartitions},
	{"a budget of runs", testBudgetRuns},
	{"a budget of what runs report", testBudgetUsed},
	{"what goes on is charged", testBudgetCharged},
	{"an adaptive limit", testAdaptive},
	{"submit as held", testSubmitHeld},
	{"never due", testSubmitNever},
	{"submit as held for a while", testSubmitHeldUntil},
	{"bytes of live tasks are bounded", testMaxBytes},
	{"bytes that go make room", testMaxBytesGo},
	{"claims of large tasks", testLargeClaims},
	{"large tasks that are left hide nothing", testLargeLeft},
	{"large tasks that are parked", testLargeParked},
	{"never before due", testDue},
	{"order within an agent", testOrder},
	{"agents take turns", testTurns},
	{"a flood delays others by 32 tasks", testFlood},
	{"many agents grow at once", testManyGrow},
	{"agents of a tenant delay another tenant by two claims", testTenantFlood},
	{"tenants share", testTenantShares},
	{"turns of tenants", testTenantTurns},
	{"tenants and a picky claim", testTenantsOfPicky},
	{"urgent claims beside tenants", testTenantsOfUrgent},
	{"a flood at its quota delays others by 32 tasks", testQuotaFlood},
	{"the share grows when there is room", testShare},
	{"a cap per agent", testPerAgent},
	{"only the agents asked for", testAgents},
	{"unknown kinds are parked", testParked},
	{"dead letters of all agents", testFindFailed},
	{"what runs of all agents", testFindRunning},
	{"what is overdue of all agents", testFindOverdue},
	{"what waits for signals of all agents", testFindAwaiting},
	{"no cursor of all agents", testFindCursor},
	{"many kinds are parked", testManyParkedKinds},
	{"kinds that are left stay", testLeave},
	{"kinds that are bounded", testMost},
	{"kinds that are left hide nothing", testLeaveHidesNothing},
	{"a search that goes on", testPassed},
	{"only urgent tasks", testUrgent},
	{"an urgent task costs no turn", testUrgentTurns},
	{"one run of an agent at a time", testSerial},
	{"one run of an agent at a time, and it dies", testSerialCrash},
	{"agents with one run at a time take turns", testSerialTurns},
	{"look for some agents", testLookAgents},
	{"a release with a state", testReleaseState},
	{"processes", testPresence},
	{"events that are followed", testFeed},
	{"events that are lost", testFeedLost},
	{"events that nobody follows any more", testFeedLapse},
	{"output", testOutput},
	{"output of several runs", testOutputOfRuns},
	{"output of what is deleted", testOutputDeleted},
	{"output of many tasks", testOutputOfMany},
	{"output that is sent from elsewhere", testOutputSent},
	{"alarms that are booked", testBooking},
	{"alarms that are owed", testOwed},
	{"alarms that are owed by a process without a clock", testOwedByWhoeverHasNoClock},
	{"alarms that are wanted ever earlier", testGathered},
	{"a signal", testSignal},
	{"a signal to one wait", testSignalToOneWait},
	{"a message sends one signal", testSignalOnce},
	{"a signal that comes first", testEarlySignal},
	{"a signal that comes too late", testSignalTooLate},
	{"a signal to what has ended", testSignalEnded},
	{"activity for what waits in line", testTouchInLine},
	{"a signal to many", testSignalMany},
	{"the rest of a signal", testSignalRest},
	{"a signal wakes", testSignalWakes},
	{"messages", testMessages},
	{"runs of the last day", testWindow},
	{"hours, and what was measured", testHours},
	{"a repeated claim", testNonce},
	{"a repeated claim of what was replaced", testNonceReplaced},
	{"expired leases", testRecover},
	{"a lease is given notice", testNotice},
	{"a process leaves", testLeaving},
	{"suspects are bounded", testSuspects},
	{"a process that lived takes its runs back", testBack},
	{"kinds have leases of their own", testLeases},
	{"fences grow", testFences},
	{"fences grow past those that a client has seen", testFencesSeen},
	{"extend", testExtend},
	{"progress", testProgress},
	{"settle twice", testSettleTwice},
	{"again and release", testAgain},
	{"retention", testRetention},
	{"history is capped", testKept},
	{"history is kept up to the cap", testKeptWhole},
	{"history is capped in bytes", testKeptBytes},
	{"a large record that is deleted makes room", testKeptBytesDeleted},
	{"a dropped id stays known", testDroppedIsKnown},
	{"a dropped id is forgotten", testDroppedIsForgotten},
	{"a dropped task can be replaced and deleted", testDroppedBeginsAgain},
	{"what is deleted makes room", testDeletedMakesRoom},
	{"groups", testGroups},
	{"a task changes its group", testGroupMoved},
	{"when a task last changed", testUpdated},
	{"when a task that waits for a signal last changed", testUpdatedBySignals},
	{"when a subject was last active", testLastActivity},
	{"groups after anything", testGroupsRandom},
	{"replay", testReplay},
	{"pages", testPages},
	{"pages are bounded in bytes", testPageBytes},
	{"counters", testStats},
	{"look", testLook},
	{"hostile ids", testHostileIDs},
	{"wake-ups", testWakeups},
	{"no wake-up for a quiet settlement", testQuiet},
	{"a turn", testTurn},
	{"claims ahead", testAhead},
	{"claims ahead leave what is out of the ordinary", testAheadLeaves},
	{"commands withdraw what was claimed ahead", testAheadWithdrawn},
	{"a task is started as it is stored", testStart},
	{"a task is started beside others", testStartBeside},
	{"a task that may not start waits", testStartWaits},
	{"a turn whose halves are refused", testTurnRefused},
	{"race for tasks", testRace},
	{"holds of all scopes", testHoldScopes},
	{"holds end", testHoldEnds},
	{"a hold of all", testHoldAll},
	{"hold twice", testHoldTwice},
	{"a hold is prolonged", testHoldProlonged},
	{"under two holds", testHoldUnderTwo},
	{"hold what runs", testHoldRunning},
	{"a hold ends with its task", testHoldEndsWithTask},
	{"many held tasks", testHoldMany},
	{"held again", testHoldAgain},
	{"the end of a hold wakes", testHoldWakes},
	{"a settlement holds", testHoldBySettlement},
	{"a limit of runs", testLimitRuns},
	{"limits and budgets of a profile", testBoundsOfAProfile},
	{"limits of each", testLimitEach},
	{"a limit of starts", testLimitRate},
	{"agents behind a limit take turns", testLimitTurns},
	{"limits change while tasks wait", testLimitChanges},
	{"operators and what a limit holds back", testLimitOperators},
	{"limits are bounded", testLimitsAreBounded},
	{"limits of agents in partitions", testLimitsOfPartitions},
	{"a limit, and only the agents asked for", testLimitsOfTheNamed},
	{"lines of two limits, and only the agents asked for", testLinesOfTwoLimits},
	{"profiles", testProfile},
	{"profiles are returned", testProfileIsReturned},
	{"a quota of live tasks", testQuotaLive},
	{"a quota that has changed", testQuotaMark},
	{"a quota of tasks that recur", testQuotaRecurring},
	{"a quota of submits a minute", testQuotaSubmits},
	{"a quota of bytes", testQuotaBytes},
	{"a quota, and tasks that touches and replays make", testQuotaOthers},
	{"a race for the last of a quota", testQuotaRace},
	{"another due time", testReplan},
	{"another due time, sooner", testReplanSooner},
	{"what an agent leaves behind", testRemains},
	{"run now", testRun},
	{"run now what is held", testRunHeld},
	{"run now what is parked", testRunParked},
	{"cancel what waits", testCancelWaiting},
	{"cancel at a version", testCancelChanged},
	{"cancel what runs", testCancelRunning},
	{"a cancelled run ends", testCancelSettle},
	{"a cancelled run crashes", testCancelCrash},
	{"a cancelled run crashes, and is claimed later", testCancelCrashLater},
	{"a cancelled run crashes, and its task is held", testCancelCrashHeld},
	{"a cancelled run is left by its process", testCancelLeft},
	{"what is told to end stays so", testEnding},
	{"orders one after another", testOrders},
	{"run now ends with the pause", testRunHeldOnce},
	{"run now and a pause in one moment", testRunHeldInAMoment},
	{"run now while everything is held", testRunStopped},
	{"delete what waits", testDeleteWaiting},
	{"delete what runs", testDeleteRunning},
	{"delete the last run of a claim", testDeleteLastOfClaim},
	{"delete what is finished", testDeleteFinished},
	{"delete what began anew", testDeleteBoth},
	{"delete all tasks of an agent", testDeleteAll},
	{"the first state", testFirstState},
	{"submit that fails on conflict", testConflictFail},
	{"replace what waits", testReplaceWaiting},
	{"what replaces knows nothing", testReplaceForgets},
	{"replace the due time", testReplaceDue},
	{"replace the level", testReplaceOrder},
	{"replace what has changed", testReplaceChanged},
	{"replace among others", testReplaceTogether},
	{"replace the only one", testReplaceFirst},
	{"replace several, one of which needs a queue", testReplaceSeveral},
	{"replace what runs", testReplaceRunning},
	{"replace what runs and crashes", testReplaceCrash},
	{"cancel what was replaced", testReplaceCancelled},
	{"replace what is finished", testReplaceFinished},
	{"touch, throttled", testTouchThrottle},
	{"touch, debounced", testTouchDebounce},
	{"touch what runs", testTouchRunning},
	{"bounds of the run that follows", testTouchRunningBounds},
	{"touch what rests", testTouchResting},
	{"touch as a rest ends", testTouchAtRestsEnd},
	{"a touch brings a body", testTouchKeepsKind},
	{"touch what cools down", testTouchCooling},
	{"touch what is held", testTouchHeld},
	{"run now what rests", testTouchRun},
	{"touch other tasks", testTouchOthers},
	{"touch what was replaced", testTouchReplaced},
	{"an activity task ends", testTouchEnds},
	{"many touches", testTouchMany},
	{"live tasks of a kind", testKindsLive},
	{"kinds by name", testKindsOf},
	{"runs of a kind", testKindsRuns},
	{"failures of a kind", testKindsFailures},
	{"kinds of several partitions", testKindsTogether},
	{"pages of agents", testAgentPages},
	{"agents", testAgentStats},
	{"explain", testExplain},
	{"versions", testVersions},
	{"pauses", testPauses},
	{"audit", testAudit},
}

// Run runs the whole contract against the stores of a factory.
// A failure names the rule of the contract that is broken.
func Run(t *testing.T, factory Factory) {
	t.Helper()
	for _, c := range contract {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			clock := NewClock()
			c.test(t, &bench{T: t, clock: clock, open: func(o Options) store.Store { return factory(t, clock, o) }})
		})
	}
}
