package help

import (
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
)

func TestWhatWasMeant(t *testing.T) {
	t.Parallel()
	names := []string{"submit", "list", "limit", "status", "stats", "bulk", "serve"}
	for typed, want := range map[string]string{
		"submti": "submit", "lst": "list", "sbumit": "submit", "stat": "stats", "statu": "status", "servve": "serve", "x": "", "blk": "bulk", "explode": "", "": "",
	} {
		assert.Equal(t, want, Nearest(typed, names), typed)
	}
	for pair, want := range map[[2]string]int{{"", ""}: 0, {"abc", "abc"}: 0, {"abc", ""}: 3, {"ab", "ba"}: 1, {"kitten", "sitting"}: 3} {
		assert.Equal(t, want, distance(pair[0], pair[1]), pair)
	}
	root := &cobra.Command{Use: "duly"}
	submit := &cobra.Command{Use: "submit", Run: func(*cobra.Command, []string) {}}
	submit.Flags().String("agent", "", "")
	root.AddCommand(submit)
	assert.Equal(t, "submit", Meant(root, `unknown command "submti" for "duly"`))
	assert.Empty(t, Meant(root, "required flag(s) missing"))
	assert.Equal(t, "--agent", Meant(submit, "unknown flag: --agnet"))
	assert.Empty(t, Meant(submit, "unknown flag: --nonsense"))
}
