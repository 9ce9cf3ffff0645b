// Package command is what all commands of duly share: the flags that they have in common, where they work, how they answer and how they fail.
package command

// Commands, and what none of them accepts.

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// New makes a command whose errors are explained.
// It has no arguments unless the caller sets Args, and completes no file
// names, as none of the arguments is one.
func New(use, short, example string, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: example, Args: noArgs, ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			// Before the command runs, so that a mistake in the flags opens no store.
			err := saysSomething(cmd.Flags())
			if err == nil {
				err = run(cmd, args)
			}
			if err != nil {
				return explain(cmd, err)
			}
			return nil
		},
	}
}

// noArgs refuses arguments, and says what names an agent where most other commands have it as an argument.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	todo := "see " + cmd.CommandPath() + " --help"
	if cmd.Flags().Lookup("agent") != nil && !cmd.Flags().Changed("agent") {
		todo = "did you mean --agent " + table.ShellWord(args[0]) + "?"
	}
	return explain(cmd, exit.Misuse(todo, "takes no arguments, and has %q", args[0]))
}

// maySayNothing marks a flag of which the empty string or zero means what it says.
// saysSomething skips flags with this annotation.
const maySayNothing = "duly_zero"

// ZeroMeans lets flags of a command be empty or zero.
func ZeroMeans(cmd *cobra.Command, names ...string) {
	for _, name := range names {
		if err := cmd.Flags().SetAnnotation(name, maySayNothing, []string{}); err != nil {
			// A name that does not exist is a mistake of this package, and shows in its first test.
			panic(err) // there is no such flag
		}
	}
}

// saysSomething refuses flags that are given as an empty string or zero: an omitted flag has the same value,
// and a shell passes it for a variable that is not set.
func saysSomething(flags *pflag.FlagSet) error {
	var err error
	flags.Visit(func(f *pflag.Flag) {
		_, may := f.Annotations[maySayNothing]
		if err != nil || may {
			return
		}
		// pflag has no way to ask for "given and empty" but the value itself.
		switch given := f.Value.String(); {
		case given == "" || given == "[]":
			err = exit.Misuse("leave it out if it has no value", "--%s must not be empty", f.Name)
		case f.Value.Type() == "string": // an agent, an id or a key may be called 0
		case (given == "0" || given == "0s") && strings.HasSuffix(f.Usage, "required"): // there is no default
			err = exit.Misuse("give a larger one", "--%s must not be %s", f.Name, given)
		case given == "0" || given == "0s":
			err = exit.Misuse("leave it out for the default", "--%s must not be %s", f.Name, given)
		}
	})
	return err
}
