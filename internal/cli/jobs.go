package cli

// The commands jobs, agents and top.

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/events"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
	"github.com/seed-6f6f2c11/duly/internal/cli/top"
)

// jobsCommand is a list of the tasks that come again, with what happened last and what comes next.
func jobsCommand(o *command.Options) *cobra.Command {
	l := core.List{Jobs: true}
	var labels []string
	cmd := command.New("jobs [AGENT]", "List the recurring tasks of an agent, or of all agents",
		"  duly jobs\n  duly jobs ada --kind digest --json\n  duly jobs --label tier=gold",
		func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && l.Agent == "" {
				l.Agent, args = args[0], nil
			}
			if len(args) > 0 {
				return exit.Misuse("name it as AGENT, or as --agent AGENT", "expected an agent")
			}
			var err error
			if l.Labels, err = labelsOf(labels); err != nil {
				return err
			}
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				jobs, next, err := s.Tasks(cmd.Context(), l)
				if err != nil {
					return err
				}
				// JSON has an empty array, not null, so that programs need no case for it.
				if jobs == nil {
					jobs = []core.TaskInfo{}
				}
				answer := operation.Jobs{Jobs: jobs, Next: next}
				return o.Print(answer, func(w *table.Page) { printJobs(w, jobs, next, l.Agent == "") })
			})
		})
	named(cmd, &l.Agent)
	flags := cmd.Flags()
	flags.StringVar(&l.Kind, "kind", "", "only this kind")
	flags.StringArrayVar(&labels, "label", nil, "only those with this label, as name=value; can be given several times")
	flags.IntVar(&l.Limit, "limit", 0, "maximum number of tasks, up to 1000 (default 100)")
	flags.StringVar(&l.Cursor, "cursor", "", "continue after the previous page (its cursor)")
	return o.WithJSON(cmd)
}

// printJobs writes one line for each recurring task, with its agent if they are of several. An empty page may have a successor.
func printJobs(w *table.Page, jobs []core.TaskInfo, next string, all bool) {
	if len(jobs) == 0 {
		if next == "" {
			w.Line("no recurring tasks")
		} else {
			w.Line("no recurring tasks among those that were looked at")
			printNext(w, next)
		}
		return
	}
	var of []string
	if all {
		of = []string{"AGENT"}
	}
	t := table.New(w, append(of, "ID", "KIND", "SCHEDULE", "STATUS", "LAST RUN", "RESULT", "NEXT RUN", "RUNS", "ERRORS", "SKIPS")...)
	for i := range jobs {
		j := &jobs[i]
		if all {
			of = []string{j.Agent}
		}
		t.Row(append(of, j.ID, j.Kind, scheduleOf(j), jobStatus(j), table.Clock(j.LastRun), cmp.Or(string(j.LastOutcome), "-"), table.Clock(j.NextRun),
			strconv.FormatInt(j.RunCount, 10), strconv.FormatInt(j.ErrorCount, 10), strconv.FormatInt(j.SkipCount, 10))...)
	}
	t.End()
	printNext(w, next)
}

// jobStatus is what a recurring task is doing; that it is paused goes before all.
func jobStatus(j *core.TaskInfo) string {
	switch {
	// A paused task may still be running; that no further run starts is what a reader looks for.
	case len(j.Pauses) > 0:
		return command.JobPaused
	case j.Status == core.StatusInProgress:
		return command.JobRunning
	default:
		return command.JobIdle
	}
}

// cronText is the expression of a task with the zone of its times, which is UTC where none is named.
func cronText(j *core.TaskInfo) string { return j.Cron + " " + cmp.Or(j.Zone, "UTC") }

// scheduleOf is the schedule of a task for people.
func scheduleOf(j *core.TaskInfo) string {
	switch {
	case j.Cron != "":
		return cronText(j)
	case j.Every != 0:
		return "every " + j.Every.String()
	default:
		return string(j.Schedule)
	}
}

// How agents may be sorted.
const (
	sortWaiting = "waiting" // those with the most live tasks first
	sortOverdue = "overdue" // those whose next task has been due for the longest time first
)

