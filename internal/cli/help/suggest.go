package help

// What a mistyped command or flag may have meant.

import (
	"slices"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// farthest is by how many letters a name may differ from what was typed.
const farthest = 2

// Meant is the name of a command or a flag that an error of cobra is about; empty if none is near.
func Meant(cmd *cobra.Command, err string) string {
	if typed, ok := strings.CutPrefix(err, "unknown flag: --"); ok {
		arguments := strings.FieldsFunc(cmd.Use, func(r rune) bool { return !unicode.IsUpper(r) })
		if slices.Contains(arguments, strings.ToUpper(typed)) { // a flag of other commands, such as --id of submit
			return strings.TrimSuffix(cmd.CommandPath(), cmd.Name()) + cmd.Use
		}
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := Nearest(typed, names); near != "" {
			return "--" + near
		}
		return ""
	}
	_, rest, ok := strings.Cut(err, `unknown command "`)
	typed, _, closed := strings.Cut(rest, `"`)
	if !ok || !closed || cmd.HasParent() {
		return ""
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return Nearest(typed, names)
}

// NoSub is the failure of a command that another has not.
func NoSub(cmd *cobra.Command, typed, todo string) error {
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return exit.Misuse(DidYouMean(typed, names)+todo, "unknown command %q", typed)
}

// DidYouMean is a question in front of what to do; empty if no name is near.
func DidYouMean(typed string, names []string) string {
	if near := Nearest(typed, names); near != "" {
		return "did you mean " + table.ShellWord(near) + "? "
	}
	return ""
}

// Nearest is the name that differs least from what was typed; empty if that is too much, or most of what was typed.
func Nearest(typed string, names []string) string {
	best, least := "", min(farthest, len(typed)/2)+1
	for _, name := range names {
		d := distance(typed, name)
		begins := best != "" && name[0] == typed[0] && best[0] != typed[0] // few mistype the first letter
		if d < least || d == least && begins {
			best, least = name, d
		}
	}
	return best
}

// distance is how many letters have to be added, taken away, changed or exchanged with their neighbours to make one name of another.
func distance(a, b string) int {
	before, last := []int{}, make([]int, len(b)+1)
	for k := range last {
		last[k] = k
	}
	for i := range len(a) {
		row := append(make([]int, 0, len(b)+1), i+1)
		for k := range len(b) {
			change := last[k]
			if a[i] != b[k] {
				change++
			}
			d := min(change, last[k+1]+1, row[k]+1)
			if i > 0 && k > 0 && a[i] == b[k-1] && a[i-1] == b[k] {
				d = min(d, before[k-1]+1)
			}
			row = append(row, d)
		}
		before, last = last, row
	}
	return last[len(b)]
}
