package console

// What is wrong, as far as a scheduler can tell, each with what to do.

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// finding is one thing that is wrong, and a way out: a page, a button, or a command to run.
type finding struct {
	State         badge
	Text, Command string
	Label, To     string       // of a page
	Do            string       // a button, about Target
	Target        *core.Target // of the button
}

// The colours of findings.
var (
	isBad  = badge{"bad", "wrong"}
	isWarn = badge{"warn", "check"}
)

// findings are all that is wrong, the gravest first.
func (f *facts) findings(steers bool) []finding {
	var all []finding
	for _, check := range []func() []finding{f.own, f.work, f.late, f.handlers, f.paused, f.failures, f.bounds, f.records} {
		all = append(all, check()...)
	}
	for i := range all {
		if !steers {
			all[i].Do = ""
		}
	}
	slices.SortStableFunc(all, func(a, b finding) int { return strings.Compare(a.State.Class, b.State.Class) }) // bad before warn
	return all
}

// own are faults of the process that answers.
func (f *facts) own() []finding {
	var out []finding
	if stuck, ok := errors.AsType[*model.AbandonedError](f.Ready); ok {
		out = append(out, finding{State: isBad, Text: sentence(stuck.Error()), Command: "duly daemon", Label: "Processes", To: Path + "/processes"})
	}
	if away, ok := errors.AsType[*core.AwayError](f.Ready); ok {
		out = append(out, finding{State: isBad, Text: sentence(away.Error()), Command: "duly doctor"})
	}
	return out
}

// work looks for due work that is left lying.
func (f *facts) work() []finding {
	late := f.Overdue()
	if late == 0 {
		return nil
	}
	text := fmt.Sprintf("Work has been due for %s, and no process has claimed it.", rough(late))
	switch {
	case len(f.Processes) == 0:
		return []finding{{State: isBad, Text: text + " No process has said lately that it runs anything: start one.", Command: "duly daemon -c duly.yaml"}}
	case f.Busy():
		return []finding{{State: isBad, Text: text + " All slots are in use: start another process, or give these more.", Label: "Processes", To: Path + "/processes"}}
	default:
		return []finding{{State: isBad, Text: text + " A pause of everything, a limit or a budget may hold it back.", Label: "See what is held", To: Path + "/held"}}
	}
}

// late looks for tasks that have not succeeded in time.
func (f *facts) late() []finding {
	if of := f.Late.Finding(); of.Severity != inspect.SeverityOK {
		return []finding{{State: isBad, Text: sentence(of.Message), Command: "duly list --late"}}
	}
	return nil
}

// handlers looks for kinds that no process runs.
func (f *facts) handlers() []finding {
	var missing []string
	kinds := f.Unhandled()
	for i := range kinds {
		missing = append(missing, fmt.Sprintf("%s (%s)", short(kinds[i].Kind), count(kinds[i].Counters.Live)))
	}
	if len(missing) == 0 {
		return nil
	}
	more := ""
	if n := len(missing) - mostNamed; n > 0 {
		missing, more = missing[:mostNamed], fmt.Sprintf(" and %d more", n)
	}
	return []finding{{
		State: isWarn, Text: "No process that is known has a handler for these kinds of live tasks: " + strings.Join(missing, ", ") + more +
			". Start one whose file has it; a function or a cron job may have it without being seen here.",
		Label: "Kinds", To: Path + "/kinds",
	}}
}

// mostNamed is how many things a finding names.
const mostNamed = 5

// paused looks for pauses that hold something back.
func (f *facts) paused() []finding {
	if f.Stats.Held == 0 {
		return nil
	}
	return []finding{{State: isWarn, Text: sentence(counted(f.Stats.Held, "due task") + " held back by pauses"), Label: "See what is held", To: Path + "/held"}}
}

// failures looks for what keeps failing.
func (f *facts) failures() []finding {
	var out []finding
	for _, k := range f.Failing() {
		out = append(out, finding{
			State: isBad, Text: fmt.Sprintf("%s of the %s of kind %s in the last hour failed.", percent(k.Failures, k.Runs), counted(k.Runs, "run"), short(k.Kind)),
			Do: "pause", Target: &core.Target{Kind: k.Kind},
		})
	}
	return out
}

// bounds looks for limits that let nothing in, and budgets that are used up.
func (f *facts) bounds() []finding {
	var out []finding
	for _, l := range inspect.Idle(f.Limits) {
		out = append(out, finding{
			State: isWarn, Text: fmt.Sprintf("%s in line for the limit on %s, and nothing of it runs.", counted(l.Waiting, "task"), l.About),
			Label: "Limits", To: Path + "/kinds",
		})
	}
	for _, b := range inspect.UsedUp(f.Budgets) {
		out = append(out, finding{
			State: isWarn, Text: fmt.Sprintf("The budget of %s %s is used up until %s; %s in line.", b.Amount, b.About, b.Ends.Time().UTC().Format("2 January 15:04 MST"),
				counted(b.Waiting, "task")),
			Label: "Budgets", To: Path + "/kinds",
		})
	}
	return out
}

// records looks for what was lost of records.
func (f *facts) records() []finding {
	var out []finding
	if n := f.Stats.Malformed; n > 0 {
		out = append(out, finding{State: isWarn, Text: sentence(counted(n, "damaged record") + " passed over"), Command: "duly audit"})
	}
	if f.Stats.TrimmedLately() {
		out = append(out, finding{
			State: isWarn, Text: counted(f.Stats.Trimmed, "finished task") + " dropped before the retention time ended: agents finished more tasks than kept allows. " +
				"Raise kept in the file of every process, or lower retention.",
		})
	}
	return out
}
