package cli

// The commands status, runs and logs, and how a task is named.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/logs"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
	"github.com/seed-6f6f2c11/duly/steps"
)

// named gives a command the arguments AGENT ID, of which --agent can name the first.
// The flag exists for scripts, where an agent that begins with a dash must not be taken for a flag.
func named(cmd *cobra.Command, agent *string) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs // taskNamed says it better
	cmd.Flags().StringVar(agent, "agent", "", "the agent, instead of the argument")
	return cmd
}

// taskNamed finds out which task is meant.
// It does not guess: two names or one name and --agent, and anything else is refused with both forms.
func taskNamed(agent string, args []string) (string, string, error) {
	switch {
	case agent == "" && len(args) == 2:
		return args[0], args[1], nil
	case agent != "" && len(args) == 1:
		return agent, args[0], nil
	default:
		return "", "", exit.Misuse("name it as AGENT ID, or as --agent AGENT ID", "expected an agent and the id of a task")
	}
}

// statusCommand shows the current task; explain gives reasons.
func statusCommand(o *command.Options) *cobra.Command {
	var agent string
	cmd := command.New("status [AGENT] ID", "Show one task", "  duly status ada nightly\n  duly status --agent ada nightly --json",
		func(cmd *cobra.Command, args []string) error {
			return withTask(cmd.Context(), o, agent, args, func(s command.Scheduler, agent, id string) error {
				task, err := s.Task(cmd.Context(), agent, id)
				if err != nil {
					return missing(err, agent, id)
				}
				return o.Print(task, func(w *table.Page) { printTask(w, &task) })
			})
		})
	return o.WithJSON(named(cmd, &agent))
}

// runsCommand shows the runs that the store keeps of a task: by default the last twenty.
func runsCommand(o *command.Options) *cobra.Command {
	var agent string
	cmd := command.New("runs [AGENT] ID", "Show the last runs of a task, oldest first", "  duly runs ada nightly\n  duly runs ada nightly --json",
		func(cmd *cobra.Command, args []string) error {
			return withTask(cmd.Context(), o, agent, args, func(s command.Scheduler, agent, id string) error {
				task, err := s.Task(cmd.Context(), agent, id)
				if err != nil {
					return missing(err, agent, id)
				}
				if task.Runs == nil {
					task.Runs = []model.TaskRun{}
				}
				answer := operation.Runs{Runs: task.Runs}
				return o.Print(answer, func(w *table.Page) { printRuns(w, task.Runs) })
			})
		})
	return o.WithJSON(named(cmd, &agent))
}

// logsCommand shows what runs have printed. Its output is that of the program: everything else goes to standard error.
func logsCommand(o *command.Options) *cobra.Command {
	var agent string
	var follow, before bool
	cmd := command.New("logs [AGENT] ID", "Show what the last run of a task has printed, as it comes with --follow", "  duly logs ada nightly\n  duly logs ada nightly --follow\n  duly logs ada nightly --previous     # of the run before",
		func(cmd *cobra.Command, args []string) error {
			if follow && before {
				return exit.Misuse("leave one of them out", "--follow and --previous exclude each other: the run before is over")
			}
			return withTask(cmd.Context(), o, agent, args, func(s command.Scheduler, agent, id string) error {
				if follow {
					return missing(followOutput(cmd.Context(), o, s, agent, id), agent, id)
				}
				return missing(showOutput(cmd.Context(), o, s, agent, id, before), agent, id)
			})
		})
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print what comes, until the run has ended; with --json a line for each piece")
	cmd.Flags().BoolVar(&before, "previous", false, "of the run before the last one that printed")
	return o.WithJSON(named(cmd, &agent))
}

// followOutput prints what comes, until the run has ended.
func followOutput(ctx context.Context, o *command.Options, s command.Scheduler, agent, id string) error {
	f := logs.Follower{
		Source: s, Agent: agent, ID: id, Retry: mayPass,
		Print: func(out *inspect.Output) error { return printOutput(o, out) },
		Begun: func(out *inspect.Output) {
			o.Say(fmt.Sprintf("attempt %d, %s:", out.Attempt, table.Clock(out.Started)))
		},
	}
	return f.Follow(ctx)
}

