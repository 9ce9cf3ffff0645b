package due

// The command run-due.

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/events"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/remote"
	"github.com/seed-6f6f2c11/duly/internal/cli/storage"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// runDueGrace is how long handlers may continue after a signal to stop.
// It is shorter than a daemon's: the cron job or Kubernetes Job that started
// this command waits for it to end.
const runDueGrace = 10 * time.Second

// RunDue makes one pull and exits. Its exit code is 4 if runs failed, so
// that a scheduler above it can alert.
func RunDue(o *command.Options) *cobra.Command {
	var agents []string
	var all bool
	scope := core.Scope{Grace: runDueGrace}
	cmd := command.New("run-due", "Run what is due now, once: for cron, Kubernetes CronJobs and CI",
		"  duly run-due -c duly.yaml --all --timeout 50s\n  duly run-due -c duly.yaml --agents ada,bob --max 100 --json",
		func(cmd *cobra.Command, _ []string) error {
			switch {
			// Neither is the default: running everything by accident would be worse than an error.
			case all == (agents != nil):
				return exit.Misuse("see duly run-due --help", "needs either --agents or --all")
			case scope.MaxTasks < 0 || scope.MaxDuration < 0:
				return exit.Misuse("see duly run-due --help", "--max and --timeout must not be negative")
			}
			scope.Agents = agents
			o.Here = o.File != "" // which has handlers for this process: a server has its own
			report, err := pull(cmd.Context(), o, scope)
			_, partly := errors.AsType[*core.AwayError](err)
			// A pull with failed runs or missing partitions has still done something: its
			// report is printed before the error.
			if err != nil && !partly && core.CodeOf(err) != core.CodeRunsFailed {
				return err
			}
			return errors.Join(o.Print(report, func(w *table.Page) { printReport(w, report) }), err)
		})
	flags := cmd.Flags()
	flags.StringSliceVar(&agents, "agents", nil, "the agents whose tasks to run, separated by commas")
	flags.BoolVar(&all, "all", false, "run the tasks of all agents")
	flags.IntVar(&scope.MaxTasks, "max", 0, "maximum number of tasks to run (default no limit)")
	command.DurationVar(flags, &scope.MaxDuration, "timeout", 0, "stop after this long; unfinished tasks are released (default no limit)")
	return o.WithProcessName(o.WithJSON(cmd))
}

// pull is a pull of a server, if one is named, or of this process.
func pull(ctx context.Context, o *command.Options, scope core.Scope) (report core.Report, err error) {
	at, err := o.Place(ctx)
	if err != nil {
		return report, err
	}
	if at.Server.URL != "" {
		err = command.OnServer(&at, func(c *remote.Client) error {
			report, err = c.RunDue(ctx, scope)
			return err
		})
		return report, err
	}
	c, err := command.LoadFile(ctx, o)
	if err != nil {
		return report, err
	}
	// Tasks of a file can run in memory; without a file nothing would be there to run.
	if o.File == "" {
		if err := storage.NeedStore(c); err != nil {
			return report, err
		}
	}
	return runDue(ctx, o, c, scope)
}

// runDue is one pull with the handlers of the file, whose tasks are submitted first.
func runDue(ctx context.Context, o *command.Options, c *dulyfile.File, scope core.Scope) (core.Report, error) {
	logger, err := newLogger(o.Stderr, "text")
	if err != nil {
		return core.Report{}, err
	}
	// Opening the store counts against --timeout as well: the flag bounds
	// the whole command.
	opening := ctx
	if d := scope.MaxDuration; d > 0 {
		var cancel context.CancelFunc
		opening, cancel = context.WithTimeout(ctx, d)
		defer cancel()
	}
	c.Redis.Remember = true // it may be called every minute
	store, err := storage.Open(opening, c, nil)
	if err != nil {
		return core.Report{}, err
	}
	defer store.End(ctx)
	defer o.Children.Wait()
	settings := events.Logged(ctx, c, logger)
	if settings.Alarm, err = alarmOf(c); err != nil {
		return core.Report{}, err
	}
	s, err := core.New(store, store.With(settings))
	if err != nil {
		return core.Report{}, err
	}
	store.Flush = s.FlushEvents
	if err := c.Register(s, logger, &o.Children, secretVariables(c)...); err != nil {
		return core.Report{}, err
	}
	if _, err := c.Define(ctx, s, logger); err != nil {
		// Tasks of the file are brought up to date first, so that the pull runs what the file says now.
		return core.Report{}, err
	}
	report, err := s.RunDue(ctx, scope)
	// Nothing failed, and yet nothing can ever run: worth saying, as the
	// report alone looks like an empty queue.
	if len(c.Handlers) == 0 && err == nil {
		o.Say("no handlers: nothing can run here, and due tasks are parked; pass a file with handlers with -c")
	}
	return report, err
}

// printReport writes what a pull did, in words.
// Counters at zero are omitted, so that unusual ones are easy to see.
func printReport(w *table.Page, r core.Report) {
	var parts []string
	for _, c := range []struct {
		n    int
		what string
	}{
		{r.Completed, "completed"},
		{r.Failed, "failed"},
		{r.Retried, "to be retried"},
		{r.Cancelled, "cancelled"},
		{r.Snoozed, "postponed"},
		{r.Released, "released"},
		{r.Lost, "lost"},
		{r.Skipped, "skipped"},
		{r.Parked, "parked"},
		{r.Recovered, "recovered from dead processes"},
		{r.Left, "left for lack of time"},
	} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c.n, c.what))
		}
	}
	fmt.Fprintf(&w.Buffer, "ran %s of %s in %s", table.Count(r.Ran, "task"), table.Count(r.Agents, "agent"), r.Duration.Round(time.Millisecond))
	if len(parts) > 0 {
		fmt.Fprint(&w.Buffer, ": ", strings.Join(parts, ", "))
	}
	// The pull has done what the other partitions had; the error behind the report has the reason.
	if len(r.Away) > 0 {
		fmt.Fprintf(&w.Buffer, "; partitions %v of the store did not answer", r.Away)
	}
	// What follows the pull, so that the caller can decide when to call again.
	switch {
	case r.More:
		fmt.Fprint(&w.Buffer, "; more is due")
	case r.NextDueAt.IsZero():
		fmt.Fprint(&w.Buffer, "; nothing is scheduled")
	default:
		fmt.Fprint(&w.Buffer, "; next due ", r.NextDueAt.UTC().Format(table.Instant))
	}
	fmt.Fprintln(&w.Buffer)
}
