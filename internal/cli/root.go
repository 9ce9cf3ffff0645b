package cli

// The command line: groups, flags that all have, and what they refuse.

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/doctor"
	"github.com/seed-6f6f2c11/duly/internal/cli/due"
	"github.com/seed-6f6f2c11/duly/internal/cli/events"
	"github.com/seed-6f6f2c11/duly/internal/cli/help"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// root makes a tree for each command line, so that tests can run several in one process.
func root(p *command.Process) *cobra.Command {
	o := &command.Options{Process: p}
	root := &cobra.Command{
		Use:   "duly",
		Short: "Run due tasks for AI agents",
		Long: `duly runs due tasks for AI agents: a thousand or a million agents, each with tasks
that fall due, kept in one Redis.

Redis is named by --redis, by $DULY_REDIS_URL or by "redis:" in the file, in that
order; so are its certificates (--redis-ca, $DULY_REDIS_CA, "redis_ca:" ...). Without
a Redis, tasks are kept in a folder of one machine (--store, $DULY_STORE, "store:"):
a daemon has it open, and other commands reach that daemon by themselves.

With --server or $DULY_SERVER a command asks a running duly daemon --http or duly
serve instead; duly context keeps servers and stores by names.

Exit codes: 0 ok, 1 failed for good, 2 usage or invalid input, 3 not found, 4 some
runs failed, 5 away, busy or full: try again, 6 not allowed, 7 conflict. With --json
an error is an object on standard error: code, field, detail, hint, exit_code.`,
		// Errors are printed by execute, in one line and without the help, which
		// would push the error off the screen.
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return o.CheckHere(cmd) },
	}
	root.Version = command.VersionOr(o.Version)
	root.SetVersionTemplate(versionLine(root.Version) + "\n")
	flags := root.PersistentFlags()
	flags.StringVarP(&o.File, "config", "c", "", "the file with handlers, tasks and settings")
	flags.StringVar(&o.Redis.URL, "redis", "", "URL of the Redis, such as redis://127.0.0.1:6379/0, redis+cluster://host1,host2 or\nredis+sentinel://host1,host2/mymaster/0; rediss for TLS")
	flags.StringVar(&o.Store, "store", "", "where tasks are kept without a Redis: file:FOLDER, or memory, which ends with the process\n(default duly/store in the folder for state)")
	flags.StringVar(&o.Redis.CAFile, "redis-ca", "", "PEM file of the CA that signed the certificate of a rediss:// Redis (default: the system's CAs)")
	flags.StringVar(&o.Redis.CertFile, "redis-cert", "", "PEM file of the client certificate, if Redis asks for one")
	flags.StringVar(&o.Redis.KeyFile, "redis-key", "", "PEM file of the client certificate's key")
	// Every flag has an empty default: the real one belongs to the file or to
	// core, and a flag must not hide it.
	flags.StringVar(&o.Redis.Prefix, "prefix", "", `prefix of every key in Redis (default "duly:")`)
	flags.StringVar(&o.Server.URL, "server", "", "URL of a running duly daemon --http or duly serve, which the command asks in place of a Redis")
	flags.StringVar(&o.Server.Token, "token", "", "bearer token of the server (default the first of $DULY_TOKEN, which other users of this machine cannot see)")
	flags.BoolVar(&o.Server.InsecureHTTP, "insecure-http", false, "send the token over http:// to another machine")
	flags.StringVar(&o.Context, "context", "", "the context to use; see duly context")
	flags.BoolVar(&o.Wide, "wide", false, "cut nothing on a terminal, and show times in full")
	flags.StringVar(&o.DefaultAgent, "default-agent", "", "owner of the tasks of the file that name none")
	addGroups(root, o)
	setHelp(root, o.Stdout)
	o.Complete(root)
	_ = root.RegisterFlagCompletionFunc("context", func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		return o.Find(cmd, args, typed, command.ContextNames)
	}) // which fails only for a flag that does not exist
	return root
}

// setHelp makes the help of all commands as wide as a terminal is.
func setHelp(root *cobra.Command, out io.Writer) {
	width := func() int {
		columns, _ := table.Size(out)
		return columns
	}
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { cmd.Print(help.Text(cmd, width())) })
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		cmd.Print(help.Usage(cmd, width()))
		return nil
	})
}

// addGroups adds the commands, in groups for the help.
// Help lists them in this order: the most used come first.
func addGroups(root *cobra.Command, o *command.Options) {
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Run what is due:", []*cobra.Command{due.Daemon(o), due.Serve(o), due.RunDue(o), due.Work(o)}},
		{"Submit:", []*cobra.Command{submitCommand(o), applyCommand(o), activityCommand(o), signalCommand(o), approvalCommand(o), approvalsCommand(o), presetsCommand(o), nextCommand(o), importCommand(o), mcpCommand(o)}},
		{"Look:", []*cobra.Command{
			listCommand(o), statusCommand(o), waitCommand(o), explainCommand(o), runsCommand(o), logsCommand(o), jobsCommand(o), agentsCommand(o), topCommand(o), pausesCommand(o), processesCommand(o),
			kindsCommand(o), queueCommand(o), statsCommand(o), events.Command(o), healthCommand(o), doctor.Command(o), doctor.Audit(o), upgradeCommand(o),
			repartitionCommand(o),
		}},
		{"Control:", []*cobra.Command{
			pauseCommand(o), resumeCommand(o), runCommand(o), cancelCommand(o), deleteCommand(o), replayCommand(o), editCommand(o), bulkCommand(o),
			limitCommand(o), budgetCommand(o), agentCommand(o),
		}},
		{"Set up:", []*cobra.Command{contextCommand(o), storeCommand(o)}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, cmd := range g.commands {
			cmd.GroupID = g.title
			root.AddCommand(cmd)
		}
	}
	root.AddCommand(versionCommand(o), schemaCommand(o), manCommand(o), commandsCommand(o))
}

// Commands is the tree of commands of duly, for what describes it. It is not to be run.
func Commands() *cobra.Command { return root(&command.Process{}) }