// showOutput prints what is there: of the last run that has printed, or of the one before.
func showOutput(ctx context.Context, o *command.Options, s command.Scheduler, agent, id string, before bool) error {
	out, err := s.Output(ctx, agent, id, inspect.OutputFrom{})
	switch {
	case err != nil:
		return err
	case before && out.Before == nil:
		f := exit.Misuse("see duly runs "+taskArgs(agent, id), "nothing is kept of a run before the last one that printed")
		f.Code = exit.NotFound
		return f
	case before:
		out.Printed, out.Before = *out.Before, nil
	case out.Run == 0 && !o.JSON:
		o.Say("no run of it has printed anything yet")
	}
	return printOutput(o, &out)
}

// mayPass reports whether an error of the store may be over in a moment.
func mayPass(err error) bool { return core.CodeOf(err) == core.CodeUnavailable }

// printOutput writes an output.
func printOutput(o *command.Options, out *inspect.Output) error {
	if o.JSON {
		return o.Print(out, nil)
	}
	return logs.Write(o.Stdout, out.Text)
}

// tasksNamed finds out which tasks of an agent are meant.
// Several ids may be named, but only of one agent: with the agent first, any number of ids can follow.
func tasksNamed(agent string, args []string) (string, []string, error) {
	if agent == "" && len(args) > 1 {
		agent, args = args[0], args[1:]
	}
	if agent == "" || len(args) == 0 {
		return "", nil, exit.Misuse("name them as AGENT ID..., or as --agent AGENT ID...", "expected an agent and one or more task ids")
	}
	return agent, args, nil
}

// withTask opens the store for something that is about one task.
func withTask(
	ctx context.Context, o *command.Options, agent string, args []string, do func(s command.Scheduler, agent, id string) error,
) error {
	agent, id, err := taskNamed(agent, args)
	if err != nil {
		return err
	}
	return o.OnStore(ctx, func(s command.Scheduler) error { return do(s, agent, id) })
}

// missing says which task was not found, and where to look.
// Any other error is returned unchanged, so that callers can wrap every call in it.
func missing(err error, agent, id string) error {
	if core.CodeOf(err) != core.CodeNotFound {
		return err
	}
	f := exit.Misuse("see duly list --agent "+table.ShellWord(agent), "agent %q has no task %q", agent, id)
	f.Code = exit.NotFound
	return f
}

// printTask leaves out what has no value: most fields of most tasks are empty.
func printTask(w *table.Page, info *core.TaskInfo) {
	t := table.New(w)
	// "0" is left out too, as counters are given as text.
	line := func(name, value string) {
		if value != "" && value != "0" {
			t.Row(name, value)
		}
	}
	line("agent", info.Agent)
	line("id", info.ID)
	line("kind", info.Kind)
	line("status", command.StatusOf(info))
	line("reason", info.Reason)
	for i := range info.Pauses {
		line("paused", pauseText(&info.Pauses[i]))
	}
	// Otherwise the time of cooling is over, or another reason decides.
	if command.StatusOf(info) == command.StatusCooling {
		line("cooling until", table.Clock(info.CoolingUntil))
	}
	line("group", info.Group)
	line("level", strconv.Itoa(int(info.Level)))
	if info.Every > 0 {
		line("every", info.Every.String())
	}
	if info.Cron != "" {
		line("cron", cronText(info))
	}
	printPolicies(line, info)
	line("payload", table.Value(info.Payload))
	printTimes(line, info)
	printCounts(line, info)
	line("last error", info.LastError)
	line("progress", table.Value(info.Progress))
	line("result", table.Value(info.Result))
	if _, ok := steps.ReadLog(info.Checkpoint); !ok {
		line("checkpoint", table.Value(info.Checkpoint))
	}
	line("tags", strings.Join(info.Tags, ", "))
	t.End()
	printSteps(w, info)
	if len(info.Runs) > 0 {
		_, _ = w.WriteString("\n")
		printRuns(w, info.Runs)
	}
}

