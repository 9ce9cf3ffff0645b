package world

// The register of invariants: each is a promise of duly in one sentence, and is asserted by the auditor under its name. Those of a row are with it.

// Invariant is something that holds in every history.
// The same assertion may be made in several places of the auditor; it counts as tried in each.
type Invariant struct {
	Name     string
	Promise  string // where it is promised: a number of docs/guarantees.md, or a section of the design
	Sentence string

	index int
}

// It is filled while the package is initialised, by the variables that name the invariants, and never
// changes after that.
var register []*Invariant

// Register are all invariants, in the order of their promises.
// The index of one is its place in Result.Tried.
func Register() []*Invariant { return register }

// A name is what the documents and the table of sown faults use, and does not change.
func invariant(name, promise, sentence string) *Invariant {
	i := &Invariant{Name: name, Promise: promise, Sentence: sentence, index: len(register)}
	register = append(register, i)
	return i
}

// Invariants of what a scheduler decides: what a run is given, and how its task continues or ends.

// Most of these depend on what the store does as well: the sentence says what a user sees of both.
var (
	startUnderLease  = invariant("start-under-lease", "4", "A handler is called only while its run holds the lease.")
	startAsClaimed   = invariant("start-as-claimed", "13", "A handler gets the definition that was claimed.")
	occurrenceOnce   = invariant("occurrence-once", "14", "An occurrence that runs as a task of its own is made once, whoever dies in between.")
	timeoutIsTold    = invariant("timeout-is-told", "design 3", "The context of a run is done when its timeout has passed.")
	startOnce        = invariant("start-once", "3", "A claim starts a task once at most.")
	startHasAReason  = invariant("start-has-a-reason", "3", "A second start follows a failed attempt, a lost lease, a run that was put off or given back, another occurrence, or a command.")
	noStartCancelled = invariant("no-start-cancelled", "12", "No handler is called for a task that was claimed to be ended.")
	attemptIsCounted = invariant("attempt-is-counted", "17", "A handler is told which attempt at the occurrence it is: failed ones count, all else does not.")
	attemptsAtMost   = invariant("attempts-at-most", "2", "No occurrence has more attempts than its task allows.")
	crashesAtMost    = invariant("crashes-at-most", "26", "A task whose runs lost their process more often than allowed is not run again.")
	slotsAtMost      = invariant("slots-at-most", "7", "No process runs more at once than its slots.")
	kindSlotsAtMost  = invariant("kind-slots-at-most", "7", "No process runs more of a bounded kind at once than its slots.")
	suspectsAtMost   = invariant("suspects-at-most", "26", "Of tasks whose last run died with its process a process runs half as many as it has slots, of those with two such runs two, of those with more one.")
	nobodySpins      = invariant("nobody-spins", "design 5", "A process that gets nothing asks again after a while, and not for ever at once.")
	leaseOfNobody    = invariant("lease-of-nobody", "5", "A process extends no lease of which it has given all runs up.")
	noClaimStopped   = invariant("no-claim-stopped", "8", "A process that was asked to end claims nothing more.")
	eventsAreEarned  = invariant("events-are-earned", "design 7", "An event of a run names a task that was claimed under that fence.")
	successCompletes = invariant("success-completes", "2", "A task that does not recur and whose run succeeds is completed.")
	failureRetries   = invariant("failure-retries", "2", "A failed attempt is repeated while there are attempts left, and only then.")
	failureEnds      = invariant("failure-ends", "2", "A task that does not recur is dead when its last attempt has failed.")
	skipRetryEnds    = invariant("skip-retry-ends", "design 3", "SkipRetry spends the attempts that are left.")
	handlerCancels   = invariant("handler-cancels", "design 3", "A task is cancelled if its handler says so.")
	snoozeUncharged  = invariant("snooze-uncharged", "17", "Snooze and Yield put the occurrence off for as long as they say, uncharged.")
	retryAfterWaits  = invariant("retry-after-waits", "17", "A run that asks to be called later is not repeated sooner, and not charged until there were too many in a row.")
	backoffBound     = invariant("backoff-bound", "design 3", "The pause after a failed attempt is at most the backoff, doubled with each attempt up to its cap.")
	backoffNone      = invariant("backoff-none", "design 3", "Without a backoff a failed attempt is repeated at once.")
	everyFromEnd     = invariant("every-from-end", "design 5", "A task that recurs from completion is due its interval, and its jitter at most, after its run ended.")
	everyStretches   = invariant("every-stretches", "design 5", "Failures in a row stretch the interval, at most to five minutes or the interval itself; a success resets it.")
	waitIsNoDelay    = invariant("wait-is-no-delay", "design 5", "The delay until a task is due again counts from the end of its run, however long its outcome has waited for others.")
	nextInIsKept     = invariant("next-in-is-kept", "design 3", "NextIn sets when a task that recurs from completion is due next.")
	startGrid        = invariant("start-grid", "14", "A task that recurs from its start is due on its grid, whatever its runs take.")
	cronOnTime       = invariant("cron-on-time", "14", "A cron task is due at a time of its expression.")
	notInThePast     = invariant("next-is-later", "14", "The next occurrence is none that has run.")
	minIntervalKept  = invariant("min-interval", "design 5", "No run starts sooner after the last one's claim than its minimum interval, unless that was given back, died or was put off by its handler, or by hand, or by replacement.")
	hopelessPauses   = invariant("hopeless-pauses", "15", "A recurring task is paused when as many occurrences in a row have failed as it allows, and not before.")
	runsAreCounted   = invariant("runs-are-counted", "design 7", "Each run that ended with a result is counted once.")
	errorsAreCounted = invariant("errors-are-counted", "design 7", "Each failed attempt and each crash is counted as an error, and nothing else is.")
	skipsAreCounted  = invariant("skips-are-counted", "14", "Skipped occurrences are counted, and never decrease.")
	failuresInARow   = invariant("failures-in-a-row", "design 7", "Occurrences that failed in a row are counted, and a success clears them.")
	resultIsKept     = invariant("result-is-kept", "design 7", "The result of the last run that set one is what is read.")
	outcomeIsKept    = invariant("outcome-is-kept", "3", "The outcome of the last run is in the task's history.")
	runsAtMost       = invariant("runs-at-most", "design 7", "The history of a task has at most twenty runs.")
	releaseUncharged = invariant("release-uncharged", "8", "A run that its process gave back charges nothing.")
	tooLongPauses    = invariant("too-long-pauses", "15", "A task that was cut off is given back, uncharged; after the third time in a row it is paused.")
	releaseHasACause = invariant("release-has-a-cause", "8", "A task is given back only by a process that stops, whose pull is over, or that has not begun to run it.")
	statusIsTrue     = invariant("status-is-true", "design 7", "The tracker says where a task is.")
	dueIsShown       = invariant("due-is-shown", "design 7", "The tracker says when a waiting task is due.")
	groupIsTrue      = invariant("group-is-true", "16", "The counts of a group are those of its tasks.")
	groupStatus      = invariant("group-status", "design 7", "A group has failed if one of its tasks has, else it is in progress while one is live, else it is completed or cancelled.")
	statsAreTrue     = invariant("stats-are-true", "16", "The counters of the store are those of its tasks.")
	kindsAreTrue     = invariant("kinds-are-true", "16", "The counters of each kind are those of its tasks.")
	totalsAreTrue    = invariant("totals-are-true", "16", "What was submitted, completed, failed and cancelled is counted once.")
	listIsWhole      = invariant("list-is-whole", "design 7", "A list has each live task once.")
	listIsTrue       = invariant("list-is-true", "design 7", "A list has no task that is not there, and no task twice.")
	historyCap       = invariant("history-cap", "20", "No more finished tasks of an agent are kept than the cap, those that failed counted apart.")
	historyKept      = invariant("history-kept", "20", "As many finished tasks are kept as the cap allows, for as long as the retention.")
	idIsKnown        = invariant("id-is-known", "21", "The id of a finished task is known for a day, or the retention if that is shorter.")
	retentionApplies = invariant("retention", "20", "A finished task is gone when the retention is over.")
	agentsAreListed  = invariant("agents-are-listed", "design 7", "The agents with live tasks are listed, with how many they have.")
	pausesAreListed  = invariant("pauses-are-listed", "15", "Every pause in force is listed, and no other.")
	pausesAreTrue    = invariant("pauses-are-true", "15", "A pause is shown with when it began and when it ends, whoever has prolonged it.")
	explainFinished  = invariant("explain-finished", "15", "Explain says that a task has ended if it has, and only then.")
	explainRuns      = invariant("explain-runs", "15", "Explain says that a task runs if it is claimed, and only then.")
	explainPaused    = invariant("explain-paused", "15", "Explain names every pause that a task is under, and no other.")
	explainDue       = invariant("explain-due", "15", "Explain says until when a task waits that is not due.")
	explainOverdue   = invariant("explain-overdue", "15", "Explain says that a task is due if it is and nothing holds it, or that no process has a handler for it.")
	explainEnding    = invariant("explain-ending", "15", "Explain says that a task ends if it was cancelled while it ran.")
	auditIsClean     = invariant("audit-is-clean", "16", "An audit finds nothing, at any time.")
	auditIsWhole     = invariant("audit-is-whole", "16", "An audit looks at every live task.")
	everyTaskEnds    = invariant("every-task-ends", "2", "In a kind world every accepted task ends, or waits for its time, a pause or activity.")
	nobodyWaits      = invariant("nobody-waits", "7", "In a kind world nothing that is due waits for a stranger.")
	recovered        = invariant("recovered", "5", "In a kind world no run of a dead process holds its task past its lease.")
	recursForEver    = invariant("recurs-for-ever", "15", "In a kind world a recurring task that is not held goes on.")
	nothingIsLost    = invariant("nothing-is-lost", "1", "Whatever was acknowledged is there until it has ended or was deleted.")
	answerIsTrue     = invariant("answer-is-true", "1", "A submit is answered with what became of it.")
	cancelAnswer     = invariant("cancel-answer", "12", "Whoever is answered that a task is cancelled has asked about one that was.")
	errorsAreKnown   = invariant("errors-are-known", "23", "A refusal has a code: no client sees an internal error.")
	reportAddsUp     = invariant("report-adds-up", "design 3", "A report counts no run as completed that it did not start.")
	pullEnds         = invariant("pull-ends", "8", "In a kind world every pull ends.")
)

