package console

// The page of a task: why it has not run, what it is, and its runs as a line of time.

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/steps"
)

// taskPage is the page of a task.
type taskPage struct {
	Task     core.TaskInfo
	State    badge
	Why      string   // in one sentence
	Others   []string // other reasons
	Facts    []fact
	Values   []value
	Steps    []stepRow // of a task that keeps a log of them
	Runs     []runRow  // newest first
	Line     *line
	Buttons  []string // what can be ordered, by the names of verbs
	Snoozes  bool
	Edits    []editField
	Live     bool
	Schedule string
	Asks     *question // what it asks a person; nil for nothing
	Again    string    // the payload of a dead task, to be replayed with another
	Replays  bool
	Running  *running // nil if no run is under way
	Tree     *tree    // what its runs have submitted; nil for nothing
	Trace    string   // where its trace is
	Output   []printed
	Every    string // how often the page is fresh
}

// fact is one thing that is known of a task.
type fact struct {
	Name, Text, To string
	Time           time.Time
}

// value is a text of any length.
type value struct {
	Name, Text string
	Cut        bool
}

// runRow is one run, and the pause before it.
type runRow struct {
	model.TaskRun

	Number int
	State  badge
	Gap    string // between the end of the run before and this one
	Used   string
}

// stepRow is a step, with what it has used.
type stepRow struct {
	steps.Row

	Used string
}

// stepsOf are the steps of a task that keeps a log of them.
func stepsOf(t *core.TaskInfo) (rows []stepRow) {
	log, _ := steps.ReadLog(t.Checkpoint)
	for _, r := range log.Rows(t) {
		rows = append(rows, stepRow{r, usedText(r.Used)})
	}
	return rows
}

// line is runs drawn along time.
type line struct {
	Width, Height int
	From, To      string
	Begin, End    shownTime
	Parts         []part
	Summary       string
}

// part is one run of a line.
type part struct {
	X, Width float64
	Class    string
	Title    string
}

// task is the page of one task. What it costs does not depend on how many tasks there are.
func (c *console) task(v *visit) (*page, error) {
	agent, id := v.q.Get("agent"), v.q.Get("id")
	switch {
	case agent == "":
		return nil, &core.InvalidError{Field: "agent", Reason: "is required"}
	case id == "":
		return nil, &core.InvalidError{Field: "id", Reason: "is required"}
	}
	if err := v.may(model.ActionRead, agent); err != nil {
		return nil, err
	}
	e, err := c.scheduler.Explain(v.r.Context(), agent, id)
	if err != nil {
		return nil, err
	}
	v.now = e.Now
	t := &e.Task
	p := taskPage{Task: *t, State: stateOf(t, e.Now), Live: !t.Status.Finished(), Schedule: scheduleOf(t), Facts: factsOf(t), Values: valuesOf(t)}
	for i, because := range e.Reasons {
		if text := sentence(because.Text); i == 0 {
			p.Why = text
		} else {
			p.Others = append(p.Others, text)
		}
	}
	if inspect.Asks(t) {
		asks := v.questionOf(t, 0)
		p.Asks = &asks
	}
	p.Running, p.Trace = runningOf(&e), traceURL(c.options.TraceURL, t)
	if p.Tree, err = treeOf(v, t, p.Running); err != nil {
		return nil, err
	}
	if p.Output, err = outputOf(v, t); err != nil {
		return nil, err
	}
	p.Every = "5s"
	if p.Running != nil {
		p.Every = "2s"
	}
	p.Steps = stepsOf(t)
	p.Runs, p.Line = runsOf(t.Runs), lineOf(t, p.Running, e.Now)
	if v.steers(agent) {
		p.Buttons, p.Snoozes, p.Edits = buttonsOf(t), p.Live, editsOf(t)
		p.Again, p.Replays = string(t.Payload), slices.Contains(p.Buttons, "replay") && len(t.Payload) <= mostEdited
	}
	return &page{name: "task", title: "Task " + t.ID, body: p}, nil
}

// buttonsOf returns the orders that a task allows in its current state.
func buttonsOf(t *core.TaskInfo) []string {
	var out []string
	if t.Status == core.StatusFailed && !t.Dropped {
		out = append(out, "replay")
	}
	if !t.Status.Finished() {
		if t.Status == core.StatusWaiting || t.Overlap == core.OverlapQueueOne {
			out = append(out, "run")
		}
		paused := slices.ContainsFunc(t.Pauses, func(p model.PauseInfo) bool { return p.Target.ID != "" })
		if paused {
			out = append(out, "resume")
		} else {
			out = append(out, "pause")
		}
		if !t.Ending {
			out = append(out, "cancel")
		}
	}
	return append(out, "delete")
}

