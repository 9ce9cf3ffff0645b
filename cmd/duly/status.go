package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
)

// named gives a command the arguments AGENT ID, of which --agent can name the first.
func named(cmd *cobra.Command, agent *string) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs // taskNamed says it better
	cmd.Flags().StringVar(agent, "agent", "", "the agent, instead of the argument")
	return cmd
}

// taskNamed finds out which task is meant.
func taskNamed(agent string, args []string) (string, string, error) {
	switch {
	case agent == "" && len(args) == 2:
		return args[0], args[1], nil
	case agent != "" && len(args) == 1:
		return agent, args[0], nil
	default:
		return "", "", usage("name it as AGENT ID, or as --agent AGENT ID", "it takes an agent and the id of a task")
	}
}

func (p *process) statusCommand(o *options) *cobra.Command {
	var agent string
	cmd := command("status [AGENT] ID", "Show one task", "  duly status ada nightly\n  duly status --agent ada nightly --json",
		func(cmd *cobra.Command, args []string) error {
			return withTask(cmd.Context(), o, agent, args, func(s *core.Scheduler, agent, id string) error {
				task, err := s.Task(cmd.Context(), agent, id)
				if err != nil {
					return missing(err, agent, id)
				}
				return o.print(p.stdout, task, func(w *page) { printTask(w, &task) })
			})
		})
	return o.withJSON(named(cmd, &agent))
}

func (p *process) replayCommand(o *options) *cobra.Command {
	var agent string
	cmd := command("replay [AGENT] ID", "Make a failed task live again, due now", "  duly replay ada nightly",
		func(cmd *cobra.Command, args []string) error {
			return withTask(cmd.Context(), o, agent, args, func(s *core.Scheduler, agent, id string) error {
				if _, err := s.Replay(cmd.Context(), agent, id); err != nil {
					return missing(err, agent, id)
				}
				task, err := s.Task(cmd.Context(), agent, id)
				if err != nil {
					return err
				}
				return o.print(p.stdout, task, func(w *page) { printTask(w, &task) })
			})
		})
	return o.withJSON(named(cmd, &agent))
}

// withTask opens the store for something that is about one task.
func withTask(
	ctx context.Context, o *options, agent string, args []string, do func(s *core.Scheduler, agent, id string) error,
) error {
	agent, id, err := taskNamed(agent, args)
	if err != nil {
		return err
	}
	c, err := loadConfig(ctx, o)
	if err != nil {
		return err
	}
	s, store, err := c.scheduler(ctx)
	if err != nil {
		return err
	}
	defer store.end()
	return do(s, agent, id)
}

// missing says which task was not found, and where to look.
func missing(err error, agent, id string) error {
	if core.CodeOf(err) != core.CodeNotFound {
		return err
	}
	f := usage("see duly list --agent "+strconv.Quote(agent), "the agent %q has no task %q", agent, id)
	f.code = exitNotFound
	return f
}

func printTask(w *page, info *core.TaskInfo) {
	t := newTable(w)
	line := func(name, value string) {
		if value != "" && value != "0" {
			t.row(name, value)
		}
	}
	line("agent", info.Agent)
	line("id", info.ID)
	line("kind", info.Kind)
	line("status", statusOf(info))
	line("reason", info.Reason)
	line("group", info.Group)
	line("level", strconv.Itoa(int(info.Level)))
	if info.Every > 0 {
		line("every", info.Every.String())
	}
	line("cron", strings.TrimSpace(info.Cron+" "+info.Zone))
	line("payload", string(info.Payload))
	line("submitted", clock(info.Submitted))
	line("due", clock(info.Due))
	line("next run", clock(info.NextRun))
	line("started", clock(info.Started))
	line("finished", clock(info.Finished))
	line("runs", strconv.FormatInt(info.RunCount, 10))
	line("errors", strconv.FormatInt(info.ErrorCount, 10))
	line("crashes", strconv.Itoa(info.Crashes))
	line("last error", info.LastError)
	line("progress", string(info.Progress))
	line("result", string(info.Result))
	line("tags", strings.Join(info.Tags, ", "))
	t.end()
	printRuns(w, info.Runs)
}

func printRuns(w *page, runs []core.TaskRun) {
	if len(runs) == 0 {
		return
	}
	_, _ = w.WriteString("\n")
	t := newTable(w, "STARTED", "TOOK", "ATTEMPT", "OUTCOME", "ERROR")
	for i := range runs {
		r := &runs[i]
		t.row(clock(r.Started), r.Duration.Round(time.Millisecond).String(), strconv.Itoa(r.Attempt), string(r.Outcome), firstOf(r.Error))
	}
	t.end()
}
