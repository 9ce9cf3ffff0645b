package reference

// The page of the command line.

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Commands is the page of a command line: each command that is shown, with its usage, examples and flags.
func Commands(root *cobra.Command) string {
	var b strings.Builder
	b.WriteString("# The command line\n\n" + generated + "\n```\n" + root.Long + "\n```\n\n## Flags of all commands\n\n")
	flags(&b, root.PersistentFlags())
	var groups []string
	for _, g := range root.Groups() {
		groups = append(groups, g.ID)
	}
	for _, group := range append(groups, "") {
		for _, c := range root.Commands() {
			if c.GroupID == group && c.IsAvailableCommand() {
				command(&b, c)
			}
		}
	}
	return b.String()
}

// command writes a command and those below it.
func command(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n```\n%s\n```\n", c.CommandPath(), sentence(c.Short), c.UseLine())
	if c.Long != "" && c.Long != c.Short {
		b.WriteString("\n" + prose(c.Long) + "\n")
	}
	if c.Example != "" {
		b.WriteString("\nExamples:\n\n```\n" + unindented(c.Example) + "\n```\n")
	}
	if c.HasAvailableLocalFlags() {
		b.WriteString("\n")
		flags(b, c.LocalFlags())
	}
	for _, below := range c.Commands() {
		if below.IsAvailableCommand() {
			command(b, below)
		}
	}
}

// flags writes a table of those flags that are shown.
func flags(b *strings.Builder, all *pflag.FlagSet) {
	b.WriteString("| flag | value | what it says | default |\n|---|---|---|---|\n")
	all.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name += ", `-" + f.Shorthand + "`"
		}
		def := f.DefValue
		switch def {
		case "", "0", "0s", "false", "[]":
			def = "" // none, or one that the text names
		default:
			def = "`" + def + "`"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", name, f.Value.Type(), cell(f.Usage), def)
	})
}

// prose is a text whose comments of YAML are shown as code, not as headings.
func prose(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "#") {
			lines[i] = "    " + line
		}
	}
	return strings.Join(lines, "\n")
}

// unindented removes the margin of an example.
func unindented(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		lines[i] = strings.TrimPrefix(lines[i], "  ")
	}
	return strings.Join(lines, "\n")
}
