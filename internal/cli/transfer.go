package cli

// The commands agent export and agent import.

import (
	"bufio"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/operate"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// agentExportCommand writes lines as they are read, so that an agent of any size takes little memory.
func agentExportCommand(o *command.Options) *cobra.Command {
	cmd := command.New("export AGENT", "Write the profile, the pause and the live tasks of an agent as lines of JSON",
		"  duly agent export ada > ada.jsonl",
		func(cmd *cobra.Command, args []string) error {
			agent, err := oneAgent(args)
			if err != nil {
				return err
			}
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				out := bufio.NewWriter(o.Stdout)
				_, err := s.Export(cmd.Context(), agent, out)
				if core.CodeOf(err) == core.CodeNotFound {
					f := exit.Misuse("duly agents lists agents with live tasks", "agent %q has no live task, no profile and no pause", agent)
					f.Code = exit.NotFound
					return f
				}
				if err == nil {
					err = out.Flush()
				}
				return err
			})
		})
	cmd.Args = cobra.ArbitraryArgs
	return cmd
}

// agentImportCommand stores what was exported. Lines that are refused are named, and make the command fail; all others are stored.
func agentImportCommand(o *command.Options) *cobra.Command {
	var as string
	cmd := command.New("import [FILE]", "Store what was exported; what exists stays unchanged",
		"  duly agent import ada.jsonl\n  duly agent import --as bob < ada.jsonl",
		func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exit.Misuse("name one FILE, or none for standard input", "expected at most one FILE, not %d arguments", len(args))
			}
			from := o.Stdin
			if len(args) == 1 && args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return exit.Misuse("name a file that can be read", "%w", err)
				}
				defer func() { _ = f.Close() }()
				from = f
			}
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error { return importFrom(cmd, o, s, as, from) })
		})
	cmd.Args = cobra.ArbitraryArgs
	cmd.Flags().StringVar(&as, "as", "", "import for this agent, whichever the lines name")
	return o.WithJSON(cmd)
}

// importFrom prints what became of the lines also if the store fails in between: an import may be repeated.
func importFrom(cmd *cobra.Command, o *command.Options, s command.Scheduler, as string, from io.Reader) error {
	done, err := s.Import(cmd.Context(), as, from)
	if err == nil || done.New+done.Same+done.Refused > 0 {
		if err := o.Print(done, func(w *table.Page) { printImported(w, &done) }); err != nil {
			return err
		}
	}
	if err == nil && done.Refused > 0 {
		err = &exit.Failure{
			Why: fmt.Errorf("%s refused", table.Count(done.Refused, "line")), Todo: "correct them and import again: what was stored stays unchanged", Code: exit.Usage,
		}
	}
	return err
}

// printImported writes what became of an import, with the first lines that were refused.
func printImported(w *table.Page, done *operate.Imported) {
	differ := ""
	if done.Differs > 0 {
		differ = fmt.Sprintf(" (%d with another definition)", done.Differs)
	}
	w.Line("%d new, %d same%s, %d refused", done.New, done.Same, differ, done.Refused)
	for i := range done.Errors {
		w.Line("%s", done.Errors[i].Error())
	}
	if more := done.Refused - len(done.Errors); more > 0 {
		w.Line("and %d more", more)
	}
}
