package cli

// The commands run, cancel, delete and replay.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// runCommand goes past a pause on purpose: the operator names this one task and
// wants it now. Overlap rules still hold.
func runCommand(o *command.Options) *cobra.Command {
	var agent string
	cmd := command.New("run [AGENT] ID", "Make a waiting task due now, even if it is paused", "  duly run ada nightly",
		func(cmd *cobra.Command, args []string) error {
			return withTask(cmd.Context(), o, agent, args, func(s command.Scheduler, agent, id string) error {
				if _, err := s.RunNow(cmd.Context(), agent, id); err != nil {
					return missing(err, agent, id)
				}
				return printChanged(cmd.Context(), o, s, agent, id, func(task *core.TaskInfo) string {
					// The run under way is not disturbed: what was ordered becomes due when it ends.
					if task.Status == core.StatusInProgress {
						return "is running, and will run again when this run has ended"
					}
					return "is due now"
				})
			})
		})
	return o.WithJSON(named(cmd, &agent))
}

// cancelCommand asks a run in progress to stop by cancelling its context; its
// process is notified at its next heartbeat.
func cancelCommand(o *command.Options) *cobra.Command {
	var agent string
	var by core.Order
	cmd := command.New("cancel [AGENT] ID", "Cancel a task for good; a run in progress is asked to stop",
		"  duly cancel ada nightly --reason \"not needed any more\"",
		func(cmd *cobra.Command, args []string) error {
			return withTask(cmd.Context(), o, agent, args, func(s command.Scheduler, agent, id string) error {
				if _, err := s.Cancel(cmd.Context(), agent, id, by); err != nil {
					return missing(err, agent, id)
				}
				return printChanged(cmd.Context(), o, s, agent, id, func(task *core.TaskInfo) string {
					if task.Status == core.StatusInProgress {
						return "is running: it was asked to stop, and will then be cancelled"
					}
					return "is " + string(task.Status)
				})
			})
		})
	flags := cmd.Flags()
	flags.StringVar(&by.Reason, "reason", "", "why, for people")
	// The name of the user is stored with the order, so that others see who gave it.
	flags.StringVar(&by.By, "by", userName(), "who you are; at a server a note beside its credential")
	command.ZeroMeans(cmd, "reason", "by")
	return o.WithJSON(named(cmd, &agent))
}

// printChanged writes a task after a change; what formats it.
// The task is read again after the change, so that the output shows what
// other readers now see.
func printChanged(
	ctx context.Context, o *command.Options, s command.Scheduler, agent, id string, what func(task *core.TaskInfo) string,
) error {
	task, err := s.Task(ctx, agent, id)
	if err != nil {
		return missing(err, agent, id)
	}
	return o.Print(task, func(w *table.Page) { w.Line("%s %s", targetName(core.Target{Agent: agent, ID: id}), what(&task)) })
}

// deleteCommand takes several ids, each of which is deleted by itself: a
// wrong one does not stop the others. More than one are counted first, unless the caller has agreed.
func deleteCommand(o *command.Options) *cobra.Command {
	var agent string
	var yes bool
	cmd := command.New("delete [AGENT] ID...", "Delete tasks and their history; more than one are counted first, and deleted with --yes",
		"  duly delete ada nightly\n  duly delete ada one two three --yes",
		func(cmd *cobra.Command, args []string) error {
			agent, ids, err := tasksNamed(agent, args)
			if err != nil {
				return err
			}
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				if len(ids) > 1 && !yes {
					return countDelete(cmd.Context(), o, s, agent, ids)
				}
				return each(agent, ids, func(id string) error {
					if err := s.Delete(cmd.Context(), agent, id); err != nil {
						return err
					}
					answer := operation.DeletedTask{Agent: agent, ID: id, Deleted: true}
					return o.Print(answer, func(w *table.Page) { w.Line("deleted: %s", targetName(core.Target{Agent: agent, ID: id})) })
				})
			})
		})
	cmd.Flags().BoolVar(&yes, "yes", false, "delete them; without it more than one are counted first")
	return o.WithJSON(named(cmd, &agent))
}

