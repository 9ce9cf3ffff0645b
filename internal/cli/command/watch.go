package command

// --watch, which repeats a command until it is interrupted.

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
)

// How often --watch repeats a command if it does not say, and at most.
const (
	WatchEvery = 2 * time.Second
	watchLeast = 100 * time.Millisecond
)

// WithWatch gives a command the flag --watch.
func (o *Options) WithWatch(cmd *cobra.Command) *cobra.Command {
	DurationVar(cmd.Flags(), &o.Watch, "watch", 0, "repeat until Ctrl-C, every 2s or as given: redraws a terminal, and adds a line each time with --json")
	cmd.Flags().Lookup("watch").NoOptDefVal = WatchEvery.String()
	return cmd
}

// JoinWatch joins --watch and an interval after it into one argument, as pflag takes an optional value only with an equals sign.
func JoinWatch(args []string) []string {
	var joined []string
	for i := 0; i < len(args); i++ {
		if args[i] == "--" {
			return append(joined, args[i:]...)
		}
		if args[i] == "--watch" && i+1 < len(args) {
			if _, err := inspect.ParseDuration(args[i+1]); err == nil {
				joined = append(joined, "--watch="+args[i+1])
				i++
				continue
			}
		}
		joined = append(joined, args[i])
	}
	return joined
}

// again does something once, or with --watch until ctx is done, which is how a user ends it and no error. A store that is away for a moment
// does not end it, once it has answered.
func (o *Options) again(ctx context.Context, do func() error) error {
	if o.Watch == 0 {
		return do()
	}
	if o.Watch < watchLeast {
		return exit.Misuse("use "+watchLeast.String()+" or more", "--watch %s would ask too often", o.Watch)
	}
	for answered := false; ; answered = true {
		err := do()
		ended := ctx.Err() != nil
		if err != nil && !ended && (!answered || core.CodeOf(err) != core.CodeUnavailable) {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(o.Watch):
		}
	}
}
