// Package catalogue describes a command line for programs: every command with its arguments and flags, their types, defaults and values, and the exit
// codes that it ends with. It is read from the commands themselves, so that it cannot differ from what they take.
package catalogue

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
)

// Annotations of commands and flags.
const (
	Here   = "duly_here"   // of a command: why no server can do it
	Values = "duly_values" // of a flag: the words that it takes
	Group  = "duly_group"  // of a flag: under which title the help shows it
)

// Catalogue describes a command line.
type Catalogue struct {
	Version  string         `json:"version"`
	Commands []Command      `json:"commands"`
	Flags    []Flag         `json:"flags"` // of every command
	Exits    []exit.Meaning `json:"exit_codes"`
}

// Command is one command.
type Command struct {
	Name      string     `json:"name"` // as typed after duly, such as limit set
	Group     string     `json:"group,omitempty"`
	Summary   string     `json:"summary"`
	Text      string     `json:"description,omitempty"`
	Usage     string     `json:"usage"`
	Arguments []Argument `json:"arguments"`
	Below     []string   `json:"subcommands,omitempty"`
	Flags     []Flag     `json:"flags"`
	Examples  []string   `json:"examples"`
	Server    bool       `json:"server"` // whether --server may be given
	NoServer  string     `json:"no_server,omitempty"`
	Exits     []int      `json:"exit_codes"` // that it may end with
}

// Argument is a word after the name of a command.
type Argument struct {
	Name     string   `json:"name"`
	Optional bool     `json:"optional,omitempty"`
	Repeated bool     `json:"repeated,omitempty"`
	Values   []string `json:"values,omitempty"`
}

// Flag is one flag.
type Flag struct {
	Name     string   `json:"name"` // without dashes
	Short    string   `json:"short,omitempty"`
	Type     string   `json:"type"` // string, boolean, integer, number or duration
	Repeated bool     `json:"repeated,omitempty"`
	Default  string   `json:"default,omitempty"` // as it would be given, or in words
	Values   []string `json:"values,omitempty"`
	Group    string   `json:"group,omitempty"`
	Text     string   `json:"summary"`
}

// Of describes the commands below root that are named, as typed after the program, with those below them; all commands if none is named. It returns which
// of the names are none.
func Of(root *cobra.Command, version string, names []string) (c Catalogue, unknown []string) {
	c = Catalogue{Version: version, Commands: []Command{}, Flags: flagsOf(root.PersistentFlags()), Exits: exit.Meanings()}
	found := map[string]bool{}
	wanted := func(name string) bool {
		is := len(names) == 0
		for _, n := range names {
			if name == n || strings.HasPrefix(name, n+" ") {
				is, found[n] = true, true
			}
		}
		return is
	}
	c.add(root, "", wanted)
	return c, slices.DeleteFunc(slices.Clone(names), func(name string) bool { return found[name] })
}

// add adds the commands below one that are wanted.
func (c *Catalogue) add(cmd *cobra.Command, group string, wanted func(name string) bool) {
	for _, sub := range cmd.Commands() {
		of := cmp.Or(strings.TrimSuffix(sub.GroupID, ":"), group)
		if !sub.IsAvailableCommand() {
			continue
		}
		if name := nameOf(sub); wanted(name) {
			c.Commands = append(c.Commands, commandOf(sub, name, of))
		}
		c.add(sub, of, wanted)
	}
}

// nameOf is the name of a command as typed after the program.
func nameOf(cmd *cobra.Command) string {
	return strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ")
}

// commandOf describes one command.
func commandOf(cmd *cobra.Command, name, group string) Command {
	why, here := cmd.Annotations[Here]
	c := Command{
		Name: name, Group: group, Summary: cmd.Short, Usage: cmd.UseLine(), Arguments: argumentsOf(cmd), Flags: flagsOf(cmd.LocalNonPersistentFlags()),
		Examples: []string{}, Server: !here, NoServer: why, Exits: exitsOf(name),
	}
	if cmd.Long != cmd.Short {
		c.Text = cmd.Long
	}
	for line := range strings.Lines(cmd.Example) {
		if line = strings.TrimSpace(line); line != "" {
			c.Examples = append(c.Examples, line)
		}
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			c.Below = append(c.Below, nameOf(sub))
		}
	}
	return c
}

