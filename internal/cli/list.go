package cli

// The command list, and the status of a task for people.

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// listCommand lists the tasks of an agent, or of all agents: their dead letters, what runs, what is overdue, and all that is live.
func listCommand(o *command.Options) *cobra.Command {
	var c chosen
	cmd := command.New("list", "List the tasks of an agent, or those of all agents that have failed or are live",
		"  duly list --agent ada\n  duly list --status failed --since 1d --kind digest\n  duly list --status in_progress --json\n  duly list --overdue\n  duly list --held",
		func(cmd *cobra.Command, _ []string) error {
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				l, err := c.read(cmd.Context(), s)
				if err != nil {
					return err
				}
				if l.Held && l.Cursor == "" && !cmd.Flags().Changed("limit") {
					return listHeld(cmd.Context(), o, s, l)
				}
				tasks, next, err := s.Tasks(cmd.Context(), l)
				if err != nil {
					return err
				}
				if tasks == nil {
					tasks = []core.TaskInfo{}
				}
				answer := operation.Tasks{Tasks: tasks, Next: next}
				return o.Print(answer, func(w *table.Page) { printTasks(w, tasks, next, l.Agent == "") })
			})
		})
	c.flags(cmd)
	cmd.Flags().BoolVar(&c.list.Held, "held", false, "only those that are due and cannot start: all of them, grouped by what holds them, with counts; with --limit or --cursor a page of tasks")
	cmd.Flags().BoolVar(&c.list.Late, "late", false, "only those that have not succeeded within the time of expect_success, and what keeps each from it")
	cmd.Flags().BoolVar(&c.list.Asking, "asking", false, "only those that wait for a person: see duly approvals")
	cmd.Flags().IntVar(&c.list.Limit, "limit", 0, "maximum number of tasks, up to 1000 (default 100)")
	return o.WithWatch(o.WithJSON(cmd))
}

// printTasks writes a page of tasks, with their agents if they are of several; the first line of the last error is enough to know where to look.
func printTasks(w *table.Page, tasks []core.TaskInfo, next string, all bool) {
	if len(tasks) == 0 {
		if next == "" {
			w.Line("no tasks")
		} else {
			w.Line("no tasks among those that were looked at")
			printNext(w, next)
		}
		return
	}
	var of []string
	if all {
		of = []string{"AGENT"}
	}
	if tasks[0].HeldBy != nil { // of late tasks some may run
		printHeld(w, tasks, next)
		return
	}
	if all && !tasks[0].LeaseUntil.IsZero() {
		printRunning(w, tasks, next)
		return
	}
	when := "DUE"
	if all && tasks[0].Status.Finished() { // these come by when they ended
		when = "ENDED"
	}
	t := table.New(w, append(of, "ID", "KIND", "STATUS", when, "RUNS", "ERRORS", "LAST ERROR")...)
	for i := range tasks {
		info := &tasks[i]
		// A task that has ended has no next run, and shows when it was due.
		due := info.NextRun
		switch {
		case when == "ENDED":
			due = info.Finished
		case due.IsZero():
			due = info.Due
		}
		if all {
			of = []string{info.Agent}
		}
		t.Row(append(of, info.ID, info.Kind, command.StatusOf(info), table.Clock(due), strconv.FormatInt(info.RunCount, 10),
			strconv.FormatInt(info.ErrorCount, 10), table.First(info.LastError))...)
	}
	t.End()
	printNext(w, next)
}

// printRunning writes a page of tasks of all agents that run: in which process, and until when it holds them if it says nothing more.
func printRunning(w *table.Page, tasks []core.TaskInfo, next string) {
	t := table.New(w, "AGENT", "ID", "KIND", "STATUS", "PROCESS", "LEASE UNTIL")
	for i := range tasks {
		info := &tasks[i]
		t.Row(info.Agent, info.ID, info.Kind, command.StatusOf(info), cmp.Or(info.Holder, "-"), table.Clock(info.LeaseUntil))
	}
	t.End()
	printNext(w, next)
}

// heldGroup are the tasks that one thing holds.
type heldGroup struct {
	Code     model.BecauseCode `json:"code"`
	About    string            `json:"about,omitempty"` // what holds them; empty for tasks that are held each by itself
	Text     string            `json:"because"`         // of the one that has been due for the longest time
	Tasks    int               `json:"tasks"`
	Agents   int               `json:"agents"`
	Since    string            `json:"due_since"`
	Examples []core.TaskInfo   `json:"examples"`

	agents map[string]bool
	since  time.Time
}

