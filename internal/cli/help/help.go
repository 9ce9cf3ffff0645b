// Package help writes the help of a command as wide as a terminal is, with its flags in groups where it has many.
package help

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-6f6f2c11/duly/internal/cli/catalogue"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// Group are flags that the help shows together.
type Group struct {
	Title string
	Flags []string
}

// groups is the annotation of a command with the titles of its groups, in their order, a line each.
const groups = "duly_groups"

// InGroups puts flags of a command in groups. All others are shown after them.
func InGroups(cmd *cobra.Command, of []Group) error {
	titles := make([]string, len(of))
	for i, g := range of {
		titles[i] = g.Title
		for _, name := range g.Flags {
			if err := cmd.Flags().SetAnnotation(name, catalogue.Group, []string{g.Title}); err != nil {
				return err
			}
		}
	}
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[groups] = strings.Join(titles, "\n")
	return nil
}

// Text is the whole help of a command: what it does, and how it is used. A width of zero wraps nothing.
func Text(cmd *cobra.Command, width int) string {
	about := strings.TrimRight(cmd.Long, "\n")
	if about == "" {
		about = cmd.Short
	}
	var b strings.Builder
	for line := range strings.Lines(about) {
		b.WriteString(table.Wrap(strings.TrimRight(line, "\n"), width, "") + "\n")
	}
	if cmd.Runnable() || cmd.HasSubCommands() {
		b.WriteString("\n" + Usage(cmd, width))
	}
	return b.String()
}

// Usage is how a command is used. Examples and the line of its usage are to be copied, and are not wrapped.
func Usage(cmd *cobra.Command, width int) string {
	var b strings.Builder
	b.WriteString("Usage:")
	if cmd.Runnable() {
		b.WriteString("\n  " + cmd.UseLine())
	}
	if cmd.HasAvailableSubCommands() {
		b.WriteString("\n  " + cmd.CommandPath() + " [command]")
	}
	b.WriteString("\n")
	if cmd.Example != "" {
		b.WriteString("\nExamples:\n" + cmd.Example + "\n")
	}
	below(&b, cmd, width)
	local, rest := cmd.LocalFlags(), "Flags"
	if titles := cmd.Annotations[groups]; titles != "" {
		rest = "Other flags"
		for title := range strings.SplitSeq(titles, "\n") {
			section(&b, title, only(local, title), width)
		}
	}
	section(&b, rest, only(local, ""), width)
	section(&b, "Global Flags", cmd.InheritedFlags(), width)
	if cmd.HasAvailableSubCommands() {
		fmt.Fprintf(&b, "\nUse \"%s [command] --help\" for more information about a command.\n", cmd.CommandPath())
	}
	return b.String()
}

// below lists the commands below one, by their groups.
func below(b *strings.Builder, cmd *cobra.Command, width int) {
	list := func(title, group string) {
		var all []*cobra.Command
		for _, sub := range cmd.Commands() {
			if sub.GroupID == group && (sub.IsAvailableCommand() || sub.Name() == "help") {
				all = append(all, sub)
			}
		}
		if len(all) == 0 {
			return
		}
		b.WriteString("\n" + title + "\n")
		for _, sub := range all {
			name := fmt.Sprintf("  %-*s ", sub.NamePadding(), sub.Name())
			b.WriteString(table.Wrap(name+sub.Short, width, strings.Repeat(" ", len(name))) + "\n")
		}
	}
	for _, g := range cmd.Groups() {
		list(g.Title, g.ID)
	}
	title := "Available Commands:"
	if len(cmd.Groups()) > 0 {
		title = "Additional Commands:"
	}
	list(title, "")
}

// section writes flags, if there are any.
func section(b *strings.Builder, title string, flags *pflag.FlagSet, width int) {
	if !flags.HasAvailableFlags() {
		return
	}
	b.WriteString("\n" + title + ":\n")
	if width <= 0 {
		b.WriteString(strings.TrimRight(flags.FlagUsages(), " \n") + "\n")
		return
	}
	// Each flag is one line, whose text begins at the same column: that is where what is wrapped goes on.
	at, joined := 0, pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.VisitAll(func(f *pflag.Flag) {
		one := *f
		one.Usage = strings.ReplaceAll(f.Usage, "\n", " ")
		joined.AddFlag(&one)
		name, _ := pflag.UnquoteUsage(f)
		at = max(at, len("      --")+len(f.Name)+len(name)+len("    "))
	})
	for line := range strings.Lines(joined.FlagUsages()) {
		b.WriteString(table.Wrap(strings.TrimRight(line, " \n"), width, strings.Repeat(" ", min(at, width/2))) + "\n")
	}
}

// only are the flags of one group, or those of none for an empty title.
func only(all *pflag.FlagSet, title string) *pflag.FlagSet {
	some := pflag.NewFlagSet("", pflag.ContinueOnError)
	all.VisitAll(func(f *pflag.Flag) {
		if in := f.Annotations[catalogue.Group]; title == "" && len(in) == 0 || slices.Contains(in, title) {
			some.AddFlag(f)
		}
	})
	return some
}
