package cli

// The command apply.

import (
	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// applyCommand does what a daemon does at its start, without running anything, so that a deployment can
// apply a file before its daemons restart.
func (p *process) applyCommand(o *options) *cobra.Command {
	cmd := command("apply", "Create or update the tasks in a file; leave unchanged ones alone",
		"  duly apply -f duly.yaml",
		func(cmd *cobra.Command, _ []string) error {
			// -f is the same option as -c: whoever applies a file has exactly one.
			if o.file == "" {
				return usage("name one with -f", "needs a file with tasks")
			}
			c, err := loadFile(cmd.Context(), o)
			if err != nil {
				return err
			}
			s, store, err := openScheduler(cmd.Context(), c)
			if err != nil {
				return err
			}
			defer store.end()
			done, err := c.Apply(cmd.Context(), s)
			if err != nil {
				return err
			}
			answer := struct {
				Created   int `json:"created"`
				Changed   int `json:"changed"`
				Unchanged int `json:"unchanged"`
			}{done.Created, done.Changed, len(c.Tasks) - done.Created - done.Changed}
			return o.print(p.stdout, answer, func(w *table.Page) {
				w.Line("%s created, %d updated, %d unchanged", table.Count(answer.Created, "task"), answer.Changed, answer.Unchanged)
			})
		})
	cmd.Flags().StringVarP(&o.file, "file", "f", "", "the file, the same as -c of other commands")
	return o.withJSON(cmd)
}
