package due

// The command work.

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/handlers/exec"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/events"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/remote"
	"github.com/seed-6f6f2c11/duly/internal/cli/worker"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// mostPrograms is how many programs a worker may run at once: more of them are for more machines.
const mostPrograms = 1000

// workOptions are the flags of duly work.
type workOptions struct {
	worker.Config

	o   *command.Options
	log string
}

// Work runs a program for runs that a server lends.
func Work(o *command.Options) *cobra.Command {
	w := &workOptions{o: o}
	cmd := command.New("work --kind KIND -- PROGRAM [ARGUMENT...]", "Run a program for tasks that a server lends, without a Redis",
		"  duly work --server https://duly.example --kind summarize --concurrency 4 -- python3 summarize.py     # with its token in $DULY_TOKEN",
		func(cmd *cobra.Command, args []string) error {
			at, err := o.Place(cmd.Context())
			switch {
			case err != nil:
				return err
			case at.Server.URL == "":
				return exit.Misuse("name it with --server, $"+command.EnvServer+" or --context; duly daemon runs tasks on a Redis", "it needs a server that lends runs")
			case len(w.Kinds) == 0:
				return exit.Misuse("name each kind that the program runs with --kind", "--kind is required")
			case len(args) == 0:
				return exit.Misuse("write it after two dashes, as in duly work --kind summarize -- python3 summarize.py", "it needs a program")
			case w.Concurrency < 1 || w.Concurrency > mostPrograms:
				return exit.Misuse("use a whole number", "--concurrency must be between 1 and %d, not %d", mostPrograms, w.Concurrency)
			case w.Lease < core.MinLoanLease || w.Lease > core.MaxLoanLease:
				return exit.Misuse("use a duration such as 1m", "--lease must be between %s and %s, not %s", core.MinLoanLease, core.MaxLoanLease, w.Lease)
			case w.Grace < 0:
				return exit.Misuse("0s stops programs at once", "--grace must not be negative, not %s", w.Grace)
			}
			if w.Logger, err = newLogger(o.Stderr, w.log); err != nil {
				return err
			}
			return command.OnServer(&at, func(c *remote.Client) error { return w.run(cmd.Context(), &at, c, args) })
		})
	cmd.Args = cobra.ArbitraryArgs // the program's
	flags := cmd.Flags()
	flags.StringArrayVar(&w.Kinds, "kind", nil, "a kind of task that the program runs; repeat it for several")
	flags.StringArrayVar(&w.Agents, "agent", nil, "only tasks of this agent; repeat it for several (default all that the token covers)")
	flags.IntVar(&w.Concurrency, "concurrency", 1, "maximum number of runs at once")
	command.DurationVar(flags, &w.Lease, "lease", core.DefaultLoanLease, "how long a run is held without a sign of life: when this machine dies its tasks start elsewhere after it")
	command.DurationVar(flags, &w.Grace, "grace", daemon.DefaultGrace, "how long programs may keep running after a signal to stop; 0s stops them at once")
	flags.BoolVar(&w.Once, "once", false, "claim once, run what is due, and end")
	flags.StringVar(&w.log, "log", "text", "format of the log: text or json")
	command.ZeroMeans(cmd, "grace")
	return o.WithProcessName(cmd)
}

// run makes runs until a signal arrives, with a program.
func (w *workOptions) run(ctx context.Context, at *command.Place, c *remote.Client, argv []string) error {
	// The program gets no secret of this process: not the token either.
	secrets := append(secretVariables(&dulyfile.File{}), strings.TrimPrefix(at.TokenBy, "$"))
	h, err := exec.New(exec.Config{Argv: argv, WithoutEnv: secrets, Children: &w.o.Children})
	if wrong, is := errors.AsType[*core.ConfigError](err); is {
		return exit.Misuse("see duly work --help", "the program %s", wrong.Reason)
	}
	w.Server, w.Handler, w.OnEvent = remote.Lending{Client: c}, h.Run, events.Log(ctx, &dulyfile.File{}, w.Logger)
	w.Name = cmp.Or(w.o.ProcessName, strings.TrimSpace(os.Getenv(command.EnvName)), hostAndPID())
	w.Logger.LogAttrs(ctx, slog.LevelInfo, "duly is working", slog.String("server", at.Address()), slog.String("kinds", strings.Join(w.Kinds, ", ")), slog.String("name", w.Name))
	called := tellsGrace(ctx, w.Grace, w.Logger)
	defer called()
	defer w.o.Children.Wait()
	err = worker.Run(ctx, w.Config)
	if core.CodeOf(err) == core.CodeForbidden {
		return &exit.Failure{Why: err, Todo: "use a token with the right work that covers these kinds, and name agents that it covers with --agent"}
	}
	return err
}

// hostAndPID is the name of a process that was given none, as [core.Config] has it.
func hostAndPID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return host + ":" + strconv.Itoa(os.Getpid())
}
