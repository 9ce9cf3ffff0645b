package doctor

// The command audit.

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// Audit walks through all live tasks, a page at a time, and can be
// stopped at any point: each page is whole.
func Audit(o *command.Options) *cobra.Command {
	var repair bool
	cmd := command.New("audit", "Check that every live task can be reached; --repair requeues lost ones",
		"  duly audit\n  duly audit --repair",
		func(cmd *cobra.Command, _ []string) error {
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				report, err := s.Audit(cmd.Context(), inspect.AuditOptions{Repair: repair, Progress: auditProgress(o)})
				o.EndProgress()
				if err != nil {
					return err
				}
				// The report is written also when it contains faults; the failure only
				// sets the exit code and the last line.
				return errors.Join(o.Print(report, func(w *table.Page) { printAudit(w, &report, repair) }), auditFailure(&report, repair))
			})
		})
	cmd.Flags().BoolVar(&repair, "repair", false, "requeue lost tasks; one that lost its due time is due now; safe while daemons run")
	return o.WithJSON(cmd)
}

// auditProgress shows on a terminal how far the audit is.
// It is nil elsewhere: a log has no use for a line that is rewritten.
func auditProgress(o *command.Options) func(inspect.AuditReport) {
	if !table.Terminal(o.Stderr) {
		return nil
	}
	return func(r inspect.AuditReport) { _, _ = fmt.Fprintf(o.Stderr, "\r%d tasks, %d faults", r.Tasks, r.Found) }
}

// faults say what each fault means.
// Every code that a store can report has an entry; the text says what would
// happen to the task without a repair.
var faults = map[audit.Code]string{
	audit.Lost:       "the task is in no queue: it neither waits nor runs nor is parked",
	audit.Stranded:   "the task is parked, and nothing would requeue it",
	audit.Doubled:    "the task both runs and waits: it would run twice at once",
	audit.Miscounted: "a counter is wrong: of an agent, a group, a kind, or parked tasks",
	audit.Asleep:     "the agent would be visited too late",
	audit.Unreadable: "the record cannot be read",
	audit.Gone:       "an index entry whose task no longer exists",
}

// unreadableTodo is what to do about records that cannot be read, which duly leaves alone.
const unreadableTodo = "restore them from a backup; duly has no other copy"

// printAudit shows the first faults only, as the report keeps no more;
// the count always covers all of them.
func printAudit(w *table.Page, r *inspect.AuditReport, repair bool) {
	w.Line("%s checked, %s found", table.Count(r.Tasks, "task"), table.Count(r.Found, "fault"))
	if r.Found == 0 {
		return
	}
	w.Line("")
	t := table.New(w, "FAULT", "AGENT", "ID", "WHAT IT MEANS")
	for _, f := range r.Faults {
		agent, id := f.Agent, f.ID
		// A fault may be about one task, an agent, or a counter of a whole partition.
		switch {
		case agent == "" && id == "":
			agent = "(a partition)"
		case id == "":
			id = "(the agent)"
		}
		t.Row(string(f.Code), agent, id, faults[f.Code])
	}
	t.End()
	if more := r.Found - len(r.Faults); more > 0 {
		w.Line("and %d more", more)
	}
	if repair && r.Repairable > 0 {
		w.Line("")
		w.Line("%d repaired: lost tasks are due now", r.Repairable)
	}
}

// auditFailure is the failure of an audit that leaves faults behind.
// Exit code 1 for faults lets a cron job or a monitor call duly audit and rely on its result alone.
func auditFailure(r *inspect.AuditReport, repaired bool) error {
	switch {
	// All of them were repaired, or none were found.
	case r.Found == 0 || repaired && r.Found == r.Repairable:
		return nil
	case r.Repairable > 0 && !repaired:
		return &exit.Failure{
			Why: fmt.Errorf("%s found: these tasks would not run", table.Count(r.Found, "fault")), Todo: "requeue them with duly audit --repair", Code: exit.Failed,
		}
	default:
		return &exit.Failure{
			Why:  fmt.Errorf("%s unreadable and beyond repair", table.Count(r.Found-r.Repairable, "record")),
			Todo: unreadableTodo, Code: exit.Failed,
		}
	}
}
