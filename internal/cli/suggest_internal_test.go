package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhatWasMeant(t *testing.T) {
	t.Parallel()
	names := []string{"submit", "list", "limit", "status", "stats", "bulk", "serve"}
	for typed, want := range map[string]string{
		"submti": "submit", "lst": "list", "sbumit": "submit", "stat": "stats", "statu": "status", "servve": "serve", "x": "", "blk": "bulk", "explode": "", "": "",
	} {
		assert.Equal(t, want, nearest(typed, names), typed)
	}
	for pair, want := range map[[2]string]int{{"", ""}: 0, {"abc", "abc"}: 0, {"abc", ""}: 3, {"ab", "ba"}: 1, {"kitten", "sitting"}: 3} {
		assert.Equal(t, want, distance(pair[0], pair[1]), pair)
	}
	root := Commands()
	assert.Equal(t, "submit", meant(root, `unknown command "submti" for "duly"`))
	assert.Empty(t, meant(root, "required flag(s) missing"))
	for _, c := range root.Commands() {
		if c.Name() == "submit" {
			assert.Equal(t, "--agent", meant(c, "unknown flag: --agnet"))
			assert.Empty(t, meant(c, "unknown flag: --nonsense"))
		}
	}
}
