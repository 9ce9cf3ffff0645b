package servers_test

// What the tests share: a scheduler on a Redis, and how its tasks end.

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9/logging"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
)

// TestMain sees that nothing is left of servers that were cut off.
func TestMain(m *testing.M) {
	logging.Disable()
	goleak.VerifyTestMain(m)
}

// open is a scheduler on a Redis, with a kind ok; it returns how to close it.
func open(t *testing.T, url string) (*core.Scheduler, func()) {
	t.Helper()
	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: url})
	require.NoError(t, err)
	s, err := core.New(st, core.Config{Concurrency: 20, Default: core.KindConfig{Lease: 200 * time.Millisecond, Backoff: -1}})
	require.NoError(t, err)
	core.Handle(s, "ok", func(context.Context, *core.Task[any]) error { return nil })
	return s, func() { assert.NoError(t, st.Close()) }
}

// settle audits a store with repair until it finds nothing, ends all pauses, and runs what is due until nothing is. It returns how many faults were
// repaired.
func settle(t *testing.T, s *core.Scheduler) int {
	t.Helper()
	repaired := 0
	for round := 0; ; round++ {
		report, err := s.Audit(t.Context(), inspect.AuditOptions{Repair: true})
		require.NoError(t, err)
		for _, f := range report.Faults {
			require.True(t, f.Code.Repairable(), "%+v", f)
		}
		if report.Found == 0 {
			break
		}
		repaired += report.Found
		require.Less(t, round, 5, "what is repaired stays so: %+v", report.Faults)
	}
	pauses, _, err := s.Pauses(t.Context(), 100, "")
	require.NoError(t, err)
	for _, p := range pauses { // nobody came to end them
		require.NoError(t, s.Resume(t.Context(), p.Target))
	}
	require.Eventually(t, func() bool {
		_, err := s.RunDue(t.Context(), core.Scope{})
		require.NoError(t, err)
		stats, err := s.Stats(t.Context())
		require.NoError(t, err)
		return stats.Waiting+stats.InProgress == 0
	}, 20*time.Second, 10*time.Millisecond, "something is stuck")
	return repaired
}
