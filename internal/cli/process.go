package cli

// The process: its exit codes, failures and signals.

import (
	"cmp"
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

// The exit codes, as the commands call them.
const (
	exitOK       = exit.OK
	exitFailed   = exit.Failed
	exitUsage    = exit.Usage
	exitNotFound = exit.NotFound
	exitAway     = exit.Away
)

// failure is an error as a user at a terminal needs it: what failed, why, and what to do.
// what defaults to the command's name; todo is empty if nothing can be done.
type failure struct {
	what string
	why  error
	todo string
	code int // the exit code; by default that of why
	// kind is the code for programs, and field what is wrong in their input, by its name over HTTP.
	kind  core.Code
	field string
}

// Error is one line.
// Line breaks of an inner error become spaces: one line is what a log, and a person, expects.
func (f *failure) Error() string {
	line := f.what + ": " + f.why.Error()
	if f.todo != "" {
		line += "; " + f.todo
	}
	return strings.Join(strings.Fields(line), " ")
}

// Unwrap is the reason.
func (f *failure) Unwrap() error { return f.why }

// complete gives a failure that a command has made what it left out: the exit code of its error, and the code that programs act on.
func (f *failure) complete() {
	f.code = cmp.Or(f.code, exit.Of(f.why))
	f.kind = cmp.Or(f.kind, exit.Kind(f.code, f.why))
}

// usage is the failure of input that makes no sense.
// Nothing has been written when it is returned: it comes before the store
// is opened, or from a check of core.
func usage(todo, format string, args ...any) *failure {
	return &failure{why: fmt.Errorf(format, args...), todo: todo, code: exitUsage}
}

// explain turns the error of a command into a failure.
// Errors of core have codes, and codes have exit codes: no text is ever looked at.
func explain(cmd *cobra.Command, err error) error {
	f := failureOf(cmd, err)
	if f.what == "" {
		f.what = nameOf(cmd)
	}
	return f
}

// failureOf is explain without the name of the command.
func failureOf(cmd *cobra.Command, err error) *failure {
	// A failure that a command made itself knows best.
	if known, ok := errors.AsType[*failure](err); ok {
		known.complete()
		return known
	}
	f := &failure{why: err, kind: exit.CodeOf(err), code: exit.Of(err)}
	if _, ok := errors.AsType[*dulyfile.Error](err); ok { // it says where in the file
		f.code, f.kind = exitUsage, core.CodeInvalid
		return f
	}
	if refused, ok := errors.AsType[*remote.Error](err); ok && (refused.Away || refused.Credential) {
		if f.todo = "check that duly daemon --http or duly serve is running there, or name another server with --server"; refused.Credential {
			f.todo = "pass --token, set $" + tokenEnv + ", or see duly context"
		}
		return f
	}
	if invalid, ok := errors.AsType[*core.InvalidError](err); ok {
		f.field = invalid.Field
	}
	switch f.kind {
	case core.CodeInvalid:
		f.why, f.todo = asFlag(cmd, err), "see "+cmd.CommandPath()+" --help"
	case core.CodeConflict:
		if c, ok := errors.AsType[*core.ConflictError](err); ok {
			f.todo = "see duly status " + table.ShellWord(c.Agent) + " " + table.ShellWord(c.ID)
		}
	case core.CodeDisabled:
		f.todo = "remove disabled: true from the file, or use another kind"
	case core.CodeUnavailable:
		f.todo = "check that Redis is running and reachable, then try again"
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
	root := p.root() //nolint:contextcheck // commands get theirs from ExecuteContextC
	root.SetArgs(joinWatch(args))
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitOK
	}
	f, ok := errors.AsType[*failure](err)
	// cobra returns plain errors, with suggestions on further lines that do not fit into one.
	if !ok { // cobra's own: it could not make sense of the command line
		why, _, _ := strings.Cut(err.Error(), "\n")
		f = &failure{what: nameOf(cmd), why: errors.New(why), todo: "see " + cmd.CommandPath() + " --help", code: exitUsage}
		if name := meant(cmd, why); name != "" {
			f.todo = "did you mean " + name + "? " + f.todo
		}
	}
	f.complete()
	if !wantsJSON(cmd, args) {
		p.say("duly: " + strings.TrimPrefix(f.Error(), "duly: "))
		return f.code
	}
	one := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	problem := exit.Problem{Code: f.kind, Field: f.field, Detail: one(f.why.Error()), Hint: one(f.todo), Exit: f.code}
	_, _ = io.WriteString(p.stderr, problem.JSON())
	return f.code
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
		os.Exit(exitFailed)
	}()
	return ctx, cancel
}
