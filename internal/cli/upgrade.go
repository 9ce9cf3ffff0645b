package cli

// The command upgrade.

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// upgradeCommand asks for a flag, as older processes that still run would not see some of the tasks.
func (p *process) upgradeCommand(o *options) *cobra.Command {
	var yes bool
	cmd := command("upgrade", "Store tasks as this version does, which earlier versions cannot read",
		"  duly upgrade --yes",
		func(cmd *cobra.Command, _ []string) error {
			if !yes {
				return usage("stop every process of an earlier version, then pass --yes", "earlier versions cannot use the store afterwards")
			}
			c, err := loadFile(cmd.Context(), o)
			if err != nil {
				return err
			}
			_, st, err := openScheduler(cmd.Context(), c)
			if err != nil {
				return err
			}
			defer st.end(cmd.Context())
			if st.upgrade == nil {
				return errors.New("a store in memory has no layout")
			}
			answer := struct {
				From int `json:"from"`
				To   int `json:"to"`
			}{}
			if answer.From, answer.To, err = st.upgrade(cmd.Context()); err != nil {
				return err
			}
			return o.print(p.stdout, answer, func(w *table.Page) {
				if answer.From == answer.To {
					w.Line("the store has layout %d already", answer.To)
					return
				}
				w.Line("the store has layout %d now; it had %d", answer.To, answer.From)
				w.Line("restart the other processes of this version, so that they use it too")
			})
		})
	cmd.Flags().BoolVar(&yes, "yes", false, "every process of an earlier version is stopped")
	return onlyHere(o.withJSON(cmd), "it changes how Redis stores tasks, which servers do not do", "run it where Redis can be reached, with --redis")
}
