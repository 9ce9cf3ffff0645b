package cli_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// A store of 8 partitions moves to a single one, by the command that doctor names; its tasks run there.
func TestRepartition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	config := file(t, handlersFile+"\npartitions: 8\n")
	for i := range 5 {
		w.ok(t, "submit", "-c", config, "--agent", fmt.Sprint("a", i), "--id", "1", "--kind", "note")
	}
	w.ok(t, "run-due", "-c", config, "--agents", "a0")
	const todo = "-> stop every process, then duly repartition --to 1 --yes"
	assert.Equal(t, "warning: 8 partitions on a single server, which does no more with them: each batch becomes up to 8 script calls",
		w.checks(t)["partitions"])
	assert.Contains(t, w.duly(t, "doctor").stdout, todo)

	oneLine(t, w.duly(t, "repartition", "--yes"), 2, "pass --to with the number of partitions")
	oneLine(t, w.duly(t, "repartition", "--to", "1"), 2, "nothing runs while duly moves the tasks", "then pass --yes, or --dry-run")
	oneLine(t, w.duly(t, "repartition", "--to", "3", "--yes"), 2, "--to must be a power of two up to 1024, not 3")
	oneLine(t, w.duly(t, "repartition", "--to", "-1", "--yes"), 2, "--to must be a power of two up to 1024, not -1")
	oneLine(t, w.duly(t, "repartition", "--to", "8", "--yes"), 1, `the prefix "duly:" has 8 partitions already`)
	oneLine(t, noRedis().duly(t, "repartition", "--to", "8", "--yes"), 2, "no Redis is configured")

	assert.Equal(t, "4 agents, 4 live tasks and 1 record of finished tasks would move to 1 partition\n", w.ok(t, "repartition", "--to", "1", "--dry-run"))
	assert.Equal(t, map[string]any{"from": 8., "to": 1., "agents": 4., "tasks": 4., "records": 1., "dry_run": true},
		w.object(t, "repartition", "--to", "1", "--dry-run"))
	assert.Equal(t, "the store has 1 partition now; it had 8\nmoved 4 agents, 4 live tasks and 1 record of finished tasks; the audit found no fault\n"+
		"start its processes again\n", w.ok(t, "repartition", "--to", "1", "--yes"))
	assert.Equal(t, "ok: one partition, which is best on a single server", w.checks(t)["partitions"])
	assert.Equal(t, map[string]any{"from": 1., "to": 4., "agents": 4., "tasks": 4., "records": 1., "faults": 0.},
		w.object(t, "repartition", "--to", "4", "--yes"))
	assert.Contains(t, w.ok(t, "run-due", "-c", file(t, handlersFile), "--all"), "ran 4 tasks")
	assert.Contains(t, w.ok(t, "status", "a0", "1"), "completed")
}

// A daemon that runs is named as the reason, and what is moved cannot be used.
func TestRepartitionRefusesAStoreInUse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: w.redis.URL, Partitions: 2})
	require.NoError(t, err)
	defer func() { _ = st.Close() }()
	_, err = st.Announce(t.Context(), "someone", []byte("{}"), time.Minute)
	require.NoError(t, err)
	oneLine(t, w.duly(t, "repartition", "--to", "4", "--yes"), 1, "processes that use the store: 1 (duly processes lists them)")
	_, err = st.Announce(t.Context(), "someone", []byte("{}"), 0)
	require.NoError(t, err)

	// As a process leaves it that is killed while it copies.
	killed := func() {
		require.NoError(t, w.redis.Client(t).HSet(t.Context(), "duly:layout", "version", "2, being moved", "moving",
			`{"from":2,"to":4,"phase":"copying","version":"2","attempt":1,"copy":1}`).Err())
	}
	killed()
	oneLine(t, w.duly(t, "stats"), 1, `the prefix "duly:" is being moved from 2 to 4 partitions`, "run duly repartition --to 4 --yes again")
	oneLine(t, w.duly(t, "repartition", "--to", "8", "--yes"), 1, "and not to 8: run duly repartition --to 4 --yes to its end first")
	assert.Equal(t, "the move was undone: the store has 2 partitions\n", w.ok(t, "repartition", "--to", "2", "--yes"))
	w.ok(t, "stats")
	killed()
	assert.Contains(t, w.ok(t, "repartition", "--to", "4", "--yes"), "the store has 4 partitions now; it had 2\n")
	w.ok(t, "stats")
}

// In a cluster doctor says which masters have nothing to do.
func TestDoctorComparesPartitionsWithMasters(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartMasters(t, 3)
	w := noRedis()
	w.env = append(w.env, "DULY_REDIS_URL=redis+cluster://"+cluster.Addrs()[0])
	w.ok(t, "stats", "-c", file(t, "partitions: 2"))
	assert.Equal(t, "warning: 2 partitions on a cluster of 3 masters: at least one of them has no task", w.checks(t)["partitions"])
	assert.Contains(t, w.duly(t, "doctor").stdout, "-> stop every process, then duly repartition --to 8 --yes")
	w.ok(t, "repartition", "--to", "1", "--yes")
	assert.Equal(t, "warning: 1 partition on a cluster of 3 masters: at least 2 of them have no task", w.checks(t)["partitions"])
	w.ok(t, "repartition", "--to", "8", "--yes")
	assert.Equal(t, "ok: 8 partitions on a cluster of 3 masters", w.checks(t)["partitions"])
}