// printTimes writes when what has happened to a task, and what is to.
func printTimes(line func(name, value string), info *core.TaskInfo) {
	line("submitted", table.Clock(info.Submitted))
	line("updated", table.Clock(info.UpdatedAt))
	line("last activity", table.Clock(info.LastActivity))
	line("last success", table.Clock(info.LastSuccess))
	line("due", table.Clock(info.Due))
	line("next run", table.Clock(info.NextRun))
	line("started", table.Clock(info.Started))
	line("finished", table.Clock(info.Finished))
}

// printCounts writes how often a task has been tried, and how that went.
func printCounts(line func(name, value string), info *core.TaskInfo) {
	if info.Attempt > 1 {
		line("attempt", strconv.Itoa(info.Attempt))
	}
	line("runs", strconv.FormatInt(info.RunCount, 10))
	line("errors", strconv.FormatInt(info.ErrorCount, 10))
	line("skips", strconv.FormatInt(info.SkipCount, 10))
	line("failed in a row", strconv.Itoa(info.ConsecutiveFailures))
	line("gate closed in a row", strconv.Itoa(info.GateClosed))
	line("crashes", strconv.Itoa(info.Crashes))
}

// printPolicies writes how the occurrences of a task follow one another, as far as it was said.
// A policy that is the default was not said, and is not shown.
func printPolicies(line func(name, value string), info *core.TaskInfo) {
	if info.Jitter > 0 {
		line("jitter", info.Jitter.String())
	}
	line("overlap", string(info.Overlap))
	line("misfire", string(info.Misfire))
	if info.MinInterval > 0 {
		line("min interval", info.MinInterval.String())
	}
	if info.Urgent {
		line("urgent", "true")
	}
	if info.ExpectSuccess > 0 {
		line("expect success", info.ExpectSuccess.String())
	}
	line("on late", info.OnLate)
	line("limit key", info.LimitKey)
	line("callback", info.Callback)
	line("callback task", info.CallbackTask)
	// An occurrence that runs as a task of its own, as overlap: allow makes one, names
	// the recurring task that it belongs to.
	line("one run of", info.Parent)
	line("submitted by", originText(info.Origin))
}

// printSteps writes what a task of steps has done, and what it does or waits for.
func printSteps(w *table.Page, info *core.TaskInfo) {
	log, ok := steps.ReadLog(info.Checkpoint)
	if !ok {
		return
	}
	_, _ = w.WriteString("\n")
	t := table.New(w, "STEP", "STATE", "AT", "TOOK", "USED")
	for _, r := range log.Rows(info) {
		if !r.Until.IsZero() {
			r.State += " until " + table.Clock(r.Until)
		}
		t.Row(table.First(r.Name), r.State, table.Clock(r.At), r.Took.String(), usageText(r.Used))
	}
	t.End()
}

// usageText is what was used, by unit.
func usageText(used core.Usage) string {
	parts := make([]string, 0, len(used))
	for _, unit := range slices.Sorted(maps.Keys(used)) {
		parts = append(parts, strconv.FormatFloat(used[unit], 'f', -1, 64)+" "+unit)
	}
	return strings.Join(parts, ", ")
}

// originText says which run has submitted a task; nothing if none has.
func originText(o *core.Origin) string {
	if o == nil {
		return ""
	}
	text := fmt.Sprintf("a run of task %s of agent %s", o.By.ID, o.By.Agent)
	if o.Root != o.By {
		text += fmt.Sprintf(", at depth %d below task %s of agent %s", o.Depth, o.Root.ID, o.Root.Agent)
	}
	return text
}

// printRuns writes the runs of a task, oldest first as the store has them.
func printRuns(w *table.Page, runs []model.TaskRun) {
	if len(runs) == 0 {
		_, _ = w.WriteString("no runs yet\n")
		return
	}
	t := table.New(w, "STARTED", "TOOK", "ATTEMPT", "OUTCOME", "PROCESS", "ERROR")
	for i := range runs {
		r := &runs[i]
		process := table.First(r.Process)
		if r.Outcome == model.OutcomeCrashed && r.Process != "" { // who it died with is not known
			process = "taken over by " + process
		}
		t.Row(table.Clock(r.Started), r.Duration.Round(time.Millisecond).String(), strconv.Itoa(r.Attempt), string(r.Outcome), process, table.First(r.Error))
	}
	t.End()
}
