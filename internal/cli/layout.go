package cli

// The commands upgrade and repartition: how a Redis has its tasks.

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/storage"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// repartitionCommand asks for a flag, as nothing runs while it moves the tasks.
func repartitionCommand(o *command.Options) *cobra.Command {
	var yes bool
	var r redisstore.Repartitioning
	cmd := command.New("repartition", "Give a stopped store another number of partitions",
		"  duly repartition --to 1 --dry-run\n  duly repartition --to 1 --yes",
		func(cmd *cobra.Command, _ []string) error {
			c, err := command.LoadFile(cmd.Context(), o)
			if err != nil {
				return err
			}
			switch err := storage.NeedRedis(c); {
			case err != nil:
				return err
			case !cmd.Flags().Changed("to"):
				return exit.Misuse("pass --to with the number of partitions", "the store can have 1, 2, 4 or any other power of two up to 1024")
			case !yes && !r.DryRun:
				return exit.Misuse("stop every process of the store, then pass --yes, or --dry-run to look first", "nothing runs while duly moves the tasks")
			}
			c.Redis.Remember, r.Progress = true, moveProgress(o)
			moved, err := redisstore.Repartition(cmd.Context(), c.Redis, r)
			o.EndProgress()
			if err != nil {
				return storage.Failure(err)
			}
			return printMoved(o, &moved, r.DryRun)
		})
	flags := cmd.Flags()
	flags.IntVar(&r.To, "to", 0, "how many partitions the store is to have: a power of two up to 1024; 1 is best on a single server")
	flags.BoolVar(&r.DryRun, "dry-run", false, "count what there is to move, and change nothing")
	flags.BoolVar(&yes, "yes", false, "every process of the store is stopped")
	return command.OnlyHere(o.WithJSON(cmd), "it moves what a stopped store has", "run it where Redis can be reached, with --redis")
}

// moveProgress shows on a terminal how far the copying is.
// The steps after it take less time, and are not shown.
func moveProgress(o *command.Options) func(done, total int64) {
	if !table.Terminal(o.Stderr) {
		return nil
	}
	return func(done, total int64) { _, _ = fmt.Fprintf(o.Stderr, "\r%d of %d copied", done, total) }
}

// printMoved prints the result of a move. No move ends with a fault: that is an error.
func printMoved(o *command.Options, moved *redisstore.Repartitioned, dry bool) error {
	answer := struct {
		*redisstore.Repartitioned
		DryRun bool `json:"dry_run,omitempty"`
		Faults *int `json:"faults,omitempty"` // that the audit has found
	}{Repartitioned: moved, DryRun: dry}
	if !dry && !moved.Undone {
		answer.Faults = new(int)
	}
	return o.Print(answer, func(w *table.Page) {
		what := fmt.Sprintf("%s, %s and %s of finished tasks",
			table.Count(moved.Agents, "agent"), table.Count(moved.Tasks, "live task"), table.Count(moved.Records, "record"))
		switch {
		case dry:
			w.Line("%s would move to %s", what, table.Count(moved.To, "partition"))
		case moved.Undone:
			w.Line("the move was undone: the store has %s", table.Count(moved.To, "partition"))
		default:
			w.Line("the store has %s now; it had %d", table.Count(moved.To, "partition"), moved.From)
			w.Line("moved %s; the audit found no fault", what)
			w.Line("start its processes again")
		}
	})
}

// upgradeCommand asks for a flag, as older processes that still run would not see some of the tasks.
func upgradeCommand(o *command.Options) *cobra.Command {
	var yes bool
	cmd := command.New("upgrade", "Store tasks as this version does, which earlier versions cannot read",
		"  duly upgrade --yes",
		func(cmd *cobra.Command, _ []string) error {
			if !yes {
				return exit.Misuse("stop every process of an earlier version, then pass --yes", "earlier versions cannot use the store afterwards")
			}
			c, err := command.LoadFile(cmd.Context(), o)
			if err != nil {
				return err
			}
			_, st, err := storage.OpenScheduler(cmd.Context(), c)
			if err != nil {
				return err
			}
			defer st.End(cmd.Context())
			if st.Upgrade == nil {
				return errors.New("a store without a Redis has no layout: a folder is read as whichever version wrote it")
			}
			answer := struct {
				From int `json:"from"`
				To   int `json:"to"`
			}{}
			if answer.From, answer.To, err = st.Upgrade(cmd.Context()); err != nil {
				return err
			}
			return o.Print(answer, func(w *table.Page) {
				if answer.From == answer.To {
					w.Line("the store has layout %d already", answer.To)
					return
				}
				w.Line("the store has layout %d now; it had %d", answer.To, answer.From)
				w.Line("restart the other processes of this version, so that they use it too")
			})
		})
	cmd.Flags().BoolVar(&yes, "yes", false, "every process of an earlier version is stopped")
	return command.OnlyHere(o.WithJSON(cmd), "it changes how Redis stores tasks, which servers do not do", "run it where Redis can be reached, with --redis")
}
