package cli

// The command bulk: what list shows, changed step by step.

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/operate"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/help"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// chosen are the tasks that a list or a bulk command is about, as flags say it.
type chosen struct {
	list         core.List
	statuses     []string
	labels       []string
	since, until string
	dueBy        string
}

// flags declares them.
func (c *chosen) flags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&c.list.Agent, "agent", "", "only this agent (default all agents)")
	flags.StringSliceVar(&c.statuses, "status", nil, "only these statuses: waiting, in_progress, completed, failed, cancelled; without --agent: waiting and in_progress, or failed by itself")
	flags.StringVar(&c.list.Kind, "kind", "", "only this kind")
	flags.StringVar(&c.list.Key, "key", "", "only this limit key")
	flags.StringVar(&c.list.Group, "group", "", "only this group")
	flags.StringArrayVar(&c.labels, "label", nil, "only those with this label, as name=value; can be given several times")
	flags.StringVar(&c.list.Session, "session", "", "only this session")
	flags.StringVar(&c.list.Text, "text", "", "only those with this text in their id or their last error, in any case")
	flags.StringVar(&c.list.Cause, "cause", "", "only those that failed by this cause: an error with # for each word that has a digit")
	flags.StringVar(&c.dueBy, "due-by", "", "only those that wait and are due by then: a time, or how far ahead, such as +1h")
	flags.StringVar(&c.since, "since", "", "only those that ended then or later: a time, or how long ago, such as 1d")
	flags.StringVar(&c.until, "until", "", "only those that ended before")
	flags.BoolVar(&c.list.Overdue, "overdue", false, "only those that are due and could start")
	flags.StringVar(&c.list.Cursor, "cursor", "", "continue after the previous page (its cursor)")
}

// read is the list of the flags. An unknown status is core's to refuse, with the ones that exist.
func (c *chosen) read(ctx context.Context, s command.Scheduler) (core.List, error) {
	l := c.list
	for _, status := range c.statuses {
		l.Status = append(l.Status, core.Status(status))
	}
	var err error
	if l.Labels, err = labelsOf(c.labels); err != nil {
		return l, err
	}
	if l.Since, err = s.TimeOrAgo(ctx, "since", c.since); err == nil {
		l.Until, err = s.TimeOrAgo(ctx, "until", c.until)
	}
	if err == nil {
		l.DueBy, err = s.TimeOrAgo(ctx, "due-by", c.dueBy)
	}
	return l, err
}

// bulkVerbs are the verbs of the command, and what was done then.
var bulkVerbs = map[operate.BulkVerb]string{
	operate.BulkReplay: "replayed", operate.BulkCancel: "cancelled", operate.BulkDelete: "deleted", operate.BulkRun: "made due now",
	operate.BulkPause: "paused", operate.BulkResume: "resumed",
}

// bulkCommand does to each task of a list what the command of that name does to one.
func bulkCommand(o *command.Options) *cobra.Command {
	var c chosen
	var b operate.Bulk
	var yes bool
	cmd := command.New("bulk replay|cancel|delete|run|pause|resume", "Replay, cancel, delete, run, pause or resume all tasks of a list",
		"  duly bulk replay --kind digest --since 1d --dry-run\n  duly bulk replay --kind digest --since 1d --yes\n  duly bulk cancel --status waiting --key openai:gpt --yes",
		func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || bulkVerbs[operate.BulkVerb(args[0])] == "" {
				hint := ""
				if len(args) == 1 {
					hint = help.DidYouMean(args[0], cmd.ValidArgs)
				}
				return exit.Misuse(hint+"use replay, cancel, delete, run, pause or resume", "expected what to do")
			}
			b.Do = operate.BulkVerb(args[0])
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				var err error
				if b.List, err = c.read(cmd.Context(), s); err != nil {
					return err
				}
				return bulk(cmd.Context(), o, s, b, yes)
			})
		})
	cmd.Args = cobra.ArbitraryArgs
	cmd.ValidArgs = []string{"replay", "cancel", "delete", "run", "pause", "resume"}
	c.flags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&b.All, "all", false, "all tasks of all agents that the verb is for")
	flags.BoolVar(&b.DryRun, "dry-run", false, "count the tasks, and change none")
	flags.BoolVar(&yes, "yes", false, "change them; without it they are counted first")
	flags.StringVar(&b.Reason, "reason", "", "why, for a cancel or a pause")
	flags.StringVar(&b.By, "by", "", "who, for a cancel or a pause")
	return o.WithJSON(cmd)
}

// bulk counts the tasks of a list or, if that was agreed to, changes them.
func bulk(ctx context.Context, o *command.Options, s command.Scheduler, b operate.Bulk, yes bool) error {
	b.DryRun = b.DryRun || !yes
	b.Confirm = !b.DryRun
	b.List.Limit = inspect.MaxPage
	sum, at, err := bulkSteps(ctx, o, s, b)
	if err != nil && sum.Matched == 0 {
		return err
	}
	answer := struct {
		operate.BulkStep

		Dry bool `json:"dry_run"`
	}{sum, b.DryRun}
	answer.Next = at // where it stopped
	if printed := o.Print(answer, func(w *table.Page) { printBulk(w, &b, &sum) }); printed != nil {
		return printed
	}
	if err != nil {
		return fmt.Errorf("stopped after %s (go on with --cursor %s): %w", table.Count(sum.Matched, "task"), table.ShellWord(at), err)
	}
	return nil
}

// bulkSteps carries out all steps and sums them up. It returns where the step begins that has failed.
func bulkSteps(ctx context.Context, o *command.Options, s command.Scheduler, b operate.Bulk) (sum operate.BulkStep, at string, err error) {
	defer o.EndProgress()
	for {
		step, err := s.Bulk(ctx, b)
		sum.Matched, sum.Changed, sum.Left = sum.Matched+step.Matched, sum.Changed+step.Changed, sum.Left+step.Left
		for _, r := range step.Refused {
			if len(sum.Refused) < mostRefused {
				sum.Refused = append(sum.Refused, r)
			} else {
				sum.Left++
			}
		}
		if err != nil || step.Next == "" {
			return sum, b.List.Cursor, err
		}
		if b.List.Cursor = step.Next; table.Terminal(o.Stderr) {
			_, _ = fmt.Fprintf(o.Stderr, "\r%s", table.Count(sum.Matched, "task"))
		}
	}
}

// mostRefused is how many tasks that stayed as they were are named.
const mostRefused = 10

// printBulk says what was done, or what would be, and which tasks stayed as they were.
func printBulk(w *table.Page, b *operate.Bulk, sum *operate.BulkStep) {
	switch {
	case sum.Matched == 0:
		w.Line("no tasks match")
	case b.DryRun:
		are := "that are"
		if sum.Matched == 1 {
			are = "that is"
		}
		w.Line("%s %s stored now would be %s: add --yes to do it", table.Count(sum.Matched, "task"), are, bulkVerbs[b.Do])
	default:
		w.Line("%s: %s", bulkVerbs[b.Do], table.Count(sum.Changed, "task"))
	}
	for _, r := range sum.Refused {
		w.Line("not task %s of agent %s: %s", r.ID, r.Agent, r.Error)
	}
	if sum.Left > 0 {
		w.Line("and %d more", sum.Left)
	}
}
