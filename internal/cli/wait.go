package cli

// The command wait.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// Pauses between two looks at a task that is waited for: each twice as long as the one before, as a server that waits for a caller does it.
const (
	firstLook = 100 * time.Millisecond
	lastLook  = 2 * time.Second
)

// waitCommand waits for the ends of tasks, in the order in which they are named, and prints each.
func waitCommand(o *command.Options) *cobra.Command {
	var agent string
	var within time.Duration
	cmd := command.New("wait [AGENT] ID...", "Wait for the end of tasks, of one that recurs for its next run; exit code 4 if one has failed or was cancelled",
		"  duly wait ada report-17\n  duly wait ada one two three --timeout 10m --json",
		func(cmd *cobra.Command, args []string) error {
			agent, ids, err := tasksNamed(agent, args)
			if err != nil {
				return err
			}
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				w := waiter{o: o, s: s, within: within}
				for _, id := range ids {
					w.tasks = append(w.tasks, waited{agent: agent, id: id, runs: -1})
				}
				return w.wait(cmd.Context())
			})
		})
	command.DurationVar(cmd.Flags(), &within, "timeout", 0, "how long to wait; exit code 5 if a task has not ended by then (default: until all have ended)")
	return o.WithJSON(named(cmd, &agent))
}

// waitFor waits for the ends of tasks that were submitted, and prints them.
func waitFor(ctx context.Context, o *command.Options, s command.Scheduler, placed []core.Submitted, within time.Duration) error {
	w := waiter{o: o, s: s, within: within}
	for i := range placed {
		t := waited{agent: placed[i].Agent, id: placed[i].ID, runs: -1}
		if placed[i].Created { // its first run may have ended already
			t.runs = 0
		}
		w.tasks = append(w.tasks, t)
	}
	return w.wait(ctx)
}

// waiter waits for the ends of some tasks.
type waiter struct {
	o      *command.Options
	s      command.Scheduler
	tasks  []waited
	within time.Duration // zero for as long as it takes
}

// waited is a task that is waited for, and after how many runs one that recurs is: -1 for those that it has at the first look.
type waited struct {
	agent, id string
	runs      int64
}

// wait prints each task once it has ended. The first failure of a task is returned when all have ended.
func (w *waiter) wait(ctx context.Context) error {
	limited := ctx
	if w.within > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, w.within)
		defer cancel()
	}
	var first *exit.Failure
	failed := 0
	for _, t := range w.tasks {
		task, err := w.end(limited, t)
		if err != nil && limited.Err() != nil && ctx.Err() == nil { // its time is over, and not that of the command
			name := table.ShellWord(t.agent) + " " + table.ShellWord(t.id)
			return &exit.Failure{
				Why: fmt.Errorf("%s has not ended within %s", targetName(core.Target{Agent: t.agent, ID: t.id}), w.within), Code: exit.Away,
				Todo: "wait again with duly wait " + name + ", or see duly explain " + name,
			}
		}
		if err != nil {
			return missing(err, t.agent, t.id)
		}
		why := notDone(&task)
		if err := w.o.Print(task, func(page *table.Page) { page.Line("%s", endText(&task, why)) }); err != nil {
			return err
		}
		if why == "" {
			continue
		}
		if failed++; first == nil {
			first = &exit.Failure{
				Why: errors.New(endText(&task, why)), Code: exit.RunsFailed, Kind: core.CodeRunsFailed,
				Todo: "see duly explain " + table.ShellWord(t.agent) + " " + table.ShellWord(t.id),
			}
		}
	}
	if first == nil {
		return nil
	}
	if failed > 1 {
		first.Why = fmt.Errorf("%w, and %d more did not complete", first.Why, failed-1)
	}
	return first
}

// end waits for the end of a task, or of the next run of one that recurs.
func (w *waiter) end(ctx context.Context, t waited) (core.TaskInfo, error) {
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		task, err := w.s.Task(ctx, t.agent, t.id)
		if t.runs < 0 {
			t.runs = task.RunCount
		}
		if err != nil || task.Status.Finished() || task.Recurring() && task.RunCount > t.runs {
			return task, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return task, ctx.Err()
		}
	}
}

// notDone says why a task that has ended has not done its work; empty if it has.
func notDone(task *core.TaskInfo) string {
	switch {
	case task.Status == core.StatusCompleted:
		return ""
	case task.Status.Finished():
		return cmp.Or(table.First(task.LastError), task.Reason, "no reason was given")
	case task.LastOutcome == model.OutcomeSuccess:
		return ""
	default:
		return cmp.Or(table.First(task.LastError), string(task.LastOutcome))
	}
}

// endText says how a task has ended, or the last run of one that recurs.
func endText(task *core.TaskInfo, why string) string {
	how := string(task.Status)
	if !task.Status.Finished() {
		how = "ran"
	}
	text := targetName(core.Target{Agent: task.Agent, ID: task.ID}) + " " + how
	if value := table.Value(task.Result); why == "" && value != "" {
		return text + ": " + value
	}
	if why != "" {
		return text + ": " + why
	}
	return text
}
