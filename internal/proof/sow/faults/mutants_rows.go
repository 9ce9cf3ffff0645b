package faults

import (
	"slices"

	"github.com/seed-6f6f2c11/duly/internal/proof/sow"
)

// Mutants are all faults that the simulation has to find.
var Mutants = slices.Concat(plain, OfRows)

// OfRows are the faults of the rows in the world's table of features. Each is found by the invariant that its row names, and by no other.
var OfRows = []sow.Fault{
	{
		Name: "save-without-lease", What: "A save of a run that has lost its lease is reported as stored.",
		At: "save-held", Change: sow.Never,
	},
	{
		Name: "save-overtaken", What: "A heartbeat that comes late undoes a save.",
		At: "late-state", Change: sow.Never,
	},
	{
		Name: "charged-twice", What: "Each save is charged all that its run has used.",
		At: "charged", Change: sow.Swap("spent[at].Amount-before[budget.About.Unit]", "spent[at].Amount"),
	},
	{
		Name: "late-never", What: "No task is ever late.",
		At: "late", Change: sow.Swap("w.Late == nil", "false"),
	},
	{
		Name: "late-in-spite-of-success", What: "A success does not count for what is expected of a task.",
		At: "success-noted", Change: sow.Never,
	},
	{
		Name: "tell-lost", What: "The end of a group is not told if one of its tasks has failed.",
		At: "tell", Change: sow.Swap("o.Signal(ctx, t.Agent, key, payload)", "model.Signalled{}, error(nil)\n\tif end.Failed == 0 { _, err = o.Signal(ctx, t.Agent, key, payload) }"),
	},
	{
		Name: "tell-early", What: "The end of a group is told with the first of its tasks that ends.",
		At: "tell-group", Change: sow.Swap("n.Live > 0", "n.Live > 2"),
	},
	{
		Name: "reply-by-anybody", What: "Each answer to a question approves.",
		At: "reply-approves", Change: sow.After("approves = true"),
	},
	{
		Name: "signal-page", What: "A signal reaches the first hundred tasks that wait for it.", Change: sow.Drop,
	},
	{
		Name: "signal-outlives-failure", What: "What a failed occurrence has heard is told to the next one.",
		At: "signal-ends", Change: sow.Drop,
	},
	{
		Name: "signal-overwritten", What: "A signal that is kept is lost when another one comes before anybody waits.",
		At: "signal-kept", Change: sow.And("len(n.Payload) == 0"),
	},
	{
		Name: "signal-never-too-late", What: "A task that nobody has told anything in time runs, whatever it said.",
		At: "signal-too-late", Change: sow.And(`w.Then == ""`),
	},
	{
		Name: "message-again", What: "A message whose process died before it noted the signal sends it again.",
		At: "signal-once-in-memory", Change: sow.Never,
	},
	{
		Name: "message-refused-counts", What: "A message whose signal was refused is taken for one that has sent it.",
		At: "signal-was-sent", Change: sow.Swap("(out.Code == store.SignalResumed || out.Code == store.SignalKept)", "true"),
	},
	{
		Name: "await-charged", What: "A run that waits for a signal costs an attempt.",
		At: "await", Change: sow.After("d.State.Attempt++"),
	},
	{
		Name: "approval-by-anybody", What: "Whoever may send signals approves.",
		At: "approval-in-memory", Change: sow.And("len(n.Payload) == 0"),
	},
	{
		Name: "answer-to-any-wait", What: "The answer to a question is told to whatever its task waits for.",
		At: "signal-twice", Change: sow.Swap("(t.ID != n.ID || t.wait.fence != n.Wait)", "t.ID != n.ID"),
	},
	{
		Name: "callback-lost", What: "The end of a task is not told if the process dies that was to confirm it.",
		At: "callback-looks", Change: sow.Swap("rec.Callback == t.ID", "rec.Callback == t.ID && t.Kind == check.KindTell"),
	},
	{
		Name: "callback-id-of-attempt", What: "Each attempt to deliver a callback has a message id of its own.",
		At: "callback-id", Change: sow.Swap("len(t.ID), t.ID", "t.Attempt, t.ID"),
	},
	{
		Name: "callback-of-nothing", What: "A callback tells of an end that a run was about to store when it died.",
		Change: sow.Instead(`return page.Now.Time(), "", nil`),
	},
	{
		Name: "callback-slow-is-dead", What: "A callback is given up while the slow process runs that is going to end its task.",
		At: "callback-slow", Change: sow.Swap("of.Fence == t.Payload.Fence", "t.Payload.Fence == 0"),
	},
	{
		Name: "callback-not-named", What: "The record of a task that was cancelled does not name its delivery.",
		At: "callback-named", Change: sow.After(`rec.Callback = ""`),
	},
	{
		Name: "alarm-of-a-pause", What: "No alarm is booked for the end of a pause that is given as a duration.",
		Change: sow.Drop,
	},
	{
		Name: "quiet-not-looked-at", What: "A task that is claimed in quiet hours starts.",
		At: "quiet-hours", Change: sow.Always,
	},
	{
		Name: "quiet-runs-each", What: "Each occurrence that falls due in quiet hours is run after them.",
		At: "quiet-runs-once", Change: sow.Instead("return nominal"),
	},
	{
		Name: "quiet-ends-late", What: "A task that is claimed in quiet hours is put off for a minute more.",
		At: "quiet-end", Change: sow.Swap("until}", "until + 60000}"),
	},
	{
		Name: "budget-one-more", What: "A budget of runs lets one more start.", At: "budget-hold", Change: sow.Swap(">=", ">"),
	},
	{
		Name: "budget-half", What: "A budget counts half of what runs report.",
		At: "budget-spent", Change: sow.Swap(".Amount", ".Amount/2"),
	},
	{
		Name: "budget-of-failures", What: "What a run has used that failed is not counted.", Change: sow.And("v.Err == nil"),
	},
	{
		Name: "batch-of-many", What: "A batch has one task more than its kind says.", At: "batch", Change: sow.Swap(">=", ">"),
	},
	{
		Name: "breaker-one-deeper", What: "Tasks may be one deeper below their root than allowed.",
		At: "breaker-depth", Change: sow.Swap("Depth >", "Depth > 1 +"),
	},
	{
		Name: "breaker-one-more", What: "One task more than allowed may be below a root.",
		At: "breaker-number", Change: sow.Swap("<", "<="),
	},
	{
		Name: "tally-twice", What: "Counters that are sent again are added again.", At: "tally", Change: sow.Swap(">=", ">"),
	},
	{
		Name: "output-of-another", What: "The output of a run is shown as that of the run before in its place.", At: "output-begins", Change: sow.Never,
	},
	{
		Name: "output-taken-over", What: "A run that was taken over writes over the output of the next one.", At: "output-fence-in-memory", Change: sow.Never,
	},
	{
		Name: "output-without-end", What: "What a run has printed last is not sent when it ends.", At: "output-ends", Change: sow.Drop,
	},
	{
		Name: "lent-output-without-end", What: "What a lent run has printed last is not kept when it ends.", At: "lent-output-ends", Change: sow.Never,
	},
	{
		Name: "gate-not-heeded", What: "A run starts although its gate says no.",
		At: "gate", Change: sow.And(`answer.Tag != ""`),
	},
	{
		Name: "gate-never-tires", What: "A gate that says no is asked as often as before.", At: "gate-tires", Change: sow.Drop,
	},
	{
		Name: "limit-line-passed", What: "A task takes the room in a limit that others wait for in line.",
		At: "limit-line", Change: sow.Swap("|| b.line.tasks > 0 &&", "&&"),
	},
	{
		Name: "limit-of-starts-runs", What: "A limit that bounds starts alone counts no run.",
		At: "limit-counts", Change: sow.Instead("if l := &b.rule.limit; l.Rate == 0 || l.Concurrency > 0 { b.runs++ }"),
	},
	{
		Name: "limit-of-keys-kept", What: "A limit that counts each key by itself gets nothing back when a run ends, unless it adapts.",
		At: "limit-returned", Change: sow.Before("if b.about.Each == bound.EachKey && !b.rule.limit.Adaptive { b.runs++ }"),
	},
	{
		Name: "budget-of-each-uncounted", What: "A budget of runs that counts each agent, key or task by itself counts no start.",
		At: "budget-starts", Change: sow.Swap("c != nil &&", `c != nil && c.About.Each == "" &&`),
	},
	{
		Name: "plain-claim-of-starts", What: "A plain claim counts nothing under a limit that bounds starts alone.",
		At: "plain-charge-runs", Change: sow.After("counts[i] = ruled[i].gap and not most and 0 or counts[i]"),
	},
	{
		Name: "plain-end-of-keys", What: "A plain settlement gives nothing back to a limit that counts each key by itself, unless some adapt.",
		At: "plain-return-many", Change: sow.After("for i = 1, n do counts[i] = (of[i] or not string.find(names[i], '|k|', 1, true)) and counts[i] or 0 end"),
	},
	{
		Name: "ahead-at-once", What: "What is claimed ahead of its time starts as soon as it is claimed.", Change: sow.Swap("at.Time().Sub(c.shows)", "at.Time().Sub(at.Time())"),
	},
	{
		Name: "ahead-of-urgent", What: "Urgent tasks are claimed ahead of their time.", Change: sow.Swap("t.Level != store.LevelHigh && ", ""),
	},
	{
		Name: "ahead-of-limit", What: "What is claimed ahead of its time uses up a limit.", Change: sow.Swap("!half(b.runs, limit.Concurrency)", "b.runs >= limit.Concurrency"),
	},
	{
		Name: "ahead-not-withdrawn", What: "A command does not reach what was claimed ahead of its time.", Change: sow.Instead("\t\tq.waiting.Add(taken[i].begin, taken[i])\n"),
	},
	{
		Name: "marks-lost", What: "A handler does not get the tags of its task.",
		At: "tags", Change: sow.Swap("Tags: b.Tags, ", ""),
	},
	{
		Name: "urgent-asked-late", What: "A process that has slots for urgent tasks alone asks a second later, though some fall due before.", At: "urgent-next", Change: sow.Drop,
	},
	{
		Name: "tenants-in-one-order", What: "Tenants do not take turns: those come first whose names do.", At: "lanes-turns-in-memory", Change: sow.Drop,
	},
	{
		Name: "quota-one-more", What: "A caller of an agent stores one live task more than the quota allows.", At: "quota-live", Change: sow.Swap("live >= own.Live", "live > own.Live"),
	},
	{
		Name: "quota-recurring-one-more", What: "A caller of an agent stores one task more that recurs than the quota allows.",
		At: "quota-recurring", Change: sow.Swap("used >= own.Recurring", "used > own.Recurring"),
	},
	{
		Name: "quota-counts-what-ended", What: "A task that recurs counts for the quota when it has ended.", At: "quota-ended", Change: sow.Drop,
	},
	{
		Name: "quota-in-core-only", What: "The step that stores a task does not look whether it was checked by the quota of its agent.", At: "quota-mark", Change: sow.Never,
	},
	{
		Name: "lent-held-anyway", What: "A worker hears with each sign of life that its run goes on.", At: "lent-held", Change: sow.Swap("|| !a.Held", ""),
	},
	{
		Name: "lent-ends-anyway", What: "A worker whose end was refused hears that its run has ended.", At: "lent-refused", Change: sow.Never,
	},
	{
		Name: "lent-unknown-is-lost", What: "A worker whose end could not be stored yet hears that its run is lost.", At: "lent-unknown", Change: sow.Never,
	},
	{
		Name: "lent-end-undoes", What: "The end of a run takes the place of what it has saved through another server.", At: "lent-elsewhere", Change: sow.Never,
	},
	{
		Name: "lent-behind-its-lease", What: "A run whose lease has ended before its worker heard of it begins.", At: "lent-late", Change: sow.Never,
	},
	{
		Name: "lent-lingers-on", What: "The ends of a worker wait beside an alarm for what falls due next, and for the end of their own leases.", At: "lent-lingers", Change: sow.Never,
	},
}
