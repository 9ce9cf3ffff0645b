package cli

// The command explain.

import (
	"cmp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// explainCommand prints the sentences of core, which are the same in the HTTP API.
func explainCommand(o *command.Options) *cobra.Command {
	var agent string
	cmd := command.New("explain [AGENT] ID", "Explain why a task has not run, or what it is doing", "  duly explain ada nightly\n  duly explain ada nightly --json",
		func(cmd *cobra.Command, args []string) error {
			return withTask(cmd.Context(), o, agent, args, func(s command.Scheduler, agent, id string) error {
				e, err := s.Explain(cmd.Context(), agent, id)
				if err != nil {
					return missing(err, agent, id)
				}
				return o.Print(e, func(w *table.Page) { printExplanation(w, &e) })
			})
		})
	return o.WithJSON(named(cmd, &agent))
}

// printExplanation writes the reasons first, then what can be done, then what the task is like.
// A person asks because something does not happen, so the answer comes before the details.
func printExplanation(w *table.Page, e *inspect.Explanation) {
	for _, because := range e.Reasons {
		w.Text("%s", because.Text)
	}
	info := &e.Task
	for _, todo := range wayOut(e) {
		w.Line("  %s", todo)
	}
	w.Line("")
	t := table.New(w)
	t.Row("status", command.StatusOf(info))
	if info.Cron != "" {
		t.Row("cron", cronText(info))
	}
	t.Row("due", table.Clock(info.NextRun))
	for i := range info.Pauses {
		t.Row("paused", pauseText(&info.Pauses[i]))
	}
	// The outcome, then the error, if any; without one the trailing colon is cut.
	if !info.LastRun.IsZero() {
		t.Row("last run", strings.TrimSuffix(table.Clock(info.LastRun)+", "+string(info.LastOutcome)+": "+table.First(info.LastError), ": "))
	} else {
		t.Row("last run", cmp.Or(string(info.LastOutcome), "none"))
	}
	if text := originText(info.Origin); text != "" {
		t.Row("submitted by", text)
	}
	t.End()
	printSteps(w, info)
}

// wayOut are the commands that change what keeps a task from running.
// Each is a whole command line with its arguments quoted, to be copied.
func wayOut(e *inspect.Explanation) []string {
	var commands []string
	info := &e.Task
	// Each pause has a target of its own, which may be wider than the task.
	for i := range info.Pauses {
		commands = append(commands, "to resume: duly resume "+targetArgs(info.Pauses[i].Target))
	}
	everything := slices.ContainsFunc(info.Pauses, func(p model.PauseInfo) bool { return p.Target == core.Target{} })
	switch {
	case info.Status == core.StatusFailed:
		commands = append(commands, "to run it again: duly replay "+taskArgs(info.Agent, info.ID))
	case everything: // then it cannot be run now
	// Running it now is no way out for a task that lacks a handler or waits for its
	// turn: it would not start any sooner.
	case len(info.Pauses) > 0 && info.Status == core.StatusWaiting, e.Reasons[0].Code == model.BecauseCooling,
		e.Reasons[0].Code == model.BecauseNotDue, e.Reasons[0].Code == model.BecauseRetry, e.Reasons[0].Code == model.BecauseFailing:
		commands = append(commands, "to run it now: duly run "+taskArgs(info.Agent, info.ID))
	case e.Reasons[0].Code == model.BecauseGate:
		commands = append(commands, "to ask its gate now: duly run "+taskArgs(info.Agent, info.ID))
	}
	return commands
}