// agentsCommand lists agents in the order in which the store finds them, or sorted, which looks at all of them.
func agentsCommand(o *command.Options) *cobra.Command {
	var limit int
	var cursor, by string
	cmd := command.New("agents", "List the agents that have live tasks, in no order or sorted", "  duly agents\n  duly agents --limit 1000 --json\n  duly agents --sort overdue --limit 10     # who waits longest",
		func(cmd *cobra.Command, _ []string) error {
			switch {
			case by != "" && by != sortWaiting && by != sortOverdue:
				return exit.Misuse("use waiting or overdue", "--sort %q is unknown", by)
			case by != "" && (cursor != "" || limit < 0):
				return exit.Misuse("leave it out, and pass --limit for more", "--sort looks at all agents, and has no --cursor and no --limit below zero")
			}
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				agents, next, err := agentsBy(cmd.Context(), s, by, limit, cursor)
				if err != nil {
					return err
				}
				answer := operation.Agents{Agents: agents, Next: next}
				return o.Print(answer, func(w *table.Page) { printAgents(w, agents, next) })
			})
		})
	pageFlags(cmd, &limit, &cursor)
	cmd.Flags().StringVar(&by, "sort", "", "waiting: those with the most live tasks first; overdue: those whose next task has been due for the longest time")
	choices(cmd, "sort", sortWaiting, sortOverdue)
	return o.WithWatch(o.WithJSON(cmd))
}

// agentsBy is a page of agents, or those that come first of all. Of the latter it keeps no more at once than are wanted, and a page.
func agentsBy(ctx context.Context, s command.Scheduler, by string, limit int, cursor string) ([]model.AgentStats, string, error) {
	agents := []model.AgentStats{}
	if by == "" {
		page, next, err := s.Agents(ctx, limit, cursor)
		return append(agents, page...), next, err
	}
	for {
		page, next, err := s.Agents(ctx, inspect.MaxPage, cursor)
		if err != nil {
			return nil, "", err
		}
		agents = append(agents, page...)
		slices.SortFunc(agents, func(a, b model.AgentStats) int { return cmp.Or(inOrder(&a, &b, by), cmp.Compare(a.Agent, b.Agent)) })
		agents = slices.CompactFunc(agents, func(a, b model.AgentStats) bool { return a.Agent == b.Agent }) // pages may show one twice
		agents = agents[:min(len(agents), cmp.Or(limit, inspect.DefaultPage))]
		if cursor = next; next == "" {
			return agents, "", nil
		}
	}
}

// inOrder compares agents. One of which nothing is due comes last.
func inOrder(a, b *model.AgentStats, by string) int {
	if by == sortWaiting {
		return cmp.Compare(b.Live, a.Live)
	}
	if a.Due.IsZero() || b.Due.IsZero() {
		return b.Due.Compare(a.Due)
	}
	return a.Due.Compare(b.Due)
}

// printAgents writes a page. An empty one may have a successor, so "no agents" is only said at the end.
func printAgents(w *table.Page, agents []model.AgentStats, next string) {
	if len(agents) == 0 && next == "" {
		w.Line("no agents")
		return
	}
	t := table.New(w, "AGENT", "LIVE", "NEXT DUE", "PAUSED")
	for _, a := range agents {
		paused := "no"
		if a.Paused {
			paused = "yes"
		}
		t.Row(a.Agent, strconv.FormatInt(a.Live, 10), table.Clock(a.Due), paused)
	}
	t.End()
	printNext(w, next)
}

// Bounds of what duly top reads each time: pages of agents, and of tasks that run.
const (
	topAgents  = 20
	topRunning = 3
)