// argumentsOf reads the arguments from the usage: brackets are around what may be left out, dots behind what may be given several times, and bars
// between words to choose from.
func argumentsOf(cmd *cobra.Command) []Argument {
	all := []Argument{}
	depth := 0
	words := strings.Fields(strings.ReplaceAll(cmd.Use, " | ", "|"))
	for i := 1; i < len(words); i++ {
		word := words[i]
		if strings.HasPrefix(word, "--") && word != "--" { // a flag with its value
			i++
			continue
		}
		if word == "--" {
			continue
		}
		depth += strings.Count(word, "[")
		a := Argument{Optional: depth > 0}
		depth -= strings.Count(word, "]")
		word = strings.Trim(word, "[]")
		a.Name, a.Repeated = strings.CutSuffix(word, "...")
		if strings.Contains(a.Name, "|") && strings.ToLower(a.Name) == a.Name { // words to type, not names of what to type
			a.Values = strings.Split(a.Name, "|")
		}
		all = append(all, a)
	}
	return all
}

// types are the types of flags as JSON has them.
var types = map[string]string{
	"bool": "boolean", "int": "integer", "int64": "integer", "float64": "number", "duration": "duration", "count": "integer",
}

// flagsOf describes the flags that are shown.
func flagsOf(set *pflag.FlagSet) []Flag {
	all := []Flag{}
	set.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		kind := f.Value.Type()
		flag := Flag{Name: f.Name, Short: f.Shorthand, Values: f.Annotations[Values], Text: strings.ReplaceAll(f.Usage, "\n", " "), Default: defaultOf(f)}
		flag.Repeated = strings.HasSuffix(kind, "Slice") || strings.HasSuffix(kind, "Array")
		if flag.Type = types[kind]; flag.Type == "" {
			flag.Type = "string"
		}
		if group := f.Annotations[Group]; len(group) > 0 {
			flag.Group = group[0]
		}
		all = append(all, flag)
	})
	return all
}

// defaultOf is what a flag is if it is not given: what its own default says, else what its text says. Most flags have an empty default of their own, as the
// real one belongs to the file or to a handler.
func defaultOf(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "0", "0s", "false", "[]":
	default:
		return f.DefValue
	}
	before, text, ok := strings.Cut(f.Usage, "(default")
	switch {
	case !ok:
		return ""
	case strings.HasPrefix(text, ")"): // behind one of its words
		return lastOf(f.Annotations[Values], before)
	}
	depth := 1
	for i, r := range text {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		if depth == 0 {
			text = text[:i]
			break
		}
	}
	return strings.Trim(strings.TrimSpace(strings.TrimPrefix(text, ":")), `"`)
}

// lastOf is the word that comes last in a text; empty if none is in it.
func lastOf(words []string, text string) (last string) {
	for _, field := range strings.FieldsFunc(text, func(r rune) bool { return r != '_' && !unicode.IsLetter(r) }) {
		if slices.Contains(words, field) {
			last = field
		}
	}
	return last
}

// local are the commands that ask neither a store nor a server, and running those that report that runs have failed.
var (
	local   = []string{"commands", "completion", "context", "man", "next", "presets", "schema", "version"}
	running = []string{"run-due", "submit", "wait"}
)

// exitsOf are the exit codes of a command.
func exitsOf(name string) []int {
	first, _, _ := strings.Cut(name, " ")
	codes := []int{exit.OK, exit.Failed, exit.Usage}
	if slices.Contains(local, first) {
		if first == "context" || first == "commands" {
			codes = append(codes, exit.NotFound)
		}
		return codes
	}
	codes = append(codes, exit.NotFound)
	if slices.Contains(running, first) {
		codes = append(codes, exit.RunsFailed)
	}
	return append(codes, exit.Away, exit.Forbidden, exit.Conflict)
}