// Invariants of what the store holds: who may take a task, when, and what no process may change.

// The store alone keeps or breaks each of these, however a scheduler uses it.
var (
	neverEarly        = invariant("never-early", "6", "No task is claimed before it is due by the store's clock, to the millisecond.")
	dueIsKept         = invariant("due-is-kept", "6", "A claimed task is due when its last submit, settlement or command said, whoever claims it.")
	submittedAtDue    = invariant("submitted-at-due", "6", "A task is due when its submit says: at its time or after its delay, and never in the past.")
	oneLease          = invariant("one-lease", "4", "While a lease is in force no other claim gets its tasks.")
	noticeIsGiven     = invariant("notice-is-given", "4", "A lease that is over is given notice, so that a process that lives can extend it, before its tasks are taken back.")
	backIsFree        = invariant("back-is-free", "4", "A process takes back a run whose lease it has lost only while nobody has claimed the task since.")
	fencesGrow        = invariant("fences-grow", "4", "The fences of a partition only grow.")
	fencesGrowForAll  = invariant("fences-grow-for-all", "4", "The fences that one process gets grow, also if the store has forgotten its last writes.")
	fenceUnused       = invariant("fence-unused", "4", "No fence is given to two claims.")
	staleChanges      = invariant("stale-changes-nothing", "4", "A run that lost its task to another settles nothing.")
	leaseIsKept       = invariant("lease-is-kept", "4", "A run whose lease is in force is not told that it was lost.")
	extendTellsLoss   = invariant("extend-tells-loss", "4", "A claim of which every task was taken by others is not extended.")
	extendHolds       = invariant("extend-holds", "4", "A claim whose lease is in force is extended, for as long as it asked.")
	settleTwice       = invariant("settle-twice", "1", "The same settlement again is no error and changes nothing.")
	nonceRepeats      = invariant("nonce-repeats", "1", "The same claim again gets its own tasks, and no others.")
	claimExists       = invariant("claimed-exists", "2", "Only tasks that were accepted, and are live, are claimed.")
	claimIsAsStored   = invariant("claimed-as-stored", "13", "A claim returns the definition that was stored last.")
	stateIsKept       = invariant("state-is-kept", "2", "A claim returns the state that the last settlement or heartbeat of the task stored.")
	ownKinds          = invariant("own-kinds", "2", "A process gets no task of a kind that it has no handler for.")
	ownAgents         = invariant("own-agents", "7", "A claim for some agents gets the tasks of no other.")
	ownPartition      = invariant("own-partition", "7", "A task is claimed in the partition of its agent.")
	claimLimit        = invariant("claim-limit", "7", "A claim gets no more tasks than it asks for.")
	claimPerAgent     = invariant("claim-per-agent", "7", "A claim gets no more tasks of an agent than it asks for.")
	claimMost         = invariant("claim-most", "7", "A claim gets no more tasks of a bounded kind than it has slots for.")
	claimUrgent       = invariant("claim-urgent", "7", "A claim for urgent tasks gets tasks of level 1 only.")
	claimOnce         = invariant("claim-once", "4", "A claim gets no task twice.")
	inOrderOfAgent    = invariant("order-in-agent", "7", "The tasks of an agent are claimed in the order of level, due time and submit; one that is overdue by a minute counts as level 1.")
	noOvertaking      = invariant("no-overtaking", "7", "No task of an agent is claimed while one that comes before it is left, unless that is held, parked or bounded.")
	workConserving    = invariant("work-conserving", "7", "A claim that comes back with room left has left no task that it may have.")
	limitOfRuns       = invariant("limit-of-runs", "design 6", "No more tasks run under leases in force than a limit allows, over all processes.")
	limitOfStarts     = invariant("limit-of-starts", "design 6", "Within no time of its length do more runs start than a rate allows, its burst included.")
	serialAgents      = invariant("serial-agents", "24", "With serial: agent no task of an agent is claimed while another of it runs.")
	pausedIsKept      = invariant("paused-is-kept", "11", "No task is claimed while a pause that it is under is in force, unless it was asked for by hand since.")
	cancelIsFinal     = invariant("cancel-is-final", "12", "A task that was cancelled while it waited is never claimed again.")
	cancelledIsTold   = invariant("cancelled-is-told", "12", "Who claims a task that was cancelled while its last run died is told so.")
	cancelWins        = invariant("cancel-wins", "12", "A task that was cancelled while it ran ends as cancelled, whatever its run returns.")
	cancelHasACause   = invariant("cancel-has-a-cause", "12", "No run is told that its task was cancelled unless somebody cancelled it.")
	replaceIsTold     = invariant("replace-is-told", "13", "The run of a task that was replaced cannot end it as what it was.")
	replaceKeeps      = invariant("replace-keeps-history", "13", "A task that is replaced keeps its counts, its runs and its result.")
	replaceHasACause  = invariant("replace-has-a-cause", "13", "No run is told that its task was replaced unless somebody replaced it.")
	endsAreFinal      = invariant("ends-are-final", "2", "A task that has ended starts again only by a replay or a new submit.")
	crashIsCounted    = invariant("crash-is-counted", "26", "Who claims a task whose last run lost its lease is told of the crash, and nobody else is.")
	submittedIsKept   = invariant("submitted-is-kept", "7", "A task keeps the time of its submit, which orders it, for as long as it lives.")
	againIsDue        = invariant("again-is-due", "6", "A task that is due again is due when its settlement says, or its replacement, or an order to run once more.")
	releaseIsDue      = invariant("release-is-due", "8", "A task that is given back is due as it was.")
	acceptedOnce      = invariant("accepted-once", "1", "A submit creates a task only if its id is not known.")
	keptIsKnown       = invariant("kept-is-known", "1", "A submit that creates nothing names a task that exists or has ended lately.")
	replacedWasLive   = invariant("replaced-was-live", "13", "Only a live task is replaced, and only by a submit that says so.")
	limitIsReal       = invariant("limit-is-real", "31", "A submit is refused for the number of tasks only if its agent would have more than the limit.")
	limitIsKept       = invariant("limit-is-kept", "31", "No agent has more live tasks than the limit.")
	conflictIsReal    = invariant("conflict-is-real", "23", "A submit is refused as a conflict only if its task exists.")
	conflictIsTold    = invariant("conflict-is-told", "23", "A submit that wants a new task is refused if the task exists.")
	lookIsNotLate     = invariant("look-is-not-late", "2", "A look never says later than when a task is due that the process may claim.")
	lookSeesLeases    = invariant("look-sees-leases", "5", "A look never says later than when the next lease ends.")
	holdNeedsATask    = invariant("hold-needs-a-task", "11", "A pause of a single task is stored if the task is live, and only then.")
	unholdIsReal      = invariant("unhold-is-real", "11", "A resume says that it changed something if a pause was in force.")
	runNowIsNow       = invariant("run-now-is-now", "design 6", "A waiting task that is asked for by hand is due now.")
	runNowKnows       = invariant("run-now-knows", "design 6", "An order to run now says whether the task waits, runs or ends.")
	cancelKnows       = invariant("cancel-knows", "12", "A cancel says whether the task has ended or will.")
	deleteKnows       = invariant("delete-knows", "12", "A delete says whether there was a task to forget.")
	replayKnows       = invariant("replay-knows", "2", "Only a task that is dead is replayed, and it is due now.")
	touchIsDue        = invariant("touch-is-due", "design 5", "The first activity of a subject books a run after the quiet time.")
	touchThrottles    = invariant("touch-throttles", "design 5", "Further activity does not put a throttled run off.")
	touchDebounces    = invariant("touch-debounces", "design 5", "Further activity puts a debounced run off, but not past the longest wait, and never makes it sooner.")
	touchWhileRunning = invariant("touch-while-running", "design 5", "Activity while a run is under way books one more run, once.")
	deletedTellsRun   = invariant("deleted-tells-run", "12", "A run of a deleted task is told with its next heartbeat, and settles nothing.")
	cancelReachesRun  = invariant("cancel-reaches-run", "12", "The context of a run is done once its heartbeat has told that its task was cancelled or deleted.")
	leaveIsEarned     = invariant("leave-is-earned", "15", "A kind is left for lack of time only by a process that has completed a run of it.")
	cancelTellsRun    = invariant("cancel-tells-run", "12", "A run of a cancelled task is told with its next heartbeat.")
)
