package cli_test

import (
	"bufio"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

// What a program prepares before main is paid by each command.
func TestACommandStartsWithoutACollection(t *testing.T) {
	t.Parallel()
	w := inMemory()
	w.env = append(w.env, "GODEBUG=gctrace=1,inittrace=1")
	traced := regexp.MustCompile(`^init (\S+) @.* clock, (\d+) bytes`)
	packages, prepared := 0, 0
	for lines := bufio.NewScanner(strings.NewReader(w.duly(t, "version").stderr)); lines.Scan(); {
		assert.NotRegexp(t, `^gc \d`, lines.Text(), "a collection takes as long as all else that a command does")
		if m := traced.FindStringSubmatch(lines.Text()); m != nil && strings.HasPrefix(m[1], strings.TrimSuffix(program, "cmd/duly")) {
			bytes, err := strconv.Atoi(m[2])
			require.NoError(t, err)
			packages, prepared = packages+1, prepared+bytes
		}
	}
	t.Logf("%d packages prepare %d bytes", packages, prepared)
	assert.Greater(t, packages, 20)
	assert.Less(t, prepared, 400_000, "what few commands need, such as a pattern, waits for its first use")
}