// heldExamples is how many tasks of a group are shown.
const heldExamples = 3

// add counts a task in the group.
func (g *heldGroup) add(t *core.TaskInfo) {
	g.Tasks++
	g.agents[t.Agent] = true
	if g.since.IsZero() || t.NextRun.Before(g.since) {
		g.since, g.Text = t.NextRun, t.HeldBy.Text
	}
	if len(g.Examples) < heldExamples {
		g.Examples = append(g.Examples, *t)
	}
}

// heldGroups are all tasks that are held, by what holds them: the most tasks first. It reads all pages.
func heldGroups(ctx context.Context, s command.Scheduler, l core.List) (groups []*heldGroup, held int, err error) {
	type key struct {
		code  model.BecauseCode
		about string
	}
	found := map[key]*heldGroup{}
	for l.Limit = inspect.MaxPage; ; {
		tasks, next, err := s.Tasks(ctx, l)
		if err != nil {
			return nil, 0, err
		}
		for i := range tasks {
			t := &tasks[i]
			k := key{t.HeldBy.Code, t.HeldBy.About}
			if found[k] == nil {
				found[k] = &heldGroup{Code: k.code, About: k.about, agents: map[string]bool{}}
			}
			found[k].add(t)
		}
		if held, l.Cursor = held+len(tasks), next; next == "" {
			break
		}
	}
	groups = slices.AppendSeq([]*heldGroup{}, maps.Values(found))
	for _, g := range groups {
		g.Agents, g.Since = len(g.agents), table.Clock(g.since)
	}
	slices.SortFunc(groups, func(a, b *heldGroup) int {
		return cmp.Or(cmp.Compare(b.Tasks, a.Tasks), cmp.Compare(a.Code, b.Code), cmp.Compare(a.About, b.About))
	})
	return groups, held, nil
}

// listHeld prints all tasks that are held, grouped by what holds them.
func listHeld(ctx context.Context, o *command.Options, s command.Scheduler, l core.List) error {
	groups, held, err := heldGroups(ctx, s, l)
	if err != nil {
		return err
	}
	answer := struct {
		Held   int          `json:"held"`
		Groups []*heldGroup `json:"groups"`
	}{held, groups}
	return o.Print(answer, func(w *table.Page) { printHeldGroups(w, groups, held) })
}

// printHeldGroups writes what holds tasks, how many, and some of them.
func printHeldGroups(w *table.Page, groups []*heldGroup, held int) {
	if held == 0 {
		w.Line("no tasks")
		return
	}
	w.Line("%s held, for %s:", table.Count(held, "due task"), table.Count(len(groups), "reason"))
	for _, g := range groups {
		w.Line("")
		w.Line("%s of %s: %s", table.Count(g.Tasks, "task"), table.Count(g.Agents, "agent"), g.Text)
		if todo := heldTodo[g.Code]; todo != "" {
			w.Line("  %s", todo)
		}
		t := table.New(w, "AGENT", "ID", "KIND", "DUE")
		for i := range g.Examples {
			info := &g.Examples[i]
			t.Row(info.Agent, info.ID, info.Kind, table.Clock(info.NextRun))
		}
		t.End()
		if more := g.Tasks - len(g.Examples); more > 0 {
			w.Line("and %d more: duly list --held --limit 1000 has each", more)
		}
	}
}

// heldTodo says which commands show and change what holds tasks.
var heldTodo = map[model.BecauseCode]string{
	model.BecausePaused:    "duly pauses lists what is paused, with the commands that resume it",
	model.BecauseNoHandler: "duly kinds shows which processes run which kinds",
	model.BecauseLimited:   "duly limit list shows the limits, duly limit set changes one",
	model.BecauseBudget:    "duly budget list shows the budgets, duly budget set raises one",
}

// printHeld writes a page of tasks that cannot start, and why.
func printHeld(w *table.Page, tasks []core.TaskInfo, next string) {
	t := table.New(w, "AGENT", "ID", "KIND", "DUE", "BECAUSE")
	for i := range tasks {
		info, why := &tasks[i], ""
		if info.HeldBy != nil {
			why = info.HeldBy.Text
		}
		t.Row(info.Agent, info.ID, info.Kind, table.Clock(info.NextRun), why)
	}
	t.End()
	printNext(w, next)
}

// printNext says how to get the page after this one, if there is one.
func printNext(w *table.Page, next string) {
	if next != "" {
		w.Line("more: --cursor %s", table.ShellWord(next))
	}
}
