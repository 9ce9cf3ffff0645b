package help_test

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/cli/help"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// example is a command with flags in groups, below one with a global flag.
func example(t *testing.T) *cobra.Command {
	t.Helper()
	root := &cobra.Command{Use: "duly", Short: "Run tasks"}
	root.PersistentFlags().Bool("wide", false, "cut nothing on a terminal, and show times in full, whatever that takes")
	cmd := &cobra.Command{
		Use: "submit", Short: "Submit a task", Run: func(*cobra.Command, []string) {}, Example: "  duly submit --agent ada --kind note --payload '{\"text\":\"hello, this is long\"}'",
		Long: "Submit a task, which is stored before the command returns, and started once it is due.\n\nA second paragraph.",
	}
	cmd.Flags().String("agent", "", "owner of the task, which is the tenant that its runs are counted for, and takes its turn")
	cmd.Flags().String("every", "", "recurs with this interval")
	cmd.Flags().Bool("json", false, "write JSON")
	require.NoError(t, help.InGroups(cmd, []help.Group{{Title: "What", Flags: []string{"agent"}}, {Title: "How often", Flags: []string{"every"}}}))
	root.AddCommand(cmd)
	cmd.InitDefaultHelpFlag()
	return cmd
}

// Flags are shown by their groups, and those of none behind them.
func TestFlagsAreInGroups(t *testing.T) {
	t.Parallel()
	text := help.Text(example(t), 0)
	at := -1
	for _, part := range []string{"\n\nA second paragraph.\n\nUsage:\n  duly submit", "Examples:\n  duly submit", "\nWhat:\n      --agent", "\nHow often:\n      --every", "\nOther flags:\n  -h, --help", "\nGlobal Flags:\n      --wide"} {
		next := strings.Index(text, part)
		assert.Greater(t, next, at, "%q in %s", part, text)
		at = next
	}
	assert.Error(t, help.InGroups(example(t), []help.Group{{Title: "What", Flags: []string{"none"}}}))
}

// Nothing but what is to be copied is wider than the terminal, and no word is lost.
func TestHelpWraps(t *testing.T) {
	t.Parallel()
	cmd := example(t)
	for _, width := range []int{50, 60, 80, 100} {
		text := help.Text(cmd, width)
		for line := range strings.Lines(text) {
			if line = strings.TrimRight(line, "\n"); !strings.Contains(line, "duly submit") {
				assert.LessOrEqual(t, table.Width(line), width, line)
			}
		}
		assert.Equal(t, strings.Fields(help.Text(cmd, 0)), strings.Fields(text))
	}
}
