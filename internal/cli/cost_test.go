package cli_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// A command does what it is asked for, and does not try the scripts each time.
func TestACommandCostsRedisLittle(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.redis.Client(t)
	w.ok(t, "submit", "--agent", "a", "--id", "1", "--kind", "k") // tries them
	before := redistest.Commands(t, c)
	w.ok(t, "status", "a", "1")
	cost := redistest.Commands(t, c) - before
	t.Logf("duly status: %d commands, with those of its script", cost)
	assert.Less(t, cost, 25, "eleven are sent, and the script runs as many")
	before = redistest.Commands(t, c)
	w.ok(t, "doctor")
	assert.Greater(t, redistest.Commands(t, c)-before, 100, "doctor does try them")
}
