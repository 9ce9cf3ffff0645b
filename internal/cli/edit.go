package cli

// The command edit: fields of a task that waits.

import (
	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// editCommand changes fields of a task as JSON has them.
func editCommand(o *command.Options) *cobra.Command {
	var agent, change string
	cmd := command.New("edit [AGENT] ID --set JSON", "Change fields of a task that waits; all others, its history and its next run stay",
		"  duly edit ada nightly --set '{\"level\": 1, \"limit_key\": null}'\n  duly edit ada nightly --set '{\"cron\": \"0 9 * * *\"}'\n  jq . change.json | duly edit ada nightly --set -",
		func(cmd *cobra.Command, args []string) error {
			name, id, err := taskNamed(agent, args)
			if err != nil {
				return err
			}
			if change == "" {
				return exit.Misuse(`say --set '{"level": 1}' or the like`, "expected the fields to change")
			}
			data, err := rawJSON("set", change, o.Stdin)
			if err != nil {
				return err
			}
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				if _, err := s.Edit(cmd.Context(), name, id, data); err != nil {
					return missing(err, name, id)
				}
				return printChanged(cmd.Context(), o, s, name, id, func(t *core.TaskInfo) string { return "is changed, and due " + table.Clock(t.NextRun) })
			})
		})
	cmd.Flags().StringVar(&change, "set", "", "a JSON object of fields as duly submit has them; null takes one away; - reads standard input")
	return o.WithJSON(named(cmd, &agent))
}
