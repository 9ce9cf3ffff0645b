package command

// Completion: the names of agents, tasks, kinds, states and contexts, as the store or the server has them now.

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/internal/cli/contexts"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// completeWithin is how long a shell waits for names: a person has pressed a key.
const completeWithin = time.Second

// names finds names to complete a command line. After an error there are none: completion cannot show errors.
type names func(ctx context.Context, cmd *cobra.Command, args []string) ([]string, error)

// Complete gives all commands below one the completion of their arguments, by what their usage calls these, and of the flags with the same names
// everywhere.
func (o *Options) Complete(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		o.Complete(sub)
	}
	flags := map[string]names{"agent": o.agentNames, "agents": o.agentNames, "kind": o.kindNames, "status": statusNames}
	for name, find := range flags {
		if cmd.Flags().Lookup(name) == nil {
			continue
		}
		// It fails if the command has words of its own, which are better.
		_ = cmd.RegisterFlagCompletionFunc(name, func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			return o.Find(cmd, args, typed, find)
		})
	}
	wanted := strings.Fields(strings.NewReplacer("[", "", "]", "").Replace(cmd.Use))
	switch {
	case cmd.ValidArgs != nil || len(wanted) < 2 || wanted[1] == "DIR":
	case wanted[1] == "COMMAND...": // it knows them itself
	case wanted[1] == "FILE":
		cmd.ValidArgsFunction = nil // shells know files themselves
	default:
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			return o.Find(cmd, args, typed, o.argument(cmd, wanted[1:], len(args)))
		}
	}
}

// argument finds what the next argument of a command can be; nil for nothing that is known.
func (o *Options) argument(cmd *cobra.Command, wanted []string, at int) names {
	if f := cmd.Flags().Lookup("agent"); f != nil && f.Changed && wanted[0] == "AGENT" {
		at++
	}
	last := wanted[len(wanted)-1]
	if at >= len(wanted) && strings.HasSuffix(last, "...") {
		at = len(wanted) - 1
	}
	if at >= len(wanted) {
		return nil
	}
	switch strings.TrimSuffix(wanted[at], "...") {
	case "AGENT":
		return o.agentNames
	case "ID":
		return o.taskNames
	case "KIND":
		return o.kindNames
	case "NAME":
		return ContextNames
	default:
		return nil
	}
}

// Find asks for names, and keeps those that begin as typed. A name that a terminal could take for more than text is omitted.
func (o *Options) Find(cmd *cobra.Command, args []string, typed string, ask names) ([]string, cobra.ShellCompDirective) {
	if ask == nil || cmd.Context() == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completeWithin)
	defer cancel()
	o.Watch = 0 // it may be on the line that is completed
	all, err := ask(ctx, cmd, args)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all = slices.DeleteFunc(all, func(name string) bool { return !strings.HasPrefix(name, typed) || table.Plain(name) != name })
	slices.Sort(all)
	return slices.Compact(all), cobra.ShellCompDirectiveNoFileComp
}

// agentNames are agents with live tasks: of many, those that the first page has.
func (o *Options) agentNames(ctx context.Context, _ *cobra.Command, _ []string) (found []string, err error) {
	err = o.OnStore(ctx, func(s Scheduler) error {
		all, _, err := s.Agents(ctx, inspect.MaxPage, "")
		for i := range all {
			found = append(found, all[i].Agent)
		}
		return err
	})
	return found, err
}

// taskNames are tasks of the agent that is named before.
func (o *Options) taskNames(ctx context.Context, cmd *cobra.Command, args []string) (found []string, err error) {
	l := core.List{Limit: inspect.MaxPage}
	if f := cmd.Flags().Lookup("agent"); f != nil && f.Changed {
		l.Agent = f.Value.String()
	} else if len(args) > 0 {
		l.Agent, args = args[0], args[1:]
	}
	if l.Agent == "" {
		return nil, nil
	}
	err = o.OnStore(ctx, func(s Scheduler) error {
		all, _, err := s.Tasks(ctx, l)
		for i := range all {
			if !slices.Contains(args, all[i].ID) { // it is on the line already
				found = append(found, all[i].ID)
			}
		}
		return err
	})
	return found, err
}

// kindNames are the kinds of tasks that the store has had.
func (o *Options) kindNames(ctx context.Context, _ *cobra.Command, _ []string) (found []string, err error) {
	err = o.OnStore(ctx, func(s Scheduler) error {
		found, err = KindsOf(ctx, s)
		return err
	})
	return found, err
}

// KindsOf are the kinds that a store has counted.
func KindsOf(ctx context.Context, s Scheduler) ([]string, error) {
	stats, err := s.Stats(ctx)
	var kinds []string
	for i := range stats.Kinds {
		kinds = append(kinds, stats.Kinds[i].Kind)
	}
	return kinds, err
}

// statusNames are the states of tasks.
func statusNames(context.Context, *cobra.Command, []string) ([]string, error) {
	return []string{
		string(core.StatusWaiting), string(core.StatusInProgress), string(core.StatusCompleted), string(core.StatusFailed), string(core.StatusCancelled),
	}, nil
}

// ContextNames are those of the file of contexts.
func ContextNames(context.Context, *cobra.Command, []string) ([]string, error) {
	f, err := contexts.Load()
	if err != nil {
		return nil, err
	}
	return f.Names(), nil
}
