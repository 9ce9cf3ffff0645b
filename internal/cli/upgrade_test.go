package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The binary of another version is named by DULY_TEST_BEFORE: make test-upgrade builds that of a commit.
const beforeEnv = "DULY_TEST_BEFORE"

// Two versions share a Redis during a deploy: what one has stored the other shows, runs, cancels and replays, in both orders.
func TestVersionsShareARedis(t *testing.T) {
	t.Parallel()
	before := os.Getenv(beforeEnv)
	if before == "" {
		t.Skip("set " + beforeEnv + " to the binary of another version, or run make test-upgrade")
	}
	for name, order := range map[string][2]string{"upgrade": {before, binary}, "downgrade": {binary, before}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			config := file(t, handlersFile)
			as := func(program string, args ...string) (string, error) {
				cmd := exec.CommandContext(t.Context(), program, args...)
				cmd.Env = w.env
				out, err := cmd.CombinedOutput()
				return string(out), err
			}
			ok := func(program string, args ...string) string {
				out, err := as(program, args...)
				require.NoError(t, err, "%v: %s", args, out)
				return out
			}
			first, second := order[0], order[1]
			for i := range 20 {
				ok(first, "submit", "--agent", fmt.Sprint("a", i%3), "--id", fmt.Sprint("t", i), "--kind", "note", "--group", "g")
			}
			ok(first, "submit", "--agent", "a0", "--id", "later", "--kind", "note", "--delay", "1h")
			ok(first, "submit", "--agent", "a0", "--id", "dead", "--kind", "bad")
			ok(first, "submit", "--agent", "a0", "--id", "often", "--kind", "note", "--every", "1h")
			_, _ = as(first, "run-due", "-c", config, "--agents", "a0")
			assert.Contains(t, ok(second, "status", "a0", "dead"), "failed")
			assert.Contains(t, ok(second, "explain", "a0", "later"), "not due until")
			ok(second, "replay", "a0", "dead")
			ok(second, "pause", "a1", "--by", "ann")
			ok(second, "cancel", "a0", "later")
			assert.Contains(t, ok(first, "status", "a0", "later"), "cancelled")
			ok(first, "resume", "a1")
			_, _ = as(second, "run-due", "-c", config, "--all", "--timeout", (10 * time.Second).String())
			for i := range 20 {
				assert.Contains(t, ok(first, "status", fmt.Sprint("a", i%3), fmt.Sprint("t", i)), "completed", i)
			}
			assert.Contains(t, ok(second, "runs", "a0", "often"), "success")
			ok(second, "audit") // it fails if it finds anything
			ok(first, "audit")
		})
	}
}
