package cli

// The command pauses.

import (
	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// pausesCommand lists all pauses, so that an operator who did not make a
// forgotten one can find it.
func (p *process) pausesCommand(o *options) *cobra.Command {
	var limit int
	var cursor string
	cmd := command("pauses", "List pauses: of tasks, agents, kinds, keys or everything; by whom and why", "  duly pauses",
		func(cmd *cobra.Command, _ []string) error {
			return o.onStore(cmd.Context(), func(s scheduler) error {
				pauses, next, err := s.Pauses(cmd.Context(), limit, cursor)
				if err != nil {
					return err
				}
				answer := operation.Pauses{Pauses: pauses, Next: next}
				return o.print(p.stdout, answer, func(w *table.Page) { printPauses(w, pauses, next) })
			})
		})
	pageFlags(cmd, &limit, &cursor)
	return o.withJSON(cmd)
}

// pageFlags choose a page of what is listed in no order.
// The number is not exact: a store adds what each of its steps finds.
func pageFlags(cmd *cobra.Command, limit *int, cursor *string) {
	flags := cmd.Flags()
	flags.IntVar(limit, "limit", 0, "about how many, up to 1000 (default 100)")
	flags.StringVar(cursor, "cursor", "", "continue after the previous page (its cursor)")
}

// printPauses ends each line with the command that ends the pause.
func printPauses(w *table.Page, pauses []model.PauseInfo, next string) {
	if len(pauses) == 0 {
		w.Line("nothing is paused")
		return
	}
	t := table.New(w, "PAUSED", "SINCE", "UNTIL", "BY", "REASON", "TO RESUME")
	for i := range pauses {
		p := &pauses[i]
		t.Row(targetName(p.Target), clock(p.Since), clock(p.Until), table.First(p.Who()), table.First(p.Reason), "duly resume "+targetArgs(p.Target))
	}
	t.End()
	if next != "" {
		w.Line("")
		w.Line("more: duly pauses --cursor %s", next)
	}
}
