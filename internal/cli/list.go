package cli

// The command list, and the status of a task for people.

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// listCommand lists tasks of one agent: there is no index over all of them, which keeps agents apart.
func (p *process) listCommand(o *options) *cobra.Command {
	var l core.List
	var statuses, labels []string
	cmd := command("list", "List the tasks of an agent",
		"  duly list --agent ada\n  duly list --agent ada --status failed --json",
		func(cmd *cobra.Command, _ []string) error {
			// An unknown status is core's to refuse, with the ones that exist.
			for _, s := range statuses {
				l.Status = append(l.Status, core.Status(s))
			}
			var err error
			if l.Labels, err = labelsOf(labels); err != nil {
				return err
			}
			return o.onStore(cmd.Context(), func(s *core.Scheduler) error {
				tasks, next, err := s.Tasks(cmd.Context(), l)
				if err != nil {
					return err
				}
				if tasks == nil {
					tasks = []core.TaskInfo{}
				}
				answer := struct {
					Tasks []core.TaskInfo `json:"tasks"`
					Next  string          `json:"next_cursor"`
				}{tasks, next}
				return o.print(p.stdout, answer, func(w *table.Page) { printTasks(w, tasks, next) })
			})
		})
	flags := cmd.Flags()
	flags.StringVar(&l.Agent, "agent", "", "the agent (required)")
	flags.StringSliceVar(&statuses, "status", nil, "only these: waiting, in_progress, completed, failed, cancelled")
	flags.StringVar(&l.Kind, "kind", "", "only this kind")
	flags.StringVar(&l.Group, "group", "", "only this group")
	flags.StringArrayVar(&labels, "label", nil, "only those with this label, as name=value; can be given several times")
	flags.IntVar(&l.Limit, "limit", 0, "maximum number of tasks, up to 1000 (default 100)")
	flags.StringVar(&l.Cursor, "cursor", "", "continue after the previous page (its cursor)")
	return o.withJSON(cmd)
}

// printTasks writes a page of tasks; the first line of the last error is enough to know where to look.
func printTasks(w *table.Page, tasks []core.TaskInfo, next string) {
	if len(tasks) == 0 {
		_, _ = w.WriteString("no tasks\n")
		return
	}
	t := table.New(w, "ID", "KIND", "STATUS", "DUE", "RUNS", "ERRORS", "LAST ERROR")
	for i := range tasks {
		info := &tasks[i]
		// A task that has ended has no next run, and shows when it was due.
		due := info.NextRun
		if due.IsZero() {
			due = info.Due
		}
		t.Row(info.ID, info.Kind, statusOf(info), clock(due), strconv.FormatInt(info.RunCount, 10),
			strconv.FormatInt(info.ErrorCount, 10), table.First(info.LastError))
	}
	t.End()
	printNext(w, next)
}

// printNext says how to get the page after this one, if there is one.
func printNext(w *table.Page, next string) {
	if next != "" {
		_, _ = w.WriteString("more: --cursor " + table.ShellWord(next) + "\n")
	}
}

// What keeps a waiting task from its time, or a running one from going on, for people.
const (
	statusPaused  = "paused"
	statusParked  = "parked"  // no process that claims has a handler
	statusResting = "resting" // it waits for activity
	statusAwaits  = "signal"  // it waits for one
	statusCooling = "cooling" // it failed too often
	statusEnding  = "ending"  // it was cancelled while it ran, and has not ended yet
)

// statusOf is the status of a task for people: of a waiting one, what it waits for, unless that is its time.
// The order is from the strongest reason to the weakest: a task may be paused and parked at once.
func statusOf(t *core.TaskInfo) string {
	switch {
	case t.Ending:
		return statusEnding
	case t.Status != core.StatusWaiting:
		return string(t.Status)
	case len(t.Pauses) > 0:
		return statusPaused
	case t.Parked:
		return statusParked
	case t.Resting:
		return statusResting
	case t.Awaiting != nil:
		return statusAwaits
	// Cooling matters only as long as it decides the next run.
	case !t.CoolingUntil.IsZero() && !t.CoolingUntil.Before(t.NextRun):
		return statusCooling
	default:
		return string(t.Status)
	}
}