// countDelete says how many of some tasks of an agent exist, and deletes none. An id that is named twice is one task.
func countDelete(ctx context.Context, o *command.Options, s command.Scheduler, agent string, ids []string) error {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	ids = slices.Compact(ids)
	answer := struct {
		Agent   string `json:"agent_id"`
		Matched int    `json:"matched"`
		Dry     bool   `json:"dry_run"`
	}{Agent: agent, Dry: true}
	missed := each(agent, ids, func(id string) error {
		_, err := s.Task(ctx, agent, id)
		if err == nil {
			answer.Matched++
		}
		return err
	})
	if _, absent := errors.AsType[*exit.Failure](missed); missed != nil && !absent {
		return missed
	}
	return errors.Join(o.Print(answer, func(w *table.Page) {
		w.Line("%s of agent %s would be deleted: add --yes to do it", table.Count(answer.Matched, "task"), table.ShellWord(agent))
	}), missed)
}

// replayCommand makes failed tasks waiting again, with all their attempts.
func replayCommand(o *command.Options) *cobra.Command {
	var agent, text string
	var all bool
	cmd := command.New("replay [AGENT] ID...", "Retry failed tasks now", "  duly replay ada nightly\n  duly replay ada nightly --payload '{\"text\":\"hi\"}'\n  duly replay ada --all",
		func(cmd *cobra.Command, args []string) error {
			var ids []string
			var payload json.RawMessage
			var err error
			switch {
			case all && text != "":
				err = exit.Misuse("name the tasks that are to have it", "--payload is not for --all")
			// Either names tasks or the whole agent: an id next to --all is
			// more likely a mistake than a wish.
			case !all:
				agent, ids, err = tasksNamed(agent, args)
			case agent == "" && len(args) == 1:
				agent = args[0]
			case agent == "" || len(args) > 0:
				err = exit.Misuse("name it as AGENT --all", "--all takes an agent and no ids")
			}
			if err == nil && text != "" {
				payload, err = rawJSON("payload", text, o.Stdin)
			}
			if err != nil {
				return err
			}
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				one := func(id string) error { return replay(cmd.Context(), o, s, agent, id, payload) }
				if !all {
					return each(agent, ids, one)
				}
				return replayAll(cmd.Context(), o, s, agent, one)
			})
		})
	cmd.Flags().BoolVar(&all, "all", false, "all failed tasks of the agent")
	cmd.Flags().StringVar(&text, "payload", "", "another payload, as JSON; - for standard input")
	return o.WithJSON(named(cmd, &agent))
}

// replay replays one task, with another payload if there is one, and prints it.
func replay(ctx context.Context, o *command.Options, s command.Scheduler, agent, id string, payload json.RawMessage) error {
	if _, err := s.ReplayWith(ctx, agent, id, payload); err != nil {
		return err
	}
	return printChanged(ctx, o, s, agent, id, func(*core.TaskInfo) string { return "will be retried now" })
}

// replayAll replays the failed tasks of an agent, page by page. A task that was deleted or replayed in
// the meantime is skipped, as nothing is left to do for it.
func replayAll(ctx context.Context, o *command.Options, s command.Scheduler, agent string, replay func(id string) error) error {
	failed := core.List{Agent: agent, Status: []core.Status{core.StatusFailed}, Limit: inspect.MaxPage}
	// Each page begins after the last one's cursor: replayed tasks leave the list while it is read.
	for found := false; ; found = true {
		tasks, next, err := s.Tasks(ctx, failed)
		if err != nil {
			return err
		}
		if len(tasks) == 0 && !found && !o.JSON {
			o.Say("agent " + table.ShellWord(agent) + " has no failed tasks")
		}
		for i := range tasks {
			err := replay(tasks[i].ID)
			if code := core.CodeOf(err); err != nil && code != core.CodeNotFound && code != core.CodeConflict {
				return err
			}
		}
		if failed.Cursor = next; next == "" {
			return nil
		}
	}
}

// each does something with each of the named tasks of an agent. One that does not exist or is in the
// wrong state does not keep the others from it; an error of the store ends it, as the rest would fail
// alike. The first refusal is reported, with the number of the others.
func each(agent string, ids []string, do func(id string) error) error {
	var first error
	refused := 0
	for _, id := range ids {
		err := do(id)
		switch core.CodeOf(err) {
		case "":
		case core.CodeNotFound, core.CodeConflict:
			if refused++; first == nil {
				first = missing(err, agent, id)
			}
		default:
			return err
		}
	}
	// One refusal is its own error; several share a line.
	if refused < 2 {
		return first
	}
	if f, ok := errors.AsType[*exit.Failure](first); ok {
		f.Why = fmt.Errorf("%w, and %d more were refused", f.Why, refused-1)
		return f
	}
	return fmt.Errorf("%w, and %d more were refused", first, refused-1)
}
