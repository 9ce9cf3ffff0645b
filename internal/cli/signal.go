package cli

// The command signal.

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// signalCommand tells tasks that wait to continue.
func signalCommand(o *command.Options) *cobra.Command {
	var payload string
	cmd := command.New("signal AGENT KEY", "Tell the tasks of an agent that wait for a signal to continue",
		"  duly signal ada approval\n  duly signal ada approval --payload '{\"by\": \"ann\"}'",
		func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return exit.Misuse("name them as AGENT KEY; duly explain shows what a task waits for", "expected an agent and the key of a signal")
			}
			var data json.RawMessage
			if payload != "" {
				var err error
				if data, err = rawJSON("payload", payload, o.Stdin); err != nil {
					return err
				}
			}
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				out, err := s.Signal(cmd.Context(), args[0], args[1], data)
				if err != nil {
					return err
				}
				return o.Print(out, func(w *table.Page) { printSignalled(w, args[0], args[1], out) })
			})
		})
	cmd.Args = cobra.ArbitraryArgs
	cmd.Flags().StringVar(&payload, "payload", "", "what the tasks are told: JSON; - for standard input")
	return o.WithJSON(cmd)
}

// printSignalled says what became of a signal.
func printSignalled(w *table.Page, agent, key string, out model.Signalled) {
	if out.Kept {
		w.Line("no task of agent %s waits for %s yet: kept for the first that does, for a day", agent, key)
		return
	}
	w.Line("told %s of agent %s to continue", table.Count(out.Resumed, "task"), agent)
}
