package redistest

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// commandCalls finds the number of calls in a line of INFO commandstats.
var commandCalls = regexp.MustCompile(`calls=(\d+)`)

// Commands is how many commands a server has run, those of scripts included.
// It is a sum since the server started; a test compares two of them, and its own INFO is among the
// calls.
func Commands(tb testing.TB, c *redis.Client) int {
	tb.Helper()
	info, err := c.Info(tb.Context(), "commandstats").Result()
	require.NoError(tb, err)
	n := 0
	for _, m := range commandCalls.FindAllStringSubmatch(info, -1) {
		one, err := strconv.Atoi(m[1])
		require.NoError(tb, err)
		n += one
	}
	return n
}
