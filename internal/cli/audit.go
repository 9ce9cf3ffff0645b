package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

func (p *process) auditCommand(o *options) *cobra.Command {
	var repair bool
	cmd := command("audit", "Look at every task: would something run it? With --repair, put back what nothing would find",
		"  duly audit\n  duly audit --repair",
		func(cmd *cobra.Command, _ []string) error {
			return o.onStore(cmd.Context(), func(s *core.Scheduler) error {
				report, err := s.Audit(cmd.Context(), core.AuditOptions{Repair: repair, Progress: p.auditProgress()})
				p.endProgress()
				if err != nil {
					return err
				}
				return errors.Join(o.print(p.stdout, report, func(w *table.Page) { printAudit(w, &report, repair) }), auditFailure(&report, repair))
			})
		})
	cmd.Flags().BoolVar(&repair, "repair", false, "put back what is found; what has lost its due time is due now; safe while daemons run")
	return o.withJSON(cmd)
}

// auditProgress shows on a terminal how far the audit is.
func (p *process) auditProgress() func(core.AuditReport) {
	if !table.Terminal(p.stderr) {
		return nil
	}
	return func(r core.AuditReport) { _, _ = fmt.Fprintf(p.stderr, "\r%d tasks, %d faults", r.Tasks, r.Found) }
}

// endProgress takes the line of a progress away.
func (p *process) endProgress() {
	if table.Terminal(p.stderr) {
		_, _ = fmt.Fprint(p.stderr, "\r"+strings.Repeat(" ", 40)+"\r")
	}
}

// faults say what each fault means.
var faults = map[core.FaultCode]string{
	core.FaultLost:       "neither waits nor runs nor is parked",
	core.FaultStranded:   "is parked, and nothing would put it back",
	core.FaultDoubled:    "runs and waits as well: it would run twice at once",
	core.FaultMiscounted: "a count is wrong: of the tasks of an agent, a group or a kind, or of what is parked",
	core.FaultAsleep:     "would be looked at too late",
	core.FaultUnreadable: "its record is not what was written",
	core.FaultGone:       "its task is no more: something names it still",
}

// unreadableTodo is what to do about records that cannot be read, which duly leaves alone.
const unreadableTodo = "restore them from a backup; nothing else knows what they were"

func printAudit(w *table.Page, r *core.AuditReport, repair bool) {
	w.Line("%d task(s) looked at, %d fault(s)", r.Tasks, r.Found)
	if r.Found == 0 {
		return
	}
	w.Line("")
	t := table.New(w, "FAULT", "AGENT", "ID", "WHAT IT MEANS")
	for _, f := range r.Faults {
		agent, id := f.Agent, f.ID
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
		w.Line("%d repaired: what was lost is due now", r.Repairable)
	}
}

// auditFailure is the failure of an audit that leaves faults behind.
func auditFailure(r *core.AuditReport, repaired bool) error {
	switch {
	case r.Found == 0 || repaired && r.Found == r.Repairable:
		return nil
	case r.Repairable > 0 && !repaired:
		return &failure{
			why: fmt.Errorf("%d fault(s) found: what they are about would not run", r.Found), todo: "put it back with duly audit --repair", code: exitFailed,
		}
	default:
		return &failure{
			why:  fmt.Errorf("%d record(s) cannot be read, and cannot be repaired", r.Found-r.Repairable),
			todo: unreadableTodo, code: exitFailed,
		}
	}
}
