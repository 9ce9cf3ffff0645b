package main

import (
	"slices"

	"github.com/seed-6f6f2c11/duly/internal/sow"
)

// mutants are all sown faults.
var mutants = slices.Concat(plain, ofRows)

// ofRows are the faults of the rows in the world's table of features. Each is found by the invariant that its row names, and by no other.
var ofRows = []sow.Fault{
	{
		Name: "signal-page", What: "A signal reaches the first hundred tasks that wait for it.", File: "core/memstore/signals.go",
		Old: "			out.More = true\n", New: "",
	},
	{
		Name: "signal-outlives-failure", What: "What a failed occurrence has heard is told to the next one.", File: "core/internal/decide/verdict.go",
		Old: "func (d *Decision) failOccurrence(v *Verdict, err error) {\n\td.heard(v)\n", New: "func (d *Decision) failOccurrence(v *Verdict, err error) {\n",
	},
	{
		Name: "signal-overwritten", What: "A signal that is kept is lost when another one comes before anybody waits.", File: "core/memstore/signals.go",
		Old: "	case p.signals.early[name].until > now:\n", New: "	case p.signals.early[name].until > now && len(n.Payload) == 0:\n",
	},
	{
		Name: "signal-never-too-late", What: "A task that nobody has told anything in time runs, whatever it said.", File: "core/signal.go",
		Old: "	if heard.TimedOut {\n", New: "	if heard.TimedOut && w.Then == \"\" {\n",
	},
	{
		Name: "await-charged", What: "A run that waits for a signal costs an attempt.", File: "core/internal/decide/signal.go",
		Old: "\td.State.Checkpoint = e.Checkpoint\n", New: "\td.State.Checkpoint = e.Checkpoint\n\td.State.Attempt++\n",
	},
	{
		Name: "approval-by-anybody", What: "Whoever may send signals approves.", File: "core/memstore/signals.go",
		Old: "		if t.wait.approval && !n.Approval {\n", New: "		if t.wait.approval && !n.Approval && len(n.Payload) == 0 {\n",
	},
	{
		Name: "answer-to-any-wait", What: "The answer to a question is told to whatever its task waits for.", File: "core/memstore/signals.go",
		Old: "(t.ID != n.ID || t.wait.fence != n.Wait)", New: "t.ID != n.ID",
	},
	{
		Name: "callback-lost", What: "The end of a task is not told if the process dies that was to confirm it.", File: "core/callback.go",
		Old: "if of.Dropped || err == nil && rec.Callback == t.ID {", New: "if of.Dropped {\n			_ = rec",
	},
	{
		Name: "callback-id-of-attempt", What: "Each attempt to deliver a callback has a message id of its own.", File: "core/callback.go",
		Old: "fmt.Appendf(nil, \"%d:%s%d:%s\", len(t.Agent), t.Agent, len(t.ID), t.ID))", New: "fmt.Appendf(nil, \"%d:%s%d:%s\", len(t.Agent), t.Agent, t.Attempt, t.ID))",
	},
	{
		Name: "callback-of-nothing", What: "A callback tells of an end that a run was about to store when it died.", File: "core/callback.go",
		Old: "		return end, \"the process that was about to end the task died before\", nil\n", New: "		return page.Now.Time(), \"\", nil\n",
	},
	{
		Name: "callback-slow-is-dead", What: "A callback is given up while the slow process runs that is going to end its task.", File: "core/callback.go",
		Old: "of.Status == StatusInProgress && of.Fence == t.Payload.Fence:", New: "of.Status == StatusInProgress && t.Payload.Fence == 0:",
	},
	{
		Name: "callback-not-named", What: "The record of a task that was cancelled does not name its delivery.", File: "core/foretell.go",
		Old: "	sub, err := callbackOf(&of, b, 0, s.commandMargin())\n", New: "	sub, err := callbackOf(&of, b, 0, s.commandMargin())\n	rec.Callback = \"\"\n",
	},
	{
		Name: "alarm-of-a-pause", What: "No alarm is booked for the end of a pause that is given as a duration.", File: "core/alarmed.go",
		Old: "			until.At = now.Add(until.After)\n", New: "			_ = now\n",
	},
	{
		Name: "quiet-not-looked-at", What: "A task that is claimed in quiet hours starts.", File: "core/internal/decide/quiet.go",
		Old: "\tif d.Habits == nil || d.State.Hand || d.byHand() {\n", New: "\tif d.Habits != nil || d.State.Hand || d.byHand() {\n",
	},
	{
		Name: "quiet-runs-each", What: "Each occurrence that falls due in quiet hours is run after them.", File: "core/internal/decide/quiet.go",
		Old: "\treturn d.quietUntil(nominal)\n", New: "\treturn nominal\n",
	},
	{
		Name: "quiet-ends-late", What: "A task that is claimed in quiet hours is put off for a minute more.", File: "core/internal/decide/quiet.go",
		Old: "\tv.Settlement.Verb, v.Settlement.Due, v.Settlement.State = store.VerbAgain, store.When{At: until}, d.State.Encode()\n",
		New: "\tv.Settlement.Verb, v.Settlement.Due, v.Settlement.State = store.VerbAgain, store.When{At: until + 60000}, d.State.Encode()\n",
	},
	{
		Name: "budget-one-more", What: "A budget of runs lets one more start.", File: "core/memstore/limit.go",
		Old: "b.spentAt(now) >= b.rule.budget.Amount {", New: "b.spentAt(now) > b.rule.budget.Amount {",
	},
	{
		Name: "budget-half", What: "A budget counts half of what runs report.", File: "core/memstore/budget.go",
		Old: "p.spend(u.bucket, spent.Used[at].Amount, t, now)", New: "p.spend(u.bucket, spent.Used[at].Amount/2, t, now)",
	},
	{
		Name: "budget-of-failures", What: "What a run has used that failed is not counted.", File: "core/internal/decide/budget.go",
		Old: "\tif len(d.Used) > 0 {\n", New: "\tif len(d.Used) > 0 && v.Err == nil {\n",
	},
	{
		Name: "batch-of-many", What: "A batch has one task more than its kind says.", File: "core/batch.go",
		Old: "	full := len(b.runs) >= k.Batch\n", New: "	full := len(b.runs) > k.Batch\n",
	},
	{
		Name: "breaker-one-deeper", What: "Tasks may be one deeper below their root than allowed.", File: "core/origin.go",
		Old: "most > 0 && o.Depth > most {", New: "most > 0 && o.Depth > most+1 {",
	},
	{
		Name: "breaker-one-more", What: "One task more than allowed may be below a root.", File: "core/memstore/root.go",
		Old: "	if have < root.Most {\n		return nil\n", New: "	if have <= root.Most {\n		return nil\n",
	},
	{
		Name: "tally-twice", What: "Counters that are sent again are added again.", File: "core/memstore/recent.go",
		Old: "known && last >= t.Seq {", New: "known && last > t.Seq {",
	},
	{
		Name: "gate-not-heeded", What: "A run starts although its gate says no.", File: "core/admit.go",
		Old: "	case !answer.Open:\n", New: "	case !answer.Open && answer.Tag != \"\":\n",
	},
	{
		Name: "gate-never-tires", What: "A gate that says no is asked as often as before.", File: "core/internal/decide/idle.go",
		Old: "\td.State.Idle++\n", New: "",
	},
	{
		Name: "limit-line-passed", What: "A task takes the room in a limit that others wait for in line.", File: "core/memstore/line.go",
		Old: "		if !b.vacant(c.now) || b.line.tasks > 0 && i > first {\n", New: "		if !b.vacant(c.now) && i > first {\n",
	},
	{
		Name: "marks-lost", What: "A handler does not get the tags of its task.", File: "core/run.go",
		Old: "Tags: b.Tags, Crashes:", New: "Crashes:",
	},
}
