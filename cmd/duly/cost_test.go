package main_test

import (
	"regexp"
	"strconv"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// commands is how many commands a Redis has run, those of scripts included.
func commands(t *testing.T, c *redis.Client) int {
	t.Helper()
	info, err := c.Info(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	n := 0
	for _, m := range regexp.MustCompile(`calls=(\d+)`).FindAllStringSubmatch(info, -1) {
		one, err := strconv.Atoi(m[1])
		require.NoError(t, err)
		n += one
	}
	return n
}

// A command does what it is asked for, and does not try the scripts each time.
func TestACommandCostsRedisLittle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.redis.Client(t)
	w.ok(t, "submit", "--agent", "a", "--id", "1", "--kind", "k") // tries them
	before := commands(t, c)
	w.ok(t, "status", "a", "1")
	cost := commands(t, c) - before
	t.Logf("duly status: %d commands, with those of its script", cost)
	assert.Less(t, cost, 25, "eleven are sent, and the script runs as many")
	before = commands(t, c)
	w.ok(t, "doctor")
	assert.Greater(t, commands(t, c)-before, 100, "doctor does try them")
}
