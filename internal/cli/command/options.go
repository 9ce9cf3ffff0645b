package command

// The flags that several commands have.

import (
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/internal/cli/remote"
)

// Options are the flags that several commands have, and the process that reads them: all that a command needs.
// There is one for each command line. Commands add flags to it; root has those that all of them share.
type Options struct {
	*Process // that it runs in

	File        string
	Redis       redisstore.Config
	Store       string // a folder, or memory
	Server      remote.Config
	Context     string
	Here        bool // the command works without a server: see OnlyHere
	JSON        bool
	Wide        bool          // nothing is cut
	Watch       time.Duration // after which the command is repeated; zero for once
	ProcessName string        // of a process that runs tasks

	DefaultAgent string // of the tasks of the file
}

// EnvName is the variable of --name.
// It sets the name for all commands of a machine at once, for instance to the name of a Kubernetes pod.
const EnvName = "DULY_NAME"

// envZone and envDefaultAgent are the variables of zone: and default_agent: in the file, which count before those.
const (
	envZone         = "DULY_ZONE"
	envDefaultAgent = "DULY_DEFAULT_AGENT"
)

// WithProcessName gives a command that runs tasks the flag --name.
// The name appears in the history of a task, so that a person finds the process whose log has the run.
func (o *Options) WithProcessName(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&o.ProcessName, "name", "", "name of this process in the run history (default host and process id)")
	return cmd
}

// WithJSON gives a command the flag --json.
// With --json nothing but JSON goes to stdout, also when there is nothing to list.
func (o *Options) WithJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&o.JSON, "json", false, "write JSON, for programs")
	return cmd
}

// duration is a flag that is written as the file and the API have it: also with days, and as ISO 8601 does.
type duration time.Duration

// DurationVar declares one.
func DurationVar(flags *pflag.FlagSet, into *time.Duration, name string, def time.Duration, usage string) {
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
