package cli

// The commands man, schema and commands, which print what others read: pages for man, a schema for editors, and the commands for programs.

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-6f6f2c11/duly/internal/cli/catalogue"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/help"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// manCommand is for packages and for users who prefer man to --help: both are made of the same texts.
func manCommand(o *command.Options) *cobra.Command {
	cmd := command.New("man DIR", "Write the help of all commands as pages for man", "  duly man ~/.local/share/man/man1 && man duly-list",
		func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || args[0] == "" {
				return exit.Misuse("name it as DIR", "expected a folder")
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil { //nolint:gosec // everybody may read pages
				return exit.Misuse("name a folder that can be written", "%w", err)
			}
			written, err := manPages(o, cmd.Root(), args[0])
			if err != nil {
				return err
			}
			answer := struct {
				Pages int `json:"pages"`
			}{written}
			return o.Print(answer, func(w *table.Page) { w.Line("wrote %s to %s", table.Count(written, "page"), args[0]) })
		})
	cmd.Args = cobra.ArbitraryArgs
	cmd.ValidArgsFunction = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return nil, cobra.ShellCompDirectiveFilterDirs
	}
	return o.WithJSON(cmd)
}

// manPages writes the page of a command, and those of the commands below it.
func manPages(o *command.Options, cmd *cobra.Command, dir string) (written int, err error) {
	page := manPage(cmd, command.VersionOr(o.Version))
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(page), 0o644); err != nil { //nolint:gosec // everybody may read pages
		return written, err
	}
	written++
	for _, sub := range cmd.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		more, err := manPages(o, sub, dir)
		if written += more; err != nil {
			return written, err
		}
	}
	return written, nil
}

// manPage is the page of a command, in the language of roff.
func manPage(cmd *cobra.Command, version string) string {
	var b strings.Builder
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	// It has no date, so that the same version writes the same pages.
	fmt.Fprintf(&b, ".TH %q \"1\" \"\" %q \"duly\"\n", strings.ToUpper(name), roff("duly "+version))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n.SH SYNOPSIS\n.B %s\n", roff(name), roff(cmd.Short), roff(cmd.UseLine()))
	if cmd.Long != "" {
		fmt.Fprintf(&b, ".SH DESCRIPTION\n.nf\n%s\n.fi\n", roff(cmd.Long))
	}
	var below []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			below = append(below, fmt.Sprintf(".TP\n.BR %s (1)\n%s\n", roff(name+"-"+sub.Name()), roff(sub.Short)))
		}
	}
	if below != nil {
		b.WriteString(".SH COMMANDS\n" + strings.Join(below, ""))
	}
	manFlags(&b, "OPTIONS", cmd.NonInheritedFlags())
	manFlags(&b, "OPTIONS OF ALL COMMANDS", cmd.InheritedFlags())
	if cmd.Example != "" {
		fmt.Fprintf(&b, ".SH EXAMPLES\n.nf\n%s\n.fi\n", roff(cmd.Example))
	}
	if cmd.HasParent() {
		fmt.Fprintf(&b, ".SH SEE ALSO\n.BR %s (1)\n", roff(strings.ReplaceAll(cmd.Parent().CommandPath(), " ", "-")))
	}
	return b.String()
}

// manFlags writes a section about flags, if there are any.
func manFlags(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	b.WriteString(".SH " + title + "\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		kind, text := pflag.UnquoteUsage(f)
		line := "--" + f.Name
		if f.Shorthand != "" {
			line = "-" + f.Shorthand + ", " + line
		}
		if kind != "" {
			line += " " + kind
		}
		fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(line), roff(strings.ReplaceAll(text, "\n", " ")))
	})
}

// roff is a text that means nothing else to roff: no line of it begins with a dot or a quote, and a hyphen can be copied.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}

// commandsCommand describes the commands for programs: the help of all of them, in one answer that no terminal has wrapped.
func commandsCommand(o *command.Options) *cobra.Command {
	cmd := command.New("commands [COMMAND...]", "List the commands; with --json with each argument, flag, type, default and exit code, for programs and agents",
		"  duly commands --json\n  duly commands submit --json\n  duly commands limit set",
		func(cmd *cobra.Command, args []string) error {
			names := args
			if len(args) > 1 { // a command of two words, or several commands
				if _, unknown := catalogue.Of(cmd.Root(), "", []string{strings.Join(args, " ")}); len(unknown) == 0 {
					names = []string{strings.Join(args, " ")}
				}
			}
			some, unknown := catalogue.Of(cmd.Root(), command.VersionOr(o.Version), names)
			if len(unknown) > 0 {
				return noCommand(cmd.Root(), unknown[0])
			}
			return o.Print(some, func(w *table.Page) { printCommands(w, &some, len(args) > 0) })
		})
	cmd.Args = cobra.ArbitraryArgs
	cmd.ValidArgsFunction = func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return commandNames(cmd.Root()), cobra.ShellCompDirectiveNoFileComp
	}
	return o.WithJSON(cmd)
}

// commandNames are the names of all commands.
func commandNames(root *cobra.Command) []string {
	all, _ := catalogue.Of(root, "", nil)
	names := make([]string, len(all.Commands))
	for i := range all.Commands {
		names[i] = all.Commands[i].Name
	}
	return names
}

// noCommand is the failure for a name that no command has.
func noCommand(root *cobra.Command, name string) error {
	f := exit.Misuse(help.DidYouMean(name, commandNames(root))+"see duly commands", "no command is called %q", name)
	f.Code = exit.NotFound
	return f
}

// printCommands writes a line for each command, or, of those that were named, the flags too.
func printCommands(w *table.Page, all *catalogue.Catalogue, flags bool) {
	if !flags {
		t := table.New(w, "COMMAND", "WHAT IT DOES")
		for i := range all.Commands {
			t.Row(all.Commands[i].Name, all.Commands[i].Summary)
		}
		t.End()
		return
	}
	for i := range all.Commands {
		c := &all.Commands[i]
		w.Line("%s: %s", c.Usage, c.Summary)
		if len(c.Flags) == 0 {
			continue
		}
		t := table.New(w, "FLAG", "TYPE", "DEFAULT", "WHAT IT SAYS")
		for _, f := range c.Flags {
			t.Row("--"+f.Name, f.Type, cmp.Or(f.Default, "-"), f.Text)
		}
		t.End()
	}
}

// schemaCommand needs neither a store nor a file: editors take what it prints.
func schemaCommand(o *command.Options) *cobra.Command {
	cmd := command.New("schema", "Print the JSON Schema of duly.yaml, for editors", "  duly schema > duly.schema.json",
		func(*cobra.Command, []string) error {
			_, err := io.WriteString(o.Stdout, dulyfile.Schema())
			return err
		})
	cmd.Long = `Print a JSON Schema (draft 2020-12) of duly.yaml. An editor with a YAML language server completes and checks
the file by it, if this is its first line:

# yaml-language-server: $schema=duly.schema.json`
	return cmd
}