// topCommand shows which agents take the slots and which wait: again and again on a terminal, once elsewhere.
func topCommand(o *command.Options) *cobra.Command {
	var by string
	var most int
	var measure time.Duration
	cmd := command.New("top", "Show which agents take the slots and which wait; refreshed on a terminal",
		"  duly top\n  duly top --sort overdue --limit 10\n  duly top --json --for 10s     # once; runs a minute by those of ten seconds",
		func(cmd *cobra.Command, _ []string) error {
			if err := checkTop(by, most); err != nil {
				return err
			}
			once := o.Watch == 0 && (o.JSON || !table.Terminal(o.Stdout))
			if o.Watch == 0 && !once {
				o.Watch = command.WatchEvery
			}
			ctx, cancel := context.WithCancel(cmd.Context())
			defer cancel()
			counter := countRuns(ctx, o)
			return o.OnStore(ctx, func(s command.Scheduler) error {
				if counter != nil && once {
					wait(ctx, measure)
				}
				in, err := topInput(ctx, s)
				if err != nil {
					return err
				}
				answer := top.Of(in, counter, by, most)
				return o.Print(answer, func(w *table.Page) { printTop(w, &answer) })
			})
		})
	cmd.Flags().StringVar(&by, "sort", top.ByShare, "share: those with the most runs under way first; runs: with the most runs a minute; overdue: who waits longest; waiting: with the most live tasks")
	choices(cmd, "sort", top.Orders...)
	cmd.Flags().IntVar(&most, "limit", 20, "how many agents")
	command.DurationVar(cmd.Flags(), &measure, "for", 3*time.Second, "where it shows them once: how long it counts runs before")
	return o.WithWatch(o.WithJSON(cmd))
}

// checkTop refuses what the flags cannot mean.
func checkTop(by string, most int) error {
	switch {
	case !slices.Contains(top.Orders, by):
		return exit.Misuse("use share, runs, overdue or waiting", "--sort %q is unknown", by)
	case most < 1:
		return exit.Misuse("leave it out for 20", "--limit must be at least 1, not %d", most)
	default:
		return nil
	}
}

// wait waits, or until ctx is done.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// countRuns counts the runs that end from now on, by the events of all processes, until ctx is done; nil if there are none to follow. Without the events all
// else is known.
func countRuns(ctx context.Context, o *command.Options) *top.Counter {
	at, err := o.Place(ctx)
	if err != nil {
		return nil // the command fails for the same reason
	}
	counter := &top.Counter{Now: time.Now}
	following := events.Ends(ctx, o, at, func(agent string) {
		if agent == "" {
			counter.Begin()
			return
		}
		counter.Add(agent)
	})
	if !following {
		return nil
	}
	return counter
}

// topInput reads what there is to rank: of very many agents the first that the store finds.
func topInput(ctx context.Context, s command.Scheduler) (*top.Input, error) {
	stats, err := s.Stats(ctx)
	if err != nil {
		return nil, err
	}
	in := &top.Input{Now: stats.Now}
	if in.Processes, err = s.Processes(ctx); err != nil {
		return nil, err
	}
	for cursor, pages := "", 0; ; pages++ {
		page, next, err := s.Agents(ctx, inspect.MaxPage, cursor)
		if err != nil {
			return nil, err
		}
		in.Agents = append(in.Agents, page...)
		if cursor, in.Partly = next, next != "" && pages+1 == topAgents; next == "" || in.Partly {
			break
		}
	}
	l := core.List{Status: []core.Status{core.StatusInProgress}, Limit: inspect.MaxPage}
	for range topRunning {
		page, next, err := s.Tasks(ctx, l)
		if err != nil {
			return nil, err
		}
		if in.Running = append(in.Running, page...); next == "" {
			break
		}
		l.Cursor = next
	}
	return in, nil
}

// printTop writes who has most, then a line for each agent.
func printTop(w *table.Page, t *top.Top) {
	w.Line("%d of %s in use", t.InUse, table.Count(t.Slots, "slot"))
	if t.Most != nil {
		w.Line("%s", t.Most.Text())
	}
	if len(t.Agents) == 0 {
		w.Line("no agents")
		return
	}
	w.Line("")
	rows := table.New(w, "AGENT", "RUNNING", "SHARE", "RUNS/MIN", "LIVE", "OVERDUE", "PAUSED")
	for i := range t.Agents {
		a := &t.Agents[i]
		rate, late, paused := "-", "-", "no"
		if a.Rate != nil {
			rate = strconv.FormatFloat(*a.Rate, 'f', 0, 64)
		}
		if d := time.Duration(a.Overdue * float64(time.Second)); d >= time.Second {
			late = d.Round(time.Second).String()
		}
		if a.Paused {
			paused = command.StatusPaused
		}
		rows.Row(a.Agent, strconv.Itoa(a.Running), fmt.Sprintf("%.0f %%", 100*a.Share), rate, strconv.FormatInt(a.Live, 10), late, paused)
	}
	rows.End()
	if t.Partly {
		w.Line("of the first %d agents that the store found, and those that run", topAgents*inspect.MaxPage)
	}
}
