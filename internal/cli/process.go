package cli

// The process: its exit codes, failures and signals.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/handlers/exec"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/remote"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// process is one run of the program: what it reads and writes, and the children it has started.
// There is one in a program, and one for each command line in a test.
type process struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	version        string // of the build
	// children are programs that handlers have started: none of them may outlive the process.
	children exec.Children
}

// explain turns the error of a command into a failure.
// Errors of core have codes, and codes have exit codes: no text is ever looked at.
func explain(cmd *cobra.Command, err error) error {
	f := failureOf(cmd, err)
	if f.What == "" {
		f.What = nameOf(cmd)
	}
	return f
}

// failureOf is explain without the name of the command.
func failureOf(cmd *cobra.Command, err error) *exit.Failure {
	// A failure that a command made itself knows best.
	if known, ok := errors.AsType[*exit.Failure](err); ok {
		known.Complete()
		return known
	}
	f := &exit.Failure{Why: err, Kind: exit.CodeOf(err), Code: exit.Of(err)}
	if _, ok := errors.AsType[*dulyfile.Error](err); ok { // it says where in the file
		f.Code, f.Kind = exit.Usage, core.CodeInvalid
		return f
	}
	if refused, ok := errors.AsType[*remote.Error](err); ok && (refused.Away || refused.Credential) {
		if f.Todo = "check that duly daemon --http or duly serve is running there, or name another server with --server"; refused.Credential {
			f.Todo = "pass --token, set $" + tokenEnv + ", or see duly context"
		}
		return f
	}
	if invalid, ok := errors.AsType[*core.InvalidError](err); ok {
		f.Field = invalid.Field
	}
	switch f.Kind {
	case core.CodeInvalid:
		f.Why, f.Todo = asFlag(cmd, err), "see "+cmd.CommandPath()+" --help"
	case core.CodeConflict:
		if c, ok := errors.AsType[*core.ConflictError](err); ok {
			f.Todo = "see duly status " + table.ShellWord(c.Agent) + " " + table.ShellWord(c.ID)
		}
	case core.CodeDisabled:
		f.Todo = "remove disabled: true from the file, or use another kind"
	case core.CodeUnavailable:
		f.Todo = "check that Redis is running and reachable, then try again"
	default:
	}
	return f
}

// nameOf is the name of a command as typed after duly, such as submit, or limit set.
func nameOf(cmd *cobra.Command) string { return strings.TrimPrefix(cmd.CommandPath(), "duly ") }

// asFlag names the flag in place of the field, if the command has one for it.
// A user of the command line has never seen the field: "agent_id" is --agent to them.
func asFlag(cmd *cobra.Command, err error) error {
	inv, ok := errors.AsType[*core.InvalidError](err)
	if !ok {
		return err
	}
	// An index after the name, as in tags[2], has no flag of its own.
	name, _, _ := strings.Cut(strings.NewReplacer("agent_id", "agent", "_", "-").Replace(inv.Field), "[")
	// With a file, its fields are what the user wrote.
	if f := cmd.Flags().Lookup("file"); f != nil && f.Changed {
		return err
	}
	// Names that differ by a suffix or a prefix alone: agent_id and --agent, limit_key and --key.
	for _, name := range []string{name, strings.TrimSuffix(name, "-id"), strings.TrimPrefix(name, "limit-")} {
		if cmd.Flags().Lookup(name) != nil {
			return &core.InvalidError{Field: "--" + name, Reason: inv.Reason}
		}
	}
	return err
}

// run executes a command line and returns its exit code.
// It is what main and tests call; it never exits the process itself.
func (p *process) run(ctx context.Context, args []string) int {
	root := root(p) //nolint:contextcheck // commands get theirs from ExecuteContextC
	root.SetArgs(joinWatch(args))
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exit.OK
	}
	f, ok := errors.AsType[*exit.Failure](err)
	// cobra returns plain errors, with suggestions on further lines that do not fit into one.
	if !ok { // cobra's own: it could not make sense of the command line
		why, _, _ := strings.Cut(err.Error(), "\n")
		f = &exit.Failure{What: nameOf(cmd), Why: errors.New(why), Todo: "see " + cmd.CommandPath() + " --help", Code: exit.Usage}
		if name := meant(cmd, why); name != "" {
			f.Todo = "did you mean " + name + "? " + f.Todo
		}
	}
	f.Complete()
	if !wantsJSON(cmd, args) {
		p.say("duly: " + strings.TrimPrefix(f.Error(), "duly: "))
		return f.Code
	}
	one := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	problem := exit.Problem{Code: f.Kind, Field: f.Field, Detail: one(f.Why.Error()), Hint: one(f.Todo), Exit: f.Code}
	_, _ = io.WriteString(p.stderr, problem.JSON())
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

// say tells people something that is no answer.
// Answers go to stdout, so that a program can read them undisturbed; everything else comes here.
func (p *process) say(line string) { _, _ = fmt.Fprintln(p.stderr, table.Plain(line)) }

// interruptible is a context that is done at the first signal to stop. The second one ends the process at once, with its
// children.
// A user who presses Ctrl-C twice wants it to end now, also if a handler does not let go.
func (p *process) interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	// Room for both signals, as Notify drops a signal that the channel has no room for.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		p.children.Kill()
		os.Exit(exit.Failed)
	}()
	return ctx, cancel
}
