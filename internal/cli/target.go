package cli

// What a pause or a resume is about.

import (
	"cmp"
	"os"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// targetFlags name what is paused or resumed.
// Exactly one of them may be given: see target.
type targetFlags struct {
	agent, kind, key string
	all              bool
}

// add gives pause and resume the same flags, so that resume takes the flags that pause took.
func (f *targetFlags) add(cmd *cobra.Command) {
	named(cmd, &f.agent)
	flags := cmd.Flags()
	flags.StringVar(&f.kind, "kind", "", "all tasks of this kind")
	flags.StringVar(&f.key, "key", "", "all tasks with this limit key")
	flags.BoolVar(&f.all, "all", false, "all tasks of all agents")
}

// target is the one that is named. Nothing named is never all.
// A variable that is empty in a script must not pause everything, which only --all does.
func (f *targetFlags) target(cmd *cobra.Command, args []string) (core.Target, error) {
	// --agent is the first argument under another name.
	if f.agent != "" {
		args = append([]string{f.agent}, args...)
	}
	given := 0
	for _, is := range []bool{len(args) > 0, cmd.Flags().Changed("kind"), cmd.Flags().Changed("key"), f.all} {
		if is {
			given++
		}
	}
	const todo = "name an AGENT, an AGENT and the ID of a task, --kind, --key or --all"
	if given != 1 || len(args) > 2 {
		return core.Target{}, exit.Misuse(todo, "expected exactly one target")
	}
	t := core.Target{Kind: f.kind, Key: f.key}
	switch len(args) {
	// The longer form includes the shorter one: a task has an agent.
	case 2:
		t.ID = args[1]
		fallthrough
	case 1:
		t.Agent = args[0]
	}
	if t == (core.Target{}) && !f.all || len(args) == 2 && t.ID == "" {
		return core.Target{}, exit.Misuse(todo, "the target has no name")
	}
	return t, nil
}

// targetName is a target for people.
// It is used in sentences, so it begins with a noun.
func targetName(t core.Target) string {
	switch {
	case t.ID != "":
		return "task " + table.ShellWord(t.ID) + " of agent " + table.ShellWord(t.Agent)
	case t.Agent != "":
		return "agent " + table.ShellWord(t.Agent)
	case t.Kind != "":
		return "kind " + table.ShellWord(t.Kind)
	case t.Key != "":
		return "limit key " + table.ShellWord(t.Key)
	default:
		return "everything"
	}
}

// targetArgs are the arguments that name a target.
// The result can follow "duly resume" or "duly pause" verbatim.
func targetArgs(t core.Target) string {
	switch {
	case t.ID != "":
		return taskArgs(t.Agent, t.ID)
	case t.Agent != "":
		return table.ShellWord(t.Agent)
	case t.Kind != "":
		return "--kind " + table.ShellWord(t.Kind)
	case t.Key != "":
		return "--key " + table.ShellWord(t.Key)
	default:
		return "--all"
	}
}

// taskArgs are the two arguments that name a task.
func taskArgs(agent, id string) string { return table.ShellWord(agent) + " " + table.ShellWord(id) }

// userName is the name of the user who runs the program, as far as the environment says.
// It is a convenience and no proof: any user can set these variables.
func userName() string {
	return cmp.Or(os.Getenv("USER"), os.Getenv("LOGNAME"), os.Getenv("USERNAME"))
}

// pauseText is a pause for people.
// Only what was said is written: a pause may have neither an end nor a reason.
func pauseText(p *model.PauseInfo) string {
	text := targetName(p.Target) + ", since " + table.Clock(p.Since)
	if !p.Until.IsZero() {
		text += " until " + table.Clock(p.Until)
	}
	if p.By != "" {
		text += ", by " + p.Who()
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}
