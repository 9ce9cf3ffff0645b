package cli

// The command line: groups, flags that all have, and what they refuse.

import (
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/help"
	"github.com/seed-6f6f2c11/duly/internal/cli/remote"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// options are the flags that several commands have, and the process that reads them: all that a command needs.
// There is one for each command line. Commands add flags to it; root has those that all of them share.
type options struct {
	*process // that it runs in

	file    string
	redis   redisstore.Config
	store   string // a folder, or memory
	server  remote.Config
	context string
	here    bool // the command works without a server: see onlyHere
	json    bool
	wide    bool          // nothing is cut
	watch   time.Duration // after which the command is repeated; zero for once
	name    string        // of a process that runs tasks

	defaultAgent string // of the tasks of the file
}

// root makes a tree for each command line, so that tests can run several in one process.
func root(p *process) *cobra.Command {
	o := &options{process: p}
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
		// Errors are printed by process.run, in one line and without the help, which
		// would push the error off the screen.
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return o.checkHere(cmd) },
	}
	root.Version = versionOr(o.version)
	root.SetVersionTemplate(versionLine(root.Version) + "\n")
	flags := root.PersistentFlags()
	flags.StringVarP(&o.file, "config", "c", "", "the file with handlers, tasks and settings")
	flags.StringVar(&o.redis.URL, "redis", "", "URL of the Redis, such as redis://127.0.0.1:6379/0, redis+cluster://host1,host2 or\nredis+sentinel://host1,host2/mymaster/0; rediss for TLS")
	flags.StringVar(&o.store, "store", "", "where tasks are kept without a Redis: file:FOLDER, or memory, which ends with the process\n(default duly/store in the folder for state)")
	flags.StringVar(&o.redis.CAFile, "redis-ca", "", "PEM file of the CA that signed the certificate of a rediss:// Redis (default: the system's CAs)")
	flags.StringVar(&o.redis.CertFile, "redis-cert", "", "PEM file of the client certificate, if Redis asks for one")
	flags.StringVar(&o.redis.KeyFile, "redis-key", "", "PEM file of the client certificate's key")
	// Every flag has an empty default: the real one belongs to the file or to
	// core, and a flag must not hide it.
	flags.StringVar(&o.redis.Prefix, "prefix", "", `prefix of every key in Redis (default "duly:")`)
	flags.StringVar(&o.server.URL, "server", "", "URL of a running duly daemon --http or duly serve, which the command asks in place of a Redis")
	flags.StringVar(&o.server.Token, "token", "", "bearer token of the server (default the first of $DULY_TOKEN, which other users of this machine cannot see)")
	flags.BoolVar(&o.server.InsecureHTTP, "insecure-http", false, "send the token over http:// to another machine")
	flags.StringVar(&o.context, "context", "", "the context to use; see duly context")
	flags.BoolVar(&o.wide, "wide", false, "cut nothing on a terminal, and show times in full")
	flags.StringVar(&o.defaultAgent, "default-agent", "", "owner of the tasks of the file that name none")
	addGroups(root, o)
	setHelp(root, o.stdout)
	o.complete(root)
	_ = root.RegisterFlagCompletionFunc("context", func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		return o.find(cmd, args, typed, contextNames)
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
func addGroups(root *cobra.Command, o *options) {
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Run what is due:", []*cobra.Command{daemonCommand(o), serveCommand(o), runDueCommand(o), workCommand(o)}},
		{"Submit:", []*cobra.Command{submitCommand(o), applyCommand(o), activityCommand(o), signalCommand(o), approvalCommand(o), approvalsCommand(o), presetsCommand(o), nextCommand(o), importCommand(o), mcpCommand(o)}},
		{"Look:", []*cobra.Command{
			listCommand(o), statusCommand(o), waitCommand(o), explainCommand(o), runsCommand(o), logsCommand(o), jobsCommand(o), agentsCommand(o), topCommand(o), pausesCommand(o), processesCommand(o),
			kindsCommand(o), queueCommand(o), statsCommand(o), eventsCommand(o), healthCommand(o), doctorCommand(o), auditCommand(o), upgradeCommand(o),
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

// command makes a command whose errors are explained.
// It has no arguments unless the caller sets Args, and completes no file
// names, as none of the arguments is one.
func command(use, short, example string, run func(cmd *cobra.Command, args []string) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Example: example, Args: cobra.NoArgs, ValidArgsFunction: cobra.NoFileCompletions,
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

// maySayNothing marks a flag of which the empty string or zero means what it says.
// saysSomething skips flags with this annotation.
const maySayNothing = "duly_zero"

// zeroMeans lets flags of a command be empty or zero.
func zeroMeans(cmd *cobra.Command, names ...string) {
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
		case given == "0" || given == "0s":
			err = exit.Misuse("leave it out for the default", "--%s must not be %s", f.Name, given)
		}
	})
	return err
}

// envName is the variable of --name.
// It sets the name for all commands of a machine at once, for instance to the name of a Kubernetes pod.
const envName = "DULY_NAME"

// envZone and envDefaultAgent are the variables of zone: and default_agent: in the file, which count before those.
const (
	envZone         = "DULY_ZONE"
	envDefaultAgent = "DULY_DEFAULT_AGENT"
)

// withName gives a command that runs tasks the flag --name.
// The name appears in the history of a task, so that a person finds the process whose log has the run.
func (o *options) withName(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&o.name, "name", "", "name of this process in the run history (default host and process id)")
	return cmd
}

// withJSON gives a command the flag --json.
// With --json nothing but JSON goes to stdout, also when there is nothing to list.
func (o *options) withJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&o.json, "json", false, "write JSON, for programs")
	return cmd
}

// Commands is the tree of commands of duly, for what describes it. It is not to be run.
func Commands() *cobra.Command { return root(&process{}) }

// duration is a flag that is written as the file and the API have it: also with days, and as ISO 8601 does.
type duration time.Duration

// durationVar declares one.
func durationVar(flags *pflag.FlagSet, into *time.Duration, name string, def time.Duration, usage string) {
	*into = def
	flags.Var((*duration)(into), name, usage)
	if def == 0 {
		flags.Lookup(name).DefValue = "" // the usage says what none means
	}
}

// Set reads the value.
func (d *duration) Set(text string) error {
	read, err := schedule.ParseDuration(text)
	if err == nil {
		*d = duration(read)
	}
	return err
}

// String is the value as Go writes it.
func (d *duration) String() string { return time.Duration(*d).String() }

// Type is what the usage calls it.
func (*duration) Type() string { return "duration" }