// factsOf are what is known of a task, in the order in which people ask.
func factsOf(t *core.TaskInfo) []fact {
	var all []fact
	text := func(name, text string) {
		if text != "" {
			all = append(all, fact{Name: name, Text: text})
		}
	}
	at := func(name string, t time.Time) {
		if !t.IsZero() {
			all = append(all, fact{Name: name, Time: t})
		}
	}
	text("Kind", t.Kind)
	text("Schedule", scheduleOf(t))
	at("Next run", t.NextRun)
	at("Due", t.Due)
	at("Submitted", t.Submitted)
	at("Last started", t.Started)
	at("Ended", t.Finished)
	text("Reason", t.Reason)
	text("Level", count(int(t.Level)))
	text("Runs", runsText(t))
	if t.Attempt > 1 {
		text("Attempt", count(t.Attempt))
	}
	if t.Crashes > 0 {
		text("Crashes", count(t.Crashes))
	}
	text("Group", t.Group)
	text("Limit key", t.LimitKey)
	text("User", t.UserID)
	text("Session", t.SessionID)
	text("Trace", t.TraceID) // the page leads to it if it knows where traces are
	text("Tags", strings.Join(t.Tags, ", "))
	for _, name := range slices.Sorted(maps.Keys(t.Labels)) {
		text("Label "+name, t.Labels[name])
	}
	if t.Parent != "" {
		all = append(all, fact{Name: "Occurrence of", Text: t.Parent, To: taskURL(t.Agent, t.Parent)})
	}
	if t.Origin != nil {
		all = append(all, fact{Name: "Submitted by", Text: t.Origin.By.Agent + " / " + t.Origin.By.ID, To: taskURL(t.Origin.By.Agent, t.Origin.By.ID)})
	}
	return all
}

// runsText counts runs.
func runsText(t *core.TaskInfo) string {
	text := count(t.RunCount)
	if t.ErrorCount > 0 {
		text += ", " + counted(t.ErrorCount, "failure")
	}
	if t.SkipCount > 0 {
		text += ", " + count(t.SkipCount) + " skipped"
	}
	return text
}

// valuesOf are what a task has that may be long.
func valuesOf(t *core.TaskInfo) []value {
	var all []value
	checkpoint := t.Checkpoint
	if _, ok := steps.ReadLog(checkpoint); ok {
		checkpoint = nil // it is shown as steps
	}
	for _, one := range []struct {
		name string
		data []byte
	}{{"Progress", t.Progress}, {"Checkpoint", checkpoint}, {"Result", t.Result}, {"Payload", t.Payload}, {"Info", t.Info}} {
		if text, cut := jsonText(one.data); text != "" {
			all = append(all, value{Name: one.name, Text: text, Cut: cut})
		}
	}
	return all
}

// runsOf are the runs that are kept, newest first, with the pauses between them.
func runsOf(runs []model.TaskRun) []runRow {
	rows := make([]runRow, len(runs))
	for i, r := range runs {
		row := runRow{TaskRun: r, Number: i + 1, State: outcomeOf(r.Outcome), Used: usedText(r.Used)}
		if i > 0 {
			before := &runs[i-1]
			if gap := r.Started.Sub(before.Started.Add(before.Duration)); gap > 0 {
				row.Gap = took(gap)
			}
		}
		rows[len(runs)-1-i] = row
	}
	return rows
}

// usedText is what a run has used.
func usedText(used core.Usage) string {
	var parts []string
	for _, unit := range slices.Sorted(maps.Keys(used)) {
		parts = append(parts, core.AmountOf(used[unit]).String()+" "+unit)
	}
	return strings.Join(parts, ", ")
}

// lineOf draws the runs from the first that is kept until now, or until the end. Nil if there are none.
func lineOf(t *core.TaskInfo, runs *running, now time.Time) *line {
	from, to := now, now
	switch {
	case len(t.Runs) > 0:
		from = t.Runs[0].Started
	case runs != nil:
		from = runs.Since
	default:
		return nil
	}
	if !t.Finished.IsZero() {
		to = t.Finished
	}
	if n := len(t.Runs); n > 0 && t.Runs[n-1].Started.Add(t.Runs[n-1].Duration).After(to) {
		to = t.Runs[n-1].Started.Add(t.Runs[n-1].Duration)
	}
	whole := max(to.Sub(from), time.Millisecond)
	l := &line{Width: weekWidth, Height: 28, From: from.UTC().Format("2 Jan 15:04:05"), To: to.UTC().Format("2 Jan 15:04:05 MST"), Begin: when(now, from), End: when(now, to)}
	failed := 0
	for i := range t.Runs {
		r := &t.Runs[i]
		b := outcomeOf(r.Outcome)
		if b.Class == "bad" {
			failed++
		}
		x := float64(r.Started.Sub(from)) / float64(whole) * weekWidth
		width := max(float64(r.Duration)/float64(whole)*weekWidth, 3)
		l.Parts = append(l.Parts, part{
			X: min(x, weekWidth-width), Width: width, Class: b.Class, Title: r.Started.UTC().Format("15:04:05.000") + ": " + b.Word + " after " + took(r.Duration),
		})
	}
	l.Summary = counted(len(t.Runs), "run") + ", of which " + count(failed) + " failed"
	if runs != nil {
		x := max(min(float64(runs.Since.Sub(from))/float64(whole)*weekWidth, weekWidth-3), 0)
		l.Parts = append(l.Parts, part{X: x, Width: weekWidth - x, Class: "busy", Title: runs.Since.UTC().Format("15:04:05.000") + ": running for " + runs.For})
		if l.Summary += ", one is under way"; len(t.Runs) == 0 {
			l.Summary = "one run is under way"
		}
	}
	return l
}
