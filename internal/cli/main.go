// Package cli is the program duly: its commands, what they print, and the process that runs them.
package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/help"
	"github.com/seed-6f6f2c11/duly/internal/cli/private"
	"github.com/seed-6f6f2c11/duly/internal/cli/startup"
)

// Main runs one command line with the standard input and output of this process, and returns its exit code. The version is the
// build's; if it is empty, the one that the module was installed with. The first signal to stop ends the command gracefully,
// the second one ends the process at once.
func Main(ctx context.Context, version string, args []string) int {
	startup.Ends()
	// go-redis would print its own lines between duly's.
	logging.Disable() // what goes wrong with Redis is in our own errors
	p := &command.Process{Stdout: os.Stdout, Stderr: os.Stderr, Stdin: os.Stdin, Version: version}
	if err := private.Hide(); err != nil { // before anything is started that could look
		p.Say("duly: warning: programs started by handlers can read this process's environment, as the kernel refuses to hide it: " + err.Error())
	}
	ctx, stop := p.Interruptible(ctx)
	defer stop()
	return execute(ctx, p, args)
}

// execute runs a command line and returns its exit code.
// It never exits the process itself.
func execute(ctx context.Context, p *command.Process, args []string) int {
	root := root(p) //nolint:contextcheck // commands get theirs from ExecuteContextC
	root.SetArgs(command.JoinWatch(args))
	root.SetIn(p.Stdin)
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exit.OK
	}
	f, ok := errors.AsType[*exit.Failure](err)
	// cobra returns plain errors, with suggestions on further lines that do not fit into one.
	if !ok { // cobra's own: it could not make sense of the command line
		why, _, _ := strings.Cut(err.Error(), "\n")
		f = &exit.Failure{What: command.NameOf(cmd), Why: errors.New(why), Todo: "see " + cmd.CommandPath() + " --help", Code: exit.Usage}
		if name := help.Meant(cmd, why); name != "" {
			f.Todo = "did you mean " + name + "? " + f.Todo
		}
	}
	f.Complete()
	if !wantsJSON(cmd, args) {
		p.Say("duly: " + strings.TrimPrefix(f.Error(), "duly: "))
		return f.Code
	}
	one := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	problem := exit.Problem{Code: f.Kind, Field: f.Field, Detail: one(f.Why.Error()), Hint: one(f.Todo), Exit: f.Code}
	_, _ = io.WriteString(p.Stderr, problem.JSON())
	return f.Code
}

// wantsJSON reports whether a command line asks for JSON. One that cannot be parsed is looked at as it was typed.
func wantsJSON(cmd *cobra.Command, args []string) bool {
	if flag := cmd.Flags().Lookup("json"); flag != nil && flag.Changed {
		return flag.Value.String() == "true"
	}
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json")
}
